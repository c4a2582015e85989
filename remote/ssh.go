package remote

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/sshconn"
)

// way is what an opener gives: a machine, and where it is reached by ssh the
// connection; or the loan of another process's.
type way struct {
	machine transport.Machine
	client  *sshconn.Conn
	loan    *borrowed
	own     bool // by the user's own ssh
}

// overSSH is a connection as a transport.
type overSSH struct{ client *sshconn.Conn }

func (m overSSH) Kill(why error)        { m.client.Kill(why) }
func (m overSSH) Done() <-chan struct{} { return m.client.Done() }
func (m overSSH) Err() error            { return m.client.Wait() }

// Start starts a command in a session of its own.
func (m overSSH) Start(ctx context.Context, line string) (transport.Command, error) {
	s, err := m.client.NextSession(ctx)
	if err != nil {
		return nil, err
	}
	c := &sshCommand{session: s}
	s.Stderr(&c.said)
	if c.in, err = s.StdinPipe(); err == nil {
		if c.out, err = s.StdoutPipe(); err == nil {
			err = s.Start(ctx, line)
		}
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("start a command: %w", err)
	}
	return c, nil
}

type sshCommand struct {
	session *sshconn.Session
	in      io.WriteCloser
	sent    atomic.Int64 // bytes so far: who brings the agent there writes first, then its session
	out     io.Reader
	said    transport.Tail
	once    sync.Once
}

func (c *sshCommand) Read(p []byte) (int, error) { return c.out.Read(p) }
func (c *sshCommand) Said() string               { return c.said.String() }

// A connection keeps two buffers of the size of what was written at once, up to 32 KB
// each. Until a node was sent smallFirst, it is sent small pieces: most nodes are never
// sent more, and there may be hundreds.
const (
	smallFirst = 1 << 20
	smallPiece = 4 << 10
)

func (c *sshCommand) Write(p []byte) (written int, err error) {
	for len(p) > smallPiece && c.sent.Load() < smallFirst && err == nil {
		var k int
		k, err = c.in.Write(p[:smallPiece])
		p, written = p[k:], written+k
		c.sent.Add(int64(k))
	}
	if err != nil || len(p) == 0 && written > 0 {
		return written, err
	}
	k, err := c.in.Write(p)
	c.sent.Add(int64(k))
	return written + k, err
}

// Close ends the session: it waits for nothing.
func (c *sshCommand) Close() error {
	c.once.Do(c.session.HangUp)
	return nil
}
