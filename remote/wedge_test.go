//go:build unix

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/wedge"
	"github.com/dlwb/dlwb/sshconn"
	"github.com/dlwb/dlwb/sshkeys"
)

// shortBounds are the bounds of a test: seconds become tenths.
var shortBounds = sshconn.Bounds{
	Dial: time.Second, Open: 500 * time.Millisecond, Reply: 500 * time.Millisecond, Every: 300 * time.Millisecond,
	Answer: 500 * time.Millisecond, Shell: time.Second, Quiet: 1500 * time.Millisecond, Script: time.Second,
}

// longEnough is more than all short bounds of one call together, on a busy machine:
// the longest tries four connections, and takes 11 s on an idle one.
const longEnough = 40 * time.Second

func wedgedNode(t testing.TB, s *wedge.Server) *Node {
	t.Helper()
	n := Open(Target{Name: "node0", Addr: s.Addr, User: "test", HostKey: s.HostKey, KeyFile: s.KeyFile})
	n.bounds = shortBounds
	t.Cleanup(func() { endsWithin(t, "Close", longEnough, func() { _ = n.Close() }) })
	return n
}

// endsWithin fails the test when f takes longer.
func endsWithin(t testing.TB, what string, limit time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
	case <-time.After(limit):
		t.Errorf("%s goes on after %v", what, limit)
	}
}

// calls are what is asked of nodes. Each of them is one service of the agent's at
// least.
var calls = []struct {
	name string
	call func(ctx context.Context, n *Node) error
}{
	{"exec", func(ctx context.Context, n *Node) error {
		// What a pipe has ready is more than a window holds.
		_, err := n.Exec(ctx, Cmd{Line: "cat", Stdin: io.LimitReader(nothings{}, 8<<20), Stdout: io.Discard})
		return err
	}},
	{"exec without a limit", func(ctx context.Context, n *Node) error {
		_, err := n.Exec(ctx, Cmd{Line: "true", Quiet: NoLimit})
		return err
	}},
	{"state", func(ctx context.Context, n *Node) error {
		_, err := n.RunState(ctx, "run-1")
		return err
	}},
	{"facts", func(ctx context.Context, n *Node) error {
		_, err := n.Facts(ctx)
		return err
	}},
	{"stop", func(ctx context.Context, n *Node) error {
		_, err := n.StopRun(ctx, "run-1", time.Second, "test")
		return err
	}},
	{"shell", func(ctx context.Context, n *Node) error {
		_, err := n.Shell(ctx, Pty{Line: "true", Stdin: strings.NewReader(""), Stdout: io.Discard})
		return err
	}},
	{"dial", func(ctx context.Context, n *Node) error {
		_, err := n.DialContext(ctx, "tcp", "127.0.0.1:1")
		return err
	}},
	{"reverse", func(ctx context.Context, n *Node) error {
		t, err := Reverse(ctx, n, 0, "127.0.0.1:1")
		if err == nil {
			_ = t.Close()
		}
		return err
	}},
	{"uninstall", func(ctx context.Context, n *Node) error { return n.Uninstall(ctx) }},
}

// becomesWell fails the test when no command runs. The bounds are those of a server
// that hangs: a busy machine may need more for what goes well.
func becomesWell(t testing.TB, n *Node) {
	t.Helper()
	for end := time.Now().Add(longEnough); ; {
		res, err := n.Exec(t.Context(), Cmd{Line: "echo well"})
		if err == nil && string(res.Stdout) == "well\n" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q, %v", res.Stdout, err)
		}
		t.Log(err)
	}
}

type nothings struct{}

func (nothings) Read(p []byte) (int, error) { return len(p), nil }

// stages are where every call hangs, and early those before there is a session,
// which need no more than one call.
var (
	stages = []wedge.Stage{wedge.Silent, wedge.Frozen, wedge.OpenChannel, wedge.ExecReply, wedge.Mute, wedge.HalfHello,
		wedge.Unanswered, wedge.Untaken, wedge.Stopped}
	early = []wedge.Stage{
		wedge.TrickledBanner, wedge.EndlessBanner, wedge.KeyInit, wedge.KeyReply, wedge.NewKeys, wedge.Service,
		wedge.NoneAuth, wedge.KeyQuery, wedge.Signature, wedge.NoReading, wedge.Drip, wedge.Rekey,
	}
)

func stagesOf(name string) []wedge.Stage {
	if name == "exec" {
		return slices.Concat(early, stages)
	}
	return stages
}

func TestEveryCallEndsWithinItsBoundWhereverTheServerHangs(t *testing.T) {
	for _, c := range calls {
		for _, stage := range stagesOf(c.name) {
			t.Run(c.name+" "+wedge.Stages[stage], func(t *testing.T) {
				t.Parallel()
				s := wedge.Start(t)
				s.Wedge(stage)
				n := wedgedNode(t, s)
				endsWithin(t, c.name, longEnough, func() {
					if err := c.call(t.Context(), n); err == nil {
						t.Error("it succeeded")
					} else {
						t.Log(err)
					}
				})
			})
		}
	}
}

