package shell

import (
	"context"
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
)

// Turns is who has the terminal: the screen, or the shell that dlwb was started from.
type Turns struct {
	continued <-chan os.Signal
	aside     bool // the screen gave it away by itself, and takes it back by itself
}

// NewTurns gives the terminal to the screen. A value of continued is sent whenever this
// process goes on after it was stopped.
func NewTurns(continued <-chan os.Signal) Turns { return Turns{continued: continued} }

// Continued says that this process was stopped and goes on.
type Continued struct{}

// Suspend puts the screen aside until the shell wakes it up.
func (t *Turns) Suspend() tea.Cmd {
	t.aside = true
	return tea.Suspend
}

// Await waits until this process goes on after it was stopped, where that is told.
func (t *Turns) Await(ctx context.Context) tea.Cmd {
	if t.continued == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case <-t.continued:
			return Continued{}
		case <-ctx.Done():
			return nil
		}
	}
}

// Reclaim takes the terminal back. A process that kill -STOP stopped could give nothing
// away: the shell has set the terminal for itself meanwhile, and leaves it so at fg. Keys
// would only come at the end of a line, and echoed.
func (t *Turns) Reclaim(ctx context.Context) tea.Cmd {
	if t.aside {
		t.aside = false
		return t.Await(ctx)
	}
	return tea.Batch(t.Await(ctx), tea.Exec(nobody{}, nil))
}

// nobody is a program that has the terminal for no time at all: the screen gives the
// terminal away and takes it back as with any other.
type nobody struct{}

// Run implements tea.ExecCommand.
func (nobody) Run() error { return nil }

// SetStdin implements tea.ExecCommand.
func (nobody) SetStdin(io.Reader) {}

// SetStdout implements tea.ExecCommand.
func (nobody) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (nobody) SetStderr(io.Writer) {}
