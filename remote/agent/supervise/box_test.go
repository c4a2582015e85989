//go:build linux

package supervise_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote/agent"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/agent/supervise"
	"github.com/dlwb/dlwb/remote/wire"
)

// This test binary is the agent too.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "launch":
		os.Exit(launchHere())
	case len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-"):
		os.Exit(agent.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// launchHere does what the service does, in a process with a home of its own.
func launchHere() int {
	if most, err := strconv.ParseUint(os.Getenv("DLWB_TEST_LIMIT"), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			panic(err)
		}
	}
	var plan wire.LaunchRequest
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = cbor.Unmarshal(text, &plan)
	}
	if err == nil {
		err = supervise.Launch(context.Background(), os.Getenv("HOME"), os.Args[0], plan)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const forever = "while :; do sleep 1; done"

// box is a node without a connection: a home directory.
type box struct {
	runbox.Box
	env  []string
	self string // the agent
}

func newBox(t testing.TB) *box {
	t.Helper()
	return newBoxOf(t, 0)
}

func newBoxOf(t testing.TB, uid int) *box {
	t.Helper()
	home, err := os.MkdirTemp("", "dlwb-box-")
	must(t, err)
	b := &box{Box: runbox.Box{T: t, Home: home, UID: uid}, self: os.Args[0]}
	t.Cleanup(func() {
		if left := b.Left(runbox.Patience); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
		for _, p := range b.Processes() {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		if said := b.Read("supervise.log"); strings.Contains(said, "DATA RACE") || strings.Contains(said, "goroutine ") {
			t.Errorf("the supervisor says:\n%s", said)
		}
		_ = os.RemoveAll(home)
	})
	bin := filepath.Join(home, ".dlwb/bin")
	must(t, os.MkdirAll(bin, 0o755))
	if uid != 0 {
		b.self = filepath.Join(bin, "agent")
		text, err := os.ReadFile(os.Args[0])
		must(t, err)
		must(t, testprogram.Write(b.self, text, 0o755))
	}
	for _, mode := range []string{"rank", "stop", "peer"} {
		text := "[ -n \"$DLWB_AGENT\" ] || DLWB_AGENT='" + b.self + "'\nexec \"$DLWB_AGENT\" " + mode + " \"$@\"\n"
		must(t, testprogram.Write(filepath.Join(bin, mode), []byte(text), 0o755))
	}
	if uid != 0 {
		must(t, filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, uid, uid))
		}))
	}
	// Without a cgroup: what it would hold anyway is to be found by the others.
	b.env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "DLWB_") || strings.HasPrefix(kv, "HOME=")
	}), "HOME="+home, "DLWB_CGROUP=no")
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// command is a program as the box's user runs it.
func (b *box) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Env, c.Dir = b.env, b.Home
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if b.UID != 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(b.UID), Gid: uint32(b.UID)}
	}
	return c
}

// try runs a line of sh.
func (b *box) try(line string) (stdout, stderr string, code int) {
	b.T.Helper()
	var out, errs bytes.Buffer
	c := b.command("sh", "-c", line)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.T.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

func (b *box) sh(line string) string {
	b.T.Helper()
	out, errs, code := b.try(line)
	if code != 0 {
		b.T.Fatalf("exit code %d; it said: %s%s", code, out, errs)
	}
	return out
}

// ranks are plain ranks that run the given sh programs.
func ranks(programs ...string) []wire.LaunchProc {
	var procs []wire.LaunchProc
	for i, program := range programs {
		name := fmt.Sprintf("rank-%d", i)
		procs = append(procs, wire.LaunchProc{Name: name, Log: name + ".log", Env: bytesOf(fmt.Sprintf("RANK=%d", i)),
			Argv: bytesOf("sh", "~/.dlwb/bin/rank", "~/.dlwb/runs/r1", "sh", "-c", program)})
	}
	return procs
}

// launcher is a process that starts ranks through the wrapper, as torchrun does.
func launcher(program string, args ...string) []wire.LaunchProc {
	return []wire.LaunchProc{{Name: "agent", Log: "agent.log", Argv: bytesOf(append([]string{"sh", "-c", program, "agent"}, args...)...)}}
}

func bytesOf(words ...string) [][]byte {
	var all [][]byte
	for _, w := range words {
		all = append(all, []byte(w))
	}
	return all
}

func planOf(procs []wire.LaunchProc, change ...func(*wire.LaunchRequest)) wire.LaunchRequest {
	plan := wire.LaunchRequest{RunID: "r1", Node: "node0", Dir: ".", Procs: procs, Grace: 1000, Patience: 300, Segment: 64 << 20, Keep: 64}
	for _, f := range change {
		f(&plan)
	}
	return plan
}

func (b *box) tryLaunch(plan wire.LaunchRequest) (said string, err error) {
	b.T.Helper()
	text, err := cbor.Marshal(plan)
	must(b.T, err)
	c := b.command(b.self, "launch")
	c.Stdin = bytes.NewReader(text)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (b *box) launch(procs []wire.LaunchProc, change ...func(*wire.LaunchRequest)) {
	b.T.Helper()
	if said, err := b.tryLaunch(planOf(procs, change...)); err != nil {
		b.T.Fatalf("launch: %v: %s", err, said)
	}
}

func (b *box) run() runs.Run { return runs.At(filepath.Join(b.Home, ".dlwb/runs/r1")) }

func (b *box) state() wire.StateAnswer { return b.run().Look() }

// stop gives how many processes are left.
func (b *box) stop(args string) int {
	b.T.Helper()
	out, errs, code := b.try("exec sh ~/.dlwb/bin/stop r1 " + args)
	var left int
	if _, err := fmt.Sscanf(out, "left %d\n", &left); err != nil || (left == 0) != (code == 0) {
		b.T.Fatalf("stop said %q %q, exit code %d", out, errs, code)
	}
	return left
}

// wantStopped stops the run and wants nothing of it to be left.
func (b *box) wantStopped(args string) {
	b.T.Helper()
	if left := b.stop(args); left != 0 {
		b.T.Errorf("left %d: %v", left, b.Processes())
	}
}

// ended waits for the end of the run and gives its state.
func (b *box) ended() wire.StateAnswer {
	b.T.Helper()
	runbox.Within(b.T, runbox.Patience, "an exit record, and a status that tells the end", func() bool {
		if !b.run().Ended() {
			return false
		}
		status, lines := b.Read("status"), b.lines() // read once: more may come at any moment
		return strings.Contains(status, " ended ") && len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], "ended ") ||
			strings.Contains(status, "peer ")
	})
	s := b.state()
	if s.State != "ended" {
		b.T.Fatalf("the run has an exit record, but its state is %+v", s)
	}
	return s
}

// record is an exit record without its moments.
func (b *box) record(name string) string {
	f := strings.Fields(b.Read(name))
	return strings.Join(f[:min(2, len(f))], " ")
}

// lines are those of the status, without their moments.
func (b *box) lines() []string {
	var all []string
	for line := range strings.Lines(b.Read("status")) {
		_, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, what)
	}
	return all
}

// wantOrder checks that the status holds lines that begin so, in this order.
func (b *box) wantOrder(want ...string) {
	b.T.Helper()
	rest := b.lines()
	for _, w := range want {
		i := slices.IndexFunc(rest, func(line string) bool { return line == w || strings.HasPrefix(line, w+" ") })
		if i < 0 {
			b.T.Errorf("%q is missing, or not in this place, in %q", w, b.lines())
			return
		}
		rest = rest[i+1:]
	}
}
