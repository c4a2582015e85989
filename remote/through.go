package remote

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/remote/wire"
)

// Through is a way to a machine by a command of a node that runs a command line
// there and passes its input and output on, as srun does. via gives the node and
// the command, which gets the line as one more word; it is asked each time. All
// goes over the one connection to the node.
func Through(via func(ctx context.Context) (*Node, []string, error)) transport.Opener {
	return func(context.Context) (transport.Machine, error) {
		return &passage{via: via, done: make(chan struct{})}, nil
	}
}

// passage is an open way through a node.
type passage struct {
	via  func(ctx context.Context) (*Node, []string, error)
	done chan struct{}

	mu  sync.Mutex
	err error
}

func (m *passage) Done() <-chan struct{} { return m.done }

func (m *passage) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *passage) Kill(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = why
		close(m.done)
	}
}

// Start runs a line. The agent of the node ends the command with the stream.
func (m *passage) Start(ctx context.Context, line string) (transport.Command, error) {
	if err := m.Err(); err != nil {
		return nil, err
	}
	n, words, err := m.via(ctx)
	if err != nil {
		return nil, err
	}
	words = append(words[:len(words):len(words)], line)
	st, _, err := n.callOn(ctx, wire.Exec, wire.ExecRequest{Line: "exec " + shellword.Join(words...), Input: true})
	if err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	c := &throughCommand{name: n.Name(), st: st, out: out}
	go func() { _ = in.CloseWithError(c.receive(in)) }()
	return c, nil
}

// throughCommand is one command.
type throughCommand struct {
	name   string // of the node
	st     *wire.Stream
	out    *io.PipeReader
	said   transport.Tail
	ending sync.Once
	mu     sync.Mutex // of sending
}

// receive takes what the command gives until it ends.
func (c *throughCommand) receive(to io.Writer) error {
	for {
		var m wire.ExecOutput
		if err := c.st.Recv(&m); err != nil {
			return fmt.Errorf("the way through %s: %w", c.name, err)
		}
		_, _ = c.said.Write(m.Err)
		if _, err := to.Write(m.Out); err != nil {
			return err
		}
		if m.Exit != nil {
			return io.EOF
		}
	}
}

func (c *throughCommand) Read(p []byte) (int, error) { return c.out.Read(p) }

func (c *throughCommand) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for sent := 0; sent < len(p); {
		n := min(len(p)-sent, wire.ChunkMost)
		if err := c.st.Send(wire.ExecInput{Data: p[sent : sent+n]}); err != nil {
			return sent, err
		}
		sent += n
	}
	return len(p), nil
}

func (c *throughCommand) Said() string { return c.said.String() }

// Close ends the command there: the agent does, when the stream is gone.
func (c *throughCommand) Close() error {
	c.ending.Do(func() {
		c.st.Reset()
		_ = c.out.Close()
	})
	return nil
}
