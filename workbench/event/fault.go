package event

import (
	"context"
	"errors"
	"strings"
)

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