func TestEveryCallEndsWithItsContextWhereverTheServerHangs(t *testing.T) {
	for _, c := range calls {
		for _, stage := range stagesOf(c.name) {
			t.Run(c.name+" "+wedge.Stages[stage], func(t *testing.T) {
				t.Parallel()
				s := wedge.Start(t)
				s.Wedge(stage)
				n := wedgedNode(t, s)
				b := shortBounds
				b.Dial, b.Open, b.Reply, b.Answer, b.Shell, b.Quiet = time.Minute, time.Minute, time.Minute, time.Minute, time.Minute, time.Minute
				n.bounds = b
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				endsWithin(t, c.name, longEnough, func() { // the bounds are a minute
					if err := c.call(ctx, n); err == nil || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("it ended with %v", err)
					}
				})
			})
		}
	}
}

func TestAConnectionThatWasWellEndsWithinItsBoundsWhenTheServerHangs(t *testing.T) {
	for _, stage := range []wedge.Stage{wedge.Unanswered, wedge.Untaken, wedge.Stopped, wedge.Killed, wedge.Frozen} {
		t.Run(wedge.Stages[stage], func(t *testing.T) {
			t.Parallel()
			s := wedge.Start(t)
			n := wedgedNode(t, s)
			becomesWell(t, n)
			s.Wedge(stage)
			endsWithin(t, "exec", longEnough, func() {
				if _, err := n.Exec(t.Context(), Cmd{Line: "echo no"}); err == nil {
					t.Error("it succeeded")
				} else {
					t.Log(err)
				}
			})
			s.Wedge(wedge.None)
			becomesWell(t, n)
		})
	}
}

func TestAHungJumpHostEndsWithinTheBoundsOfTheDial(t *testing.T) {
	for _, stage := range []wedge.Stage{wedge.Silent, wedge.KeyReply, wedge.Signature, wedge.Direct, wedge.Frozen} {
		t.Run(wedge.Stages[stage], func(t *testing.T) {
			t.Parallel()
			jump, behind := wedge.Start(t), wedge.Start(t)
			jump.Wedge(stage)
			n := Open(Target{Name: "node0", Addr: behind.Addr, User: "test", HostKey: behind.HostKey, KeyFile: behind.KeyFile,
				Jumps: []Jump{{Name: "bastion", Addr: jump.Addr, User: "test", HostKey: jump.HostKey, Keys: sshkeys.Keys{Files: []string{jump.KeyFile}}}}})
			n.bounds = shortBounds
			endsWithin(t, "connect", longEnough, func() {
				if err := n.Connect(t.Context()); err == nil {
					t.Error("it succeeded")
				} else {
					t.Log(err)
				}
			})
			endsWithin(t, "Close", longEnough, func() { _ = n.Close() })
		})
	}
}

// A server that begins to answer and hangs is dialed once more, with small segments,
// where they can be had and were not tried before.
func TestADialIsRepeatedOnlyWhereTheNextIsAnother(t *testing.T) {
	t.Parallel()
	s, jump, behind := wedge.Start(t), sshdtest.Start(t), wedge.Start(t)
	s.Wedge(wedge.KeyReply)
	behind.Wedge(wedge.KeyReply)
	for i, want := range []int64{2, 3} {
		n := wedgedNode(t, s)
		var mute *sshconn.NoAnswerError
		if err := n.Connect(t.Context()); !errors.As(err, &mute) || s.Taken() != want {
			t.Errorf("after dial %d: %d connections, want %d (%v)", i+1, s.Taken(), want, err)
		}
	}
	n := Open(Target{Name: "node0", Addr: behind.Addr, User: "test", HostKey: behind.HostKey, KeyFile: behind.KeyFile, Jumps: []Jump{jumpOf("bastion", jump)}})
	defer n.Close()
	n.bounds.Dial = 5 * time.Second
	if err := n.Connect(t.Context()); err == nil || behind.Taken() != 1 {
		t.Errorf("through a jump host: %d connections, want 1 (%v)", behind.Taken(), err)
	}
}

func TestAFrozenOpenSSHServerEndsEveryCallWithinItsBound(t *testing.T) {
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := sshdtest.Start(t)
			n := openTest(t, s)
			n.bounds = shortBounds
			becomesWell(t, n)
			s.Freeze()
			defer s.Thaw()
			endsWithin(t, c.name, longEnough, func() {
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // a new connection would be answered
				defer cancel()
				if err := c.call(ctx, n); err != nil {
					t.Log(err)
				}
			})
		})
	}
}

// hungAgent is an ssh agent that takes everything and answers nothing.
func hungAgent(t testing.TB) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "agent")
	listenUnix(t, socket)
	return socket
}

func TestAHungAgentIsGivenUpAndNamed(t *testing.T) {
	t.Parallel()
	s := wedge.Start(t)
	n := Open(Target{Name: "node0", Addr: s.Addr, User: "test", HostKey: s.HostKey, Keys: sshkeys.Keys{Agent: hungAgent(t)}})
	n.bounds = shortBounds
	defer n.Close()
	endsWithin(t, "connect", longEnough, func() {
		if err := n.Connect(t.Context()); err == nil || !strings.Contains(fmt.Sprint(err), "agent") {
			t.Errorf("it ended with %v", err)
		}
	})
}

// listenUnix takes connections on a socket, and all that comes on them.
func listenUnix(t testing.TB, socket string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c); _ = c.Close() }()
		}
	}()
}
