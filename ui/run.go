package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"
)

// Run shows the screen until it is closed. What runs on clusters goes on
// afterwards; Result says what that is.
func Run(ctx context.Context, bench Bench, opts Options) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends every command that waits
	opts.NoSync = opts.NoSync || os.Getenv("DLWB_NO_SYNC") != ""
	if opts.Here == "" {
		opts.Here = profileHere()
	}
	m := New(ctx, bench, opts)
	// Signals end ctx, and that ends the program. Bubble Tea's own handler
	// must not hear them too: when both do, it waits for itself for ever.
	how := []tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler()}
	if opts.Input != nil {
		how = append(how, tea.WithInput(opts.Input))
	}
	_, err := tea.NewProgram(m, how...).Run()
	result := m.Result()
	m.leaveSession()
	if err != nil && !errors.Is(err, tea.ErrInterrupted) && !(errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil) {
		return result, fmt.Errorf("the screen could not be shown: %w (dlwb --plain prints the same as lines)", err)
	}
	return result, nil
}

// Result is what is left to say when the screen is closed.
func (m *Model) Result() Result {
	m.keepResult()
	r := m.left
	r.Running = m.going()
	return r
}

// keepResult notes what the session that is left came to: whoever goes home
// first and quits there still gets the exit code of the run.
func (m *Model) keepResult() {
	if s := m.ses; s != nil && !s.Past {
		m.left = Result{Cluster: s.Cluster, Run: s.State.Run, Ended: s.State.Ended, Receipt: s.State.Receipt}
	}
}

// profileHere is the path of the profile in the present directory, under the
// name that dlwb init gives it.
func profileHere() string {
	path, err := filepath.Abs("dlwb.yaml")
	if err != nil {
		return ""
	}
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	return path
}
