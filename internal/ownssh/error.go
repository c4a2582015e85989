package ownssh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/shellword"
)

// Error says why the user's own ssh does not get to a machine.
type Error struct {
	Name string
	Why  string
	Next string // what to do about it
	// Refused is when a login was refused, there or on the way, without what only a
	// person has: that nothing is heard of the machine says nothing of it. Zero: none was.
	Refused time.Time
}

// Error is both in words: a screen that shows why a host is away shows no more.
func (e *Error) Error() string { return e.Why + ": " + e.Next }

// Failed makes an error of what ssh said when it ended by itself.
func (w Way) Failed(said string) *Error {
	lines := wordsOf(said)
	last := ""
	if len(lines) > 0 {
		last = lines[len(lines)-1]
	}
	e := &Error{Name: w.Name, Why: "your own ssh does not get to " + w.Name + ": " + last, Next: w.Login()}
	denied := slices.IndexFunc(lines, func(line string) bool {
		return strings.Contains(line, "Permission denied") || strings.Contains(line, "Too many authentication failures")
	})
	switch {
	case denied >= 0:
		e.Refused = time.Now()
		e.Why = fmt.Sprintf("your own ssh keeps no connection to %s, and a login without you is refused: %s", w.Name, lines[denied])
		e.Next = w.open()
		refusals.Store(w, refusal{e, w.Master(context.Background())})
	case last == "":
		e.Why, e.Next = "the connection that your own ssh kept to "+w.Name+" has ended", w.open()
	case strings.Contains(last, "Host key verification failed"):
		e.Next = w.Login() + " once, and compare the key that it shows"
	}
	return e
}

// silent is that nothing came.
func (w Way) silent(limit time.Duration) *Error {
	return &Error{Name: w.Name, Why: fmt.Sprintf("no answer from %s by your own ssh within %v", w.Name, limit), Next: "is it on, and in this network? " + w.Login()}
}

// dead is that the connection which a process keeps says nothing, while the machine
// answered to a new one, with an error.
func (w Way) dead(err error, master string) error {
	var own *Error
	if !errors.As(err, &own) || own.Refused.IsZero() {
		return err
	}
	e := &Error{Name: w.Name, Refused: own.Refused, Why: "the connection that your own ssh keeps to " + w.Name + " is dead, and a login without you is refused",
		Next: shellword.Join(append(w.ssh(), "-O", "exit", w.Name)...) + ", then " + w.open()}
	refusals.Store(w, refusal{e, master})
	return e
}

// open says which command opens the connection that ssh keeps.
func (w Way) open() string {
	s := w.settings(context.Background())
	switch path := s["controlpath"]; {
	case len(s) == 0:
		return w.Login()
	case path == "" || path == "none":
		return "in your ssh configuration set ControlPath for " + w.Name + " (ControlPath ~/.ssh/master-%C, ControlMaster auto, ControlPersist 12h), then " + w.Login()
	case slices.Contains([]string{"auto", "autoask", "ask", "yes", "true"}, s["controlmaster"]):
		return w.Login() + " opens it again"
	}
	return shellword.Join(append(w.ssh(), "-o", "ControlMaster=yes", "-fN", w.Name)...) + " opens it again"
}

// wordsOf are the lines of what was said, without what could move a cursor.
func wordsOf(said string) (lines []string) {
	for line := range strings.Lines(strings.ToValidUTF8(said, "?")) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				return -1
			}
			return r
		}, line))
		if line != "" {
			lines = append(lines, strings.ToValidUTF8(line[:min(len(line), 300)], ""))
		}
	}
	return lines
}
