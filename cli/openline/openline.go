// Package openline shows on a terminal the line that somebody has begun and not ended,
// such as a progress bar that is drawn with carriage returns, or a question. It is
// written over where it stands, and wiped before whole lines are printed.
package openline

import (
	"io"

	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/sanitize"
)

// Line is the open line of a terminal. A nil one shows nothing.
type Line struct {
	Out   io.Writer  // the terminal, for text
	Wipe  func()     // makes the line on which the terminal stands empty
	Width func() int // how many columns it has
	shown string
}

// Show shows a text in the place of what it showed before, as far as it goes into one
// row: what is wrapped could not be written over.
func (l *Line) Show(text string) {
	if l == nil {
		return
	}
	if text = ansi.Truncate(sanitize.Word(text), max(l.Width()-1, 1), "…"); text == l.shown {
		return
	}
	l.Hide()
	_, _ = io.WriteString(l.Out, text)
	l.shown = text
}

// Leave ends the line, so that what others print begins on the next.
func (l *Line) Leave() {
	if l != nil && l.shown != "" {
		_, _ = io.WriteString(l.Out, "\n")
		l.shown = ""
	}
}

// Hide makes room for whole lines.
func (l *Line) Hide() {
	if l != nil && l.shown != "" {
		l.Wipe()
		l.shown = ""
	}
}
