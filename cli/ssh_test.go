//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/dlwb/dlwb/internal/sample"
)

// screenText is what a terminal has shown so far.
type screenText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screenText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screenText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// terminal is a dlwb on a terminal.
type terminal struct {
	t     *testing.T
	tty   *os.File
	pid   int
	shown *screenText
	ended chan int
}

func (b *bed) onTerminal(columns, rows int, args ...string) *terminal {
	b.t.Helper()
	c := b.command(args...)
	tty, err := pty.StartWithSize(c, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)})
	if err != nil {
		b.t.Fatal(err)
	}
	x := &terminal{t: b.t, tty: tty, pid: c.Process.Pid, shown: &screenText{}, ended: make(chan int, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			_, _ = x.shown.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = c.Wait()
		<-read
		x.ended <- c.ProcessState.ExitCode()
	}()
	b.t.Cleanup(func() { _ = c.Process.Kill(); _ = tty.Close() })
	return x
}

func (x *terminal) types(text string) {
	x.t.Helper()
	if _, err := x.tty.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) waitFor(text string) {
	x.t.Helper()
	for limit := time.Now().Add(60 * time.Second); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(x.shown.String(), text) {
			return
		}
	}
	x.t.Fatalf("%q is not shown:\n%s", text, x.shown)
}

func (x *terminal) exit() int {
	x.t.Helper()
	select {
	case code := <-x.ended:
		return code
	case <-time.After(60 * time.Second):
		x.t.Fatalf("it does not end:\n%s", x.shown)
		return -1
	}
}

func TestSSHHasATerminalAndStreamsAndExecAsksAllNodes(t *testing.T) {
	sample.Leave(t)
	b := newBed(t)
	b.up("")
	b.shellHasARealTerminal()
	b.commandOnATerminalGetsOne()
	b.streamsPassWithoutATerminal()
	b.execAsksAllNodes()
}

func (b *bed) shellHasARealTerminal() {
	t := b.t
	t.Helper()
	x := b.onTerminal(100, 30, "ssh", "bed", "1")
	// Words that the echo of what is typed does not hold.
	x.types("test -t 0 && test -t 1 && echo is-a-$((40+2))-terminal on node$DLWB_NODE; stty size\n")
	x.waitFor("is-a-42-terminal on node1")
	x.waitFor("30 100")
	if err := pty.Setsize(x.tty, &pty.Winsize{Cols: 77, Rows: 21}); err != nil {
		t.Fatal(err)
	}
	// The new size travels; the shell is asked until it has come.
	x.types("until stty size | grep -qx '21 77'; do sleep 0.05; done; echo seen-$((20+1))\n")
	x.waitFor("seen-21")
	x.types("sh -c 'trap \"echo caught-\\$((3+3)); exit\" INT; echo begun-$((1+1)); while :; do sleep 0.1; done'\n")
	x.waitFor("begun-2")
	x.types("\x03") // goes to the node, and ends what runs there, not dlwb
	x.waitFor("caught-6")
	x.types("exit 7\n")
	if code := x.exit(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
}

func (b *bed) commandOnATerminalGetsOne() {
	t := b.t
	t.Helper()
	x := b.onTerminal(80, 24, "ssh", "bed", "--", "sh", "-c", "tty -s && echo yes-$((1+1)); exit 3")
	if code := x.exit(); code != 3 || !strings.Contains(x.shown.String(), "yes-2") {
		t.Errorf("exit code %d\n%s", code, x.shown)
	}
}

func (b *bed) streamsPassWithoutATerminal() {
	t := b.t
	t.Helper()
	for _, c := range []struct {
		args                  []string
		input, output, errors string
		code                  int
	}{
		{[]string{"ssh", "bed", "--", "cat"}, "some\x00bytes\r\n\xff", "some\x00bytes\r\n\xff", "", 0},
		{[]string{"ssh", "bed", "1", "--", "sh", "-c", "echo out $DLWB_NODE; echo err >&2; exit 9"}, "", "out 1\n", "err\n", 9},
		{[]string{"ssh", "bed"}, "echo from stdin\nexit 4\n", "from stdin\n", "", 4},
		{[]string{"ssh", "bed", "node1", "--", "sh", "-c", "kill -TERM $$"}, "", "", "", 143},
		{[]string{"ssh", "bed", "--", "echo", "it's", "two  words", "$HOME"}, "", "it's two  words $HOME\n", "", 0},
		{[]string{"ssh", "bed", "--", "1"}, "", "", "not found", 127},
		{[]string{"ssh", "bed", "2"}, "", "", "it has 2, counted from 0", 1},
		{[]string{"ssh", "bad"}, "", "", "clusters: bed", 1},
		{[]string{"ssh"}, "", "", "usage: dlwb ssh CLUSTER", 2},
	} {
		cmd := b.command(c.args...)
		var out, errs strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.input), &out, &errs
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.code || out.String() != c.output || !strings.Contains(errs.String(), c.errors) {
			t.Errorf("%q: exit code %d, want %d\nout: %q\nerr: %q", c.args, code, c.code, out.String(), errs.String())
		}
	}
}

func (b *bed) execAsksAllNodes() {
	t := b.t
	t.Helper()
	for _, c := range []struct {
		args   []string
		stdout string
		stderr string
		code   int
	}{
		{[]string{"--", "sh", "-c", "echo I am $DLWB_NODE"}, "node0 | I am 0\nnode1 | I am 1\n", "", 0},
		{[]string{"--node", "1", "--", "sh", "-c", "echo I am $DLWB_NODE"}, "node1 | I am 1\n", "", 0},
		{[]string{"--", "sh", "-c", "echo so >&2; exit $((DLWB_NODE * 5))"}, "node0 | so\nnode1 | so\nnode1: exit code 5\n", "", 5},
		{[]string{"--node", "5", "--", "touch", "x"}, "", "it has 2, counted from 0", 1},
		{[]string{"--", "printf", `\033]0;title\007red\n`}, "node0 | red\nnode1 | red\n", "", 0},
	} {
		r := b.run(append([]string{"exec", "bed"}, c.args...)...)
		if r.code != c.code || r.stdout != c.stdout || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("%q: exit code %d, want %d\nout: %q\nerr: %q", c.args, r.code, c.code, r.stdout, r.stderr)
		}
	}
	r := b.run("exec", "bed", "--json", "--", "sh", "-c", "echo one; echo two >&2; exit 6")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != 6 || len(lines) != 2 {
		t.Fatalf("exit code %d\n%s", r.code, r.stdout)
	}
	for i, line := range lines {
		var got execResult
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if want := (execResult{Node: i, ExitCode: 6, Stdout: "one\n", Stderr: "two\n"}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if r := b.run("exec", "nobody", "--", "true"); r.code != 1 || !strings.Contains(r.stderr, "clusters: bed") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}
