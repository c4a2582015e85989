package ui

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

func (t *trial) draw(m *Model, w, h int) text.Block {
	s := m.styles
	inner := text.Clamp(w-8, 1, 96)
	lines := []string{s.Strong.Of("A metric of your own"), "",
		t.field(m, "name", &t.name, inner), t.field(m, "regex", &t.regex, inner), ""}
	on, txt := t.verdict(m)
	lines = append(lines, text.WrapIn(on, txt, inner)...)
	foot := []string{"", s.Key.Of("enter") + s.Dim.Of(" reads the whole log by it   ") + s.Key.Of("tab") + s.Dim.Of(" the other field   ") + s.Key.Of("esc") + s.Dim.Of(" leaves")}
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
		lines[i] = text.Cut(lines[i], inner)
	}
	return boxed(m, lines[:text.Clamp(len(lines), 1, max(h-2, 1))], inner)
}

// field is a line to type into.
func (t *trial) field(m *Model, label string, typed *line.Line, w int) string {
	room := max(w-8, 1)
	if typed != t.focused() {
		return m.styles.Dim.Of(text.Fit(label, 8)) + text.EndOf(typed.Text(), room)
	}
	return m.styles.Key.Of(text.Fit(label, 8)) + typed.Draw(&m.styles, room)
}

// verdict is what the expression comes to, as ink and text.
func (t *trial) verdict(m *Model) (text.Ink, string) {
	s := m.styles
	where := fmt.Sprintf("the last %s of %s", text.Plural(t.lines, "line"), session.RankName(t.rank))
	_, newest, ok := t.values.Last()
	switch {
	case t.fault != "":
		return s.Bad, "the log can't be read: " + t.fault
	case t.regex.Text() == "":
		return s.Dim, t.wrong
	case t.wrong != "":
		return s.Warn, "✗ " + t.wrong
	case t.values.Len() == 0:
		return s.Warn, "it catches nothing in " + where
	case !ok:
		return s.Warn, fmt.Sprintf("✓ %s in %s, none of them finite", text.Plural(t.values.Len(), "value"), where)
	}
	lo, hi, _ := t.values.Range()
	return s.Good, fmt.Sprintf("✓ %s in %s: %s to %s, newest %s",
		text.Plural(t.values.Len(), "value"), where, text.Number(lo), text.Number(hi), text.Number(newest))
}

func (t *trial) chart(m *Model, w, h int) []string {
	c := plot.Chart{ASCII: m.ascii, NoLegend: true, Ends: true, FormatY: text.Number, AxisStyle: m.styles.Axis, GapStyle: m.styles.Gap,
		Series: []plot.Line{{Series: &t.values, Style: lipgloss.NewStyle().Foreground(m.styles.Series[0])}}}
	return strings.Split(c.Draw(w, h), "\n")
}

// found is the newest lines with a value in them, or without any the newest
// lines there are: an expression is written by looking at them.
func (t *trial) found(m *Model, w, h int) []string {
	var out []string
	if len(t.caught) == 0 {
		txt := strings.Split(strings.TrimRight(string(t.text), "\n"), "\n")
		for _, l := range txt[max(len(txt)-h, 0):] {
			out = append(out, m.styles.Dim.Of(text.Cut(text.Word(l), w)))
		}
		return out
	}
	for _, c := range t.caught[max(len(t.caught)-h, 0):] {
		before, value := text.Word(c.text[:c.from]), text.Word(c.text[c.from:c.to])
		room := w - text.Wide(value)
		if text.Wide(before) > room*2/3 {
			before = text.EndOf(before, max(room*2/3, 1))
		}
		out = append(out, m.styles.Dim.Of(before)+m.styles.Picked.Of(value)+m.styles.Dim.Of(text.Word(c.text[c.to:])))
	}
	return out
}
