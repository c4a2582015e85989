// Package spark draws a number or a few of them in one row: sparklines and bars.
package spark

import (
	"math"
	"strings"
)

// Glyphs is the set of characters to draw with.
type Glyphs struct {
	levels   []string // of a sparkline, lowest first
	partials []string // of a bar's last cell, least first; may be empty
	full     string
	empty    string
}

// Unicode draws with block elements, ASCII with what every terminal has.
var (
	Unicode = Glyphs{
		levels:   []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		partials: []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉"},
		full:     "█",
		empty:    "░",
	}
	ASCII = Glyphs{
		levels: []string{"_", ".", "-", "=", "+", "*", "#", "@"},
		full:   "#",
		empty:  "-",
	}
)

// Sparkline draws the newest w values, the newest at the right, on a scale
// from 0 to limit (with limit <= 0: to the largest value shown). A value that
// is not a number leaves a blank.
func Sparkline(values []float64, w int, limit float64) string {
	return Unicode.Sparkline(values, w, limit)
}

// Bar draws fraction (0 to 1) as a bar of w cells; NaN is drawn as N/A.
func Bar(fraction float64, w int) string { return Unicode.Bar(fraction, w) }

// Share is used/total for Bar and NaN when either is unknown.
func Share(used, total *float64) float64 {
	if used == nil || total == nil || !(*total > 0) {
		return math.NaN()
	}
	return *used / *total
}

// Sparkline is like the function of that name, with the characters of g.
func (g Glyphs) Sparkline(values []float64, w int, limit float64) string {
	if w <= 0 {
		return ""
	}
	values = values[max(0, len(values)-w):]
	if !(limit > 0) {
		limit = 0
		for _, v := range values {
			if finite(v) {
				limit = max(limit, v)
			}
		}
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", w-len(values)))
	for _, v := range values {
		b.WriteString(g.level(v, limit))
	}
	return b.String()
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (g Glyphs) level(v, limit float64) string {
	top := len(g.levels) - 1
	switch {
	case math.IsNaN(v):
		return " "
	case v >= limit && v > 0:
		return g.levels[top]
	case !(v > 0):
		return g.levels[0]
	}
	return g.levels[int(v/limit*float64(top)+0.5)]
}

// Bar is like the function of that name, with the characters of g.
func (g Glyphs) Bar(fraction float64, w int) string {
	if w <= 0 {
		return ""
	}
	if math.IsNaN(fraction) {
		return pad("N/A", w)
	}
	steps := len(g.partials) + 1
	n := int(math.Round(min(max(fraction, 0), 1) * float64(w*steps)))
	if n == 0 && fraction > 0 && steps > 1 {
		n = 1 // a little is not nothing
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(g.full, n/steps))
	rest := w - n/steps
	if n%steps > 0 {
		b.WriteString(g.partials[n%steps-1])
		rest--
	}
	b.WriteString(strings.Repeat(g.empty, rest))
	return b.String()
}

// pad cuts or fills ASCII text to w cells.
func pad(s string, w int) string {
	if len(s) >= w {
		return s[:w]
	}
	return s + strings.Repeat(" ", w-len(s))
}
