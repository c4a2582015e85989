package text

import (
	"strings"
	"time"

	"charm.land/bubbles/v2/spinner"
)

// Look is what drawing needs to know of the screen besides what is drawn: its
// inks and signs, and the moment.
type Look struct {
	Styles *Styles
	Now    time.Time
	// Spin counts the turns of spinners.
	Spin int
	// ASCII says that the terminal shows ASCII only, Colourless that it shows no
	// colour.
	ASCII, Colourless bool
}

// spinFrames are those of bubbles' spinner. Its own ticks are not used: one clock
// turns all that turns on the screen, and stands still when nothing does.
var spinFrames = spinner.MiniDot.Frames

// Spinner is the present sign of something that goes on.
func (l Look) Spinner() string { return spinFrames[l.Spin%len(spinFrames)] }

// Scrolled is the part of a page that is seen in h rows, and how much is below.
func (l Look) Scrolled(rows []string, top, h int) []string {
	top = Clamp(top, 0, max(len(rows)-h, 0))
	below := len(rows) - top - h
	if below <= 0 || h < 2 {
		return rows[top:]
	}
	out := append([]string(nil), rows[top:top+h-1]...)
	return append(out, l.Styles.Dim.Of("↓ "+Plural(below+1, "more row")))
}

// Labelled is a list of facts with their names before them.
func (l Look) Labelled(w int, rows ...[2]string) []string {
	var out []string
	for _, r := range rows {
		label := r[0]
		for _, line := range Wrap(r[1], max(w-12, 1)) {
			out = append(out, l.Styles.Dim.Of(Fit(label, 12))+line)
			label = ""
		}
	}
	return out
}

// PickRow is one of several answers to a question.
func (l Look) PickRow(picked bool, name, about string, w int) string {
	mark := "  "
	if picked {
		mark, name = l.Styles.Picked.Of("› "), l.Styles.Picked.Of(name)
	}
	return Cut(mark+name+"  "+l.Styles.Dim.Of(about), w)
}

// Hang breaks a plain text into rows of at most w cells, where one is too few. head
// stands before the first, and blanks as wide before the others.
func Hang(head, txt string, ink Ink, w int) []string {
	indent := Wide(head)
	if indent+Wide(txt) <= w {
		return []string{head + ink.Of(txt)}
	}
	var out []string
	for _, row := range Wrap(txt, max(w-indent, 1)) {
		out = append(out, Cut(head+ink.Of(row), w))
		head = strings.Repeat(" ", indent)
	}
	return out
}

// WrapIn wraps a text that is in one ink.
func WrapIn(ink Ink, txt string, w int) []string {
	out := Wrap(txt, w)
	for i, l := range out {
		out[i] = ink.Of(l)
	}
	return out
}
