package event

import (
	"context"
	"errors"
	"strings"
)

// Fault is a failure for a person to read: what was tried, where, why it
// failed, what to do next, and the last lines of what the command said.
type Fault struct {
	What      string   `json:"what"`
	Node      int      `json:"node"`           // -1 for none
	Host      string   `json:"host,omitempty"` // what the user calls the node
	Why       string   `json:"why"`
	Next      string   `json:"next,omitempty"`
	Command   string   `json:"command,omitempty"`
	LastLines []string `json:"last_lines,omitempty"`
}

// Error makes a fault usable as an error.
func (f *Fault) Error() string {
	s := f.What
	if f.Node >= 0 {
		s += " on " + NodeText(f.Node, f.Host)
	}
	return s + ": " + f.Why
}

// FaultOf gives the fault in an error, or makes one of it.
func FaultOf(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	if errors.Is(err, context.Canceled) {
		return &Fault{What: "interrupted", Node: -1, Why: "dlwb was asked to end"}
	}
	return &Fault{What: "go on", Node: -1, Why: err.Error(), Next: NextOf(err)}
}

// NextOf is what an error says is to be done; empty when it says nothing.
func NextOf(err error) string {
	var advised interface{ Advice() string }
	if errors.As(err, &advised) {
		return advised.Advice()
	}
	return ""
}

// SaidOf is the command that an error is about and its last lines; empty: it is about none.
func SaidOf(err error) (command string, last []string) {
	var about interface{ Said() (string, []string) }
	if errors.As(err, &about) {
		return about.Said()
	}
	return "", nil
}

// LastLines are the last lines of a text.
func LastLines(text string, n int) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-n):]
}
