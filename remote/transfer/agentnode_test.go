//go:build linux

package transfer

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/agent"
	"github.com/dlwb/dlwb/remote/wire"
)

// agentNode is a node whose agent runs in this process, over a pipe.
type agentNode struct {
	home        string
	cut         atomic.Int64 // when not 0: the connection breaks when the agent has said so much
	cutIn       atomic.Int64 // likewise when it was told so much
	cuts        atomic.Int64 // so often it did
	said, heard atomic.Int64 // what the agent has said, and what it was told
	// answer stands in for services of the agent.
	answer map[string]func(s *wire.Stream) error
	stay   bool // a lost connection does not come back

	mu      sync.Mutex
	session *wire.Session
	calls   []string
}

func newAgentNode(t testing.TB) *agentNode {
	n := &agentNode{home: t.TempDir(), answer: map[string]func(*wire.Stream) error{}}
	t.Cleanup(n.close)
	return n
}

func (n *agentNode) Name() string { return "node0" }

// code is a path below the code directory.
func (n *agentNode) code(path ...string) string {
	return filepath.Join(append([]string{n.home, codeDir}, path...)...)
}

func (n *agentNode) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session != nil {
		_ = n.session.Close()
	}
}

// cutConn breaks when enough was said.
type cutConn struct {
	net.Conn
	n *agentNode
}

func (c cutConn) Write(p []byte) (int, error) {
	if c.over(len(p), &c.n.said, &c.n.cut) {
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(p)
}

func (c cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.over(n, &c.n.heard, &c.n.cutIn) {
		return 0, io.ErrClosedPipe
	}
	return n, err
}

func (c cutConn) over(n int, have, cut *atomic.Int64) bool {
	have.Add(int64(n))
	limit := cut.Load()
	if limit == 0 || have.Load() <= limit {
		return false
	}
	cut.Store(0)
	c.n.cuts.Add(1)
	_ = c.Close()
	return true
}

func (n *agentNode) live() (*wire.Session, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session != nil {
		select {
		case <-n.session.Done():
			if n.stay {
				return nil, &remote.UnreachableError{Name: "node0", Addr: "pipe", Err: errors.New("it does not come back")}
			}
		default:
			return n.session, nil
		}
	}
	here, there := net.Pipe()
	go n.serve(cutConn{there, n})
	var err error
	n.session, err = wire.Dial(here)
	return n.session, err
}

// serve is the agent, or what stands in for it.
func (n *agentNode) serve(conn net.Conn) {
	if len(n.answer) == 0 {
		_ = agent.Serve(context.Background(), conn)
		return
	}
	session, err := wire.Answer(conn)
	for err == nil {
		var s *wire.Stream
		if s, err = session.Accept(); err != nil {
			return
		}
		go func() {
			defer s.Close()
			var name string
			if s.Recv(&name) != nil {
				return
			}
			do := n.answer[name]
			if do == nil {
				do = func(*wire.Stream) error { return wire.Faultf(wire.Unknown, "no %s", name) }
			}
			_ = s.End(do(s))
		}()
	}
}

func (n *agentNode) Call(ctx context.Context, service string, request any) (*wire.Stream, func(error) error, error) {
	session, err := n.live()
	if err != nil {
		return nil, nil, err
	}
	n.mu.Lock()
	n.calls = append(n.calls, service)
	n.mu.Unlock()
	st, err := session.Call(ctx, service, request)
	return st, func(err error) error { return err }, err
}

func (n *agentNode) Ask(ctx context.Context, service string, request, answer any) error {
	s, _, err := n.Call(ctx, service, request)
	if err != nil {
		return err
	}
	defer s.Reset()
	return s.Recv(answer)
}

func (n *agentNode) Rest(ctx context.Context, _ int) bool { return ctx.Err() == nil && !n.stay }
