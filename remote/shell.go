package remote

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"
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
	out := gateTo(p.Stdout)
	s.Stdin, s.Stdout, s.Stderr = p.Stdin, out, out
	ended := make(chan struct{})
	var started bool
	go func() {
		defer close(ended)
		defer s.free()
		if err = startPty(s, p); err == nil {
			started = true
			go resize(s, p.Resize, ended)
			err = s.Wait()
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
	res, err := n.outcome("run a shell", s.link, outputs{out, out}, started, err)
	return res.ExitCode, err
}

func startPty(s *session, p Pty) error {
	term := p.Term
	if term == "" {
		term = "xterm-256color"
	}
	if err := s.RequestPty(term, max(p.Height, 1), max(p.Width, 1), ssh.TerminalModes{}); err != nil {
		return fmt.Errorf("ask for a terminal: %w", err)
	}
	if p.Line == "" {
		return s.Shell()
	}
	return s.Start(p.Line)
}

func resize(s *session, sizes <-chan [2]int, ended <-chan struct{}) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			_ = s.WindowChange(max(size[1], 1), max(size[0], 1))
		case <-ended:
			return
		}
	}
}
