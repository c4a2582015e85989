package remote

import (
	"context"
	"fmt"
	"io"
)

// Pty is a command with a terminal.
type Pty struct {
	Line          string // empty: the user's login shell
	Term          string // as in $TERM; empty: "xterm-256color"
	Width, Height int    // in cells
	Resize        <-chan [2]int
	Stdin         io.Reader
	Stdout        io.Writer
}

// Shell runs a command in a terminal on the node and returns its exit code. It
// ends with ctx at the latest. A Stdin that blocks in Read is left behind.
func (n *Node) Shell(ctx context.Context, p Pty) (int, error) {
	s, err := n.session(ctx, true)
	if err != nil {
		return -1, err
	}
	outs := outputsOf(Cmd{Stdout: p.Stdout})
	out := outs.stdout
	s.Streams(p.Stdin, out, out)
	ended := make(chan struct{})
	var started bool
	go func() {
		defer close(ended)
		defer s.free()
		if err = startPty(ctx, s, p); err == nil {
			started = true
			go resize(ctx, s, p.Resize, ended)
			err = s.Wait(context.Background()) // ends with the connection
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		out.shut()
		// The terminal's end is a SIGHUP to everything that runs in it.
		go s.free()
		return -1, n.wrap("run a shell", context.Cause(ctx))
	}
	res, err := n.outcome("run a shell", s.link, outputs{out, out, outs.heard}, started, err)
	return res.ExitCode, err
}

func startPty(ctx context.Context, s *session, p Pty) error {
	term := p.Term
	if term == "" {
		term = "xterm-256color"
	}
	if err := s.Pty(ctx, term, max(p.Height, 1), max(p.Width, 1)); err != nil {
		return fmt.Errorf("ask for a terminal: %w", err)
	}
	if p.Line == "" {
		return s.Shell(ctx)
	}
	return s.Start(ctx, p.Line)
}

func resize(ctx context.Context, s *session, sizes <-chan [2]int, ended <-chan struct{}) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			_ = s.Resize(ctx, max(size[1], 1), max(size[0], 1))
		case <-ended:
			return
		}
	}
}
