// Package sign says in a sign, a word and an ink how something stands: phases,
// verdicts, ends that come near, faults.
package sign

import (
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// Phase is a phase as a sign and a word.
func Phase(l text.Look, p event.Phase) string {
	s := l.Styles
	switch p {
	case event.PhaseRunning:
		return s.Good.Of("● running")
	case event.PhaseStarting:
		return s.Accent.Of("◐ starting")
	case event.PhaseStopping:
		return s.Warn.Of("◌ stopping")
	case event.PhaseUnresolved:
		return s.Bad.Of("! UNRESOLVED")
	case event.PhaseGone:
		return s.Dim.Of("· gone")
	case event.PhaseStopped:
		return s.Warn.Of("○ stopped")
	case event.PhaseEnded:
		return s.Warn.Of("◌ ended")
	}
	return s.Text.Of("○ " + text.Word(string(p)))
}

// Verdict is how a run ended, as a sign and a word.
func Verdict(l text.Look, v event.Verdict, code *int) string {
	switch v {
	case "":
		return l.Styles.Good.Of("● running")
	case event.Succeeded:
		return l.Styles.Good.Of("✓ succeeded")
	case event.Stopped:
		return l.Styles.Warn.Of("■ stopped")
	}
	text := "✗ " + text.Word(string(v))
	if code != nil && v == event.ExitedBad {
		text += fmt.Sprintf(" (%d)", *code)
	}
	return l.Styles.Bad.Of(text)
}

// Countdowns turn to a warning, then to an alarm, when so little is left.
const (
	warnLeft  = 30 * time.Minute
	alarmLeft = 5 * time.Minute
)

// Ends counts down to a moment.
func Ends(l text.Look, at time.Time) string {
	switch left := at.Sub(l.Now); {
	case left <= 0:
		return l.Styles.Bad.Of("! overdue " + units.Clock(-left))
	case left < alarmLeft:
		return l.Styles.Bad.Of("! ends in " + units.Clock(left))
	case left < warnLeft:
		return l.Styles.Warn.Of("ends in " + units.Clock(left))
	default:
		return l.Styles.Dim.Of("ends in ") + units.Clock(left)
	}
}

// faultLines is how many last lines tell what went wrong; l shows the rest.
const faultLines = 12

// Fault says what was tried, on what, why it failed, its last lines, and
// what to do next.
func Fault(l text.Look, f event.Fault, w int) []string {
	s := l.Styles
	what := f.What
	if f.Node >= 0 {
		what += " on " + text.Word(event.NodeText(f.Node, f.Host))
	}
	var out []string
	for _, l := range text.Wrap(what+": "+f.Why, w) {
		out = append(out, s.Strong.Of(l))
	}
	if f.Command != "" {
		for i, l := range text.Wrap(f.Command, max(w-4, 1)) {
			lead := "    "
			if i == 0 {
				lead = "  $ "
			}
			out = append(out, s.Dim.Of(lead)+l)
		}
	}
	last := f.LastLines
	if len(last) > faultLines {
		last = last[len(last)-faultLines:]
	}
	out = append(out, text.Indent(Quoted(l, last, w-2), 2)...)
	if f.Next != "" {
		for i, l := range text.Wrap(f.Next, max(w-6, 1)) {
			lead := "      "
			if i == 0 {
				lead = s.Key.Of("next  ")
			}
			out = append(out, lead+l)
		}
	}
	return out
}

// Quoted shows what a command said last, set apart by a line at its left.
func Quoted(l text.Look, lines []string, w int) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = l.Styles.Faint.Of("│ ") + text.Cut(line, w-2)
	}
	return out
}

// WithNext puts what to do next behind what was said.
func WithNext(said, next string) string {
	if next == "" {
		return said
	}
	return said + " — " + next
}
