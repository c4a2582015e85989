package remote

import (
	"context"
	"io"

	"github.com/dlwb/dlwb/remote/wire"
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
	term := p.Term
	if term == "" {
		term = "xterm-256color"
	}
	st, l, err := n.callOn(ctx, wire.Exec, wire.ExecRequest{
		Line: p.Line, Input: true, Pty: &wire.Pty{Term: term, Width: p.Width, Height: p.Height},
	})
	if err != nil {
		return -1, err
	}
	outs := outputsOf(Cmd{Stdout: p.Stdout})
	go feed(st, p.Stdin, outs.heard)
	resizing, enough := context.WithCancel(ctx)
	defer enough()
	go resize(resizing, st, p.Resize)
	res, err := n.finish(ctx, Cmd{Line: p.Line, Quiet: NoLimit}, execution{st, l, "run a shell"}, outs)
	outs.shut()
	return res.ExitCode, err
}

func resize(ctx context.Context, st *wire.Stream, sizes <-chan [2]int) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok || st.Send(wire.ExecInput{Width: max(size[0], 1), Height: max(size[1], 1)}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
