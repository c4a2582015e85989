// Package shell keeps what a program says of its own failure that has the terminal.
package shell

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/ui/text"
)

// Shell is a program that has the terminal: a shell on a node. What it says of its own
// failure is gone with the terminal when the screen is back, so it is kept.
type Shell struct {
	mu   sync.Mutex
	said []byte // the end of it
}

const (
	// saidMost is how much of what it says is kept.
	saidMost = 4 << 10
	// saidLimit is how long the screen waits for others that still hold its error
	// output, such as a connection that is kept for the next shell.
	saidLimit = time.Second
)

// Watch has the error output of a program, which is not started yet, go to a terminal
// and be kept.
func Watch(c *exec.Cmd, terminal io.Writer) *Shell {
	s := &Shell{}
	c.Stderr, c.WaitDelay = io.MultiWriter(terminal, s), saidLimit
	return s
}

// Write implements io.Writer.
func (s *Shell) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, b...)
	s.said = s.said[max(0, len(s.said)-saidMost):]
	return len(b), nil
}

// Ended tells how the shell on a node ended.
func (s *Shell) Ended(node string, err error) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, why, failed := strings.Cut("\n"+string(s.said), "\ndlwb: ")
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return "the shell on " + node + " was closed"
	case failed:
		why, next, _ := strings.Cut(strings.TrimSpace(why), "\n  next: ")
		if next != "" {
			why += " → " + next
		}
		return "no shell on " + node + ": " + text.Word(why)
	}
	return "the shell on " + node + " ended: " + text.Word(err.Error())
}
