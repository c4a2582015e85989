//go:build unix

package remote

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// hasWaiting reports whether a shell waits on the node.
func hasWaiting(n *Node) *waiting {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.waiting
}

// rest waits until a shell waits on the node for the next command, as it does
// when there were two.
func rest(t *testing.T, n *Node) *waiting {
	t.Helper()
	n.mu.Lock()
	commands := n.commands
	n.mu.Unlock()
	if commands == 1 {
		mustExec(t, n, "true")
	}
	waitUntil(t, "a shell waits on the node", func() bool { return hasWaiting(n) != nil })
	return hasWaiting(n)
}

func TestACommandByAShellThatWaitsEndsAsAnyOther(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"dash", "bash", "busybox sh"} {
		n := openTest(t, sshdtest.Start(t, sshdtest.Shell(shell)))
		mustExec(t, n, "true")
		for _, c := range []struct {
			line, stdin, out, errs string
			code                   int
			signal                 string
		}{
			{"echo one; echo two >&2", "", "one\n", "two\n", 0, ""},
			{"exit 3", "", "", "", 3, ""},
			{"kill -KILL $$", "", "", "", 137, "KILL"},
			{"exec /does/not/exist 2>/dev/null", "", "", "", 127, ""},
			{"cat; pwd >&2", "in put\\ \n\nend", "in put\\ \n\nend", "HOME", 0, ""},
			{"a='x\ny'\nfor i in 1 2; do\n  echo \"$i $a\"\ndone", "", "1 x\ny\n2 x\ny\n", "", 0, ""},
			{"  printf '%s\\n' '  \\n'  ", "", "  \\n\n", "", 0, ""},
			{`echo "${dlwb_c-none} ${dlwb_l-none} ${dlwb_n-none} $0 $#"`, "", "none none none sh 0\n", "", 0, ""},
		} {
			w := rest(t, n)
			cmd := Cmd{Line: c.line}
			if c.stdin != "" {
				cmd.Stdin = strings.NewReader(c.stdin)
			}
			res, err := n.Exec(testContext(t), cmd)
			if err != nil || res.ExitCode != c.code || res.Signal != c.signal || string(res.Stdout) != c.out {
				t.Errorf("%s: %s: exit %d %q, %q, %q, %v", shell, c.line, res.ExitCode, res.Signal, res.Stdout, res.Stderr, err)
			}
			if c.errs != "HOME" && string(res.Stderr) != c.errs {
				t.Errorf("%s: %s: stderr is %q", shell, c.line, res.Stderr)
			}
			if !w.taken {
				t.Errorf("%s: %s was run by another shell", shell, c.line)
			}
		}
		rest(t, n)
		if res, err := n.Exec(testContext(t), Cmd{Line: "echo 'a"}); err != nil || res.ExitCode == 0 || len(res.Stderr) == 0 {
			t.Errorf("%s: a line that is no shell: exit %d, %q, %v", shell, res.ExitCode, res.Stderr, err)
		}
	}
}

func TestACommandIsRunWhenTheShellThatWaitedIsGone(t *testing.T) {
	n := openTest(t, sshdtest.Start(t))
	mustExec(t, n, "true")
	w := rest(t, n)
	mustExec(t, n, "true") // by w
	if !w.taken {
		t.Fatal("the shell that waited was not used")
	}
	// What is called by hand here is a command that comes while the shell ends.
	w = rest(t, n)
	_ = w.stdin.Close()
	<-w.ended
	w.lead, w.errs = &leader{}, &later{}
	if _, ran, err := n.execWaiting(testContext(t), w, Cmd{Line: "true"}); ran || err != nil {
		t.Errorf("ran %v, %v", ran, err)
	}
	if got := mustExec(t, n, "echo here"); got != "here\n" {
		t.Errorf("it said %q", got)
	}
}

func TestAConnectionThatWasNotHeardOfLatelyGetsNoCommandBlindly(t *testing.T) {
	n := openTest(t, sshdtest.Start(t))
	mustExec(t, n, "true")
	w := rest(t, n)
	w.s.link.conn.(*heard).at.Store(time.Now().Add(-time.Minute).UnixNano())
	if n.takeWaiting(Cmd{Line: "true"}) != nil || w.taken {
		t.Error("a stale connection was trusted")
	}
	if got := mustExec(t, n, "echo here"); got != "here\n" {
		t.Errorf("it said %q", got)
	}
}

func TestALostConnectionIsNotTakenForACommandThatDidNotRun(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	mustExec(t, n, "true")
	rest(t, n)
	_, err := n.Exec(testContext(t), Cmd{Line: "echo x; exec sleep 30", Stdout: signalWriter(func() { s.KillConnections() })})
	var lost *LostError
	if !errors.As(err, &lost) {
		t.Errorf("got %v, want a LostError", err)
	}
}

func TestAShellThatWaitsTakesNoSessionFromOthers(t *testing.T) {
	for _, most := range []int{1, 2, 3} {
		n := openTest(t, sshdtest.Start(t, sshdtest.Config(fmt.Sprint("MaxSessions ", most))))
		mustExec(t, n, "true")
		if most > 1 {
			rest(t, n)
		}
		var held []*session
		for range most {
			s, err := n.session(testContext(t), true)
			if err != nil {
				t.Fatalf("MaxSessions %d: %v", most, err)
			}
			held = append(held, s)
		}
		n.mu.Lock()
		links := len(n.links)
		n.mu.Unlock()
		if links != 1 {
			t.Errorf("MaxSessions %d: it took %d connections", most, links)
		}
		for _, s := range held {
			s.free()
		}
	}
}

// A command that it can't take finds its session where there is no other.
func TestAShellThatWaitsGoesWhenItsSessionIsNeeded(t *testing.T) {
	n := openTest(t, sshdtest.Start(t))
	mustExec(t, n, "true")
	w := rest(t, n)
	n.mu.Lock()
	w.s.link.limit = 1
	n.mu.Unlock()
	res, err := n.Exec(testContext(t), Cmd{Line: "cat", Stdin: io.LimitReader(strings.NewReader("in"), 2)})
	if err != nil || string(res.Stdout) != "in" {
		t.Errorf("%q, %v", res.Stdout, err)
	}
}

func TestNothingOfAShellThatWaitedStaysOnTheNode(t *testing.T) {
	n := openTest(t, sshdtest.Start(t))
	mustExec(t, n, "true")
	w := rest(t, n)
	// It says its process id by the command that it gets; ask its parent.
	var pid int
	if _, err := fmt.Sscan(mustExec(t, n, "echo $$"), &pid); err != nil || !w.taken {
		t.Fatal(err, w.taken)
	}
	waitUntil(t, "it is gone", func() bool { return syscall.Kill(pid, 0) != nil })
}
