package ui

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dlwb/dlwb/ui/plot"
)

func (t *trial) draw(m *Model, w, h int) block {
	s := m.styles
	inner := clamp(w-8, 1, 96)
	lines := []string{s.Strong.of("A metric of your own"), "",
		t.field(m, "name", t.name, !t.onRegex, inner), t.field(m, "regex", t.regex, t.onRegex, inner), ""}
	on, text := t.verdict(m)
	lines = append(lines, wrapInk(on, text, inner)...)
	foot := []string{"", s.Key.of("enter") + s.Dim.of(" reads the whole log by it   ") + s.Key.of("tab") + s.Dim.of(" the other field   ") + s.Key.of("esc") + s.Dim.of(" leaves")}
	room := h - 2 - len(lines) - len(foot)
	if chart := min(room-6, 7); t.values.Len() > 1 && chart >= 3 {
		lines = append(append(lines, ""), t.chart(m, inner, chart)...)
		room -= chart + 1
	}
	if room > 2 {
		lines = append(append(lines, ""), t.found(m, inner, min(room-1, 6))...)
	}
	lines = append(lines, foot...)
	for i := range lines {
		lines[i] = cut(lines[i], inner)
	}
	return boxed(m, lines[:clamp(len(lines), 1, max(h-2, 1))], inner)
}

// field is a line to type into.
func (t *trial) field(m *Model, label, text string, focus bool, w int) string {
	room := max(w-9, 1)
	text = endOf(text, room)
	if !focus {
		return m.styles.Dim.of(fit(label, 8)) + text
	}
	return m.styles.Key.of(fit(label, 8)) + text + m.styles.Cursor.of(" ")
}

// verdict is what the expression comes to, as ink and text.
func (t *trial) verdict(m *Model) (ink, string) {
	s := m.styles
	where := fmt.Sprintf("the last %s of %s", plural(t.lines, "line"), rankName(t.rank))
	_, newest, ok := t.values.Last()
	switch {
	case t.fault != "":
		return s.Bad, "the log can't be read: " + t.fault
	case t.regex == "":
		return s.Dim, t.wrong
	case t.wrong != "":
		return s.Warn, "✗ " + t.wrong
	case t.values.Len() == 0:
		return s.Warn, "it catches nothing in " + where
	case !ok:
		return s.Warn, fmt.Sprintf("✓ %s in %s, none of them finite", plural(t.values.Len(), "value"), where)
	}
	lo, hi, _ := t.values.Range()
	return s.Good, fmt.Sprintf("✓ %s in %s: %s to %s, newest %s",
		plural(t.values.Len(), "value"), where, number(lo), number(hi), number(newest))
}

// wrapInk wraps a text that is in one ink.
func wrapInk(on ink, text string, w int) []string {
	var out []string
	for _, l := range wrap(text, w) {
		out = append(out, on.of(l))
	}
	return out
}

func (t *trial) chart(m *Model, w, h int) []string {
	c := plot.Chart{ASCII: m.ascii, NoLegend: true, Ends: true, FormatY: number, AxisStyle: m.styles.Axis, GapStyle: m.styles.Gap,
		Series: []plot.Line{{Series: &t.values, Style: lipgloss.NewStyle().Foreground(m.styles.Series[0])}}}
	return strings.Split(c.Draw(w, h), "\n")
}

// found is the newest lines with a value in them, or without any the newest
// lines there are: an expression is written by looking at them.
func (t *trial) found(m *Model, w, h int) []string {
	var out []string
	if len(t.caught) == 0 {
		text := strings.Split(strings.TrimRight(string(t.text), "\n"), "\n")
		for _, l := range text[max(len(text)-h, 0):] {
			out = append(out, m.styles.Dim.of(cut(word(l), w)))
		}
		return out
	}
	for _, c := range t.caught[max(len(t.caught)-h, 0):] {
		before, value := word(c.text[:c.from]), word(c.text[c.from:c.to])
		room := w - wide(value)
		if wide(before) > room*2/3 {
			before = endOf(before, max(room*2/3, 1))
		}
		out = append(out, m.styles.Dim.of(before)+m.styles.Picked.of(value)+m.styles.Dim.of(word(c.text[c.to:])))
	}
	return out
}
