package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/text"
)

// palettePicker is the list of everything that can be done here, found by
// typing. What can't be done now says why.
type palettePicker struct {
	line   line.Line
	picked int
}

func (m *Model) openPalette() tea.Cmd {
	m.openDialog(&palettePicker{})
	return nil
}

// found lists the commands of this screen that match what was typed.
func (p *palettePicker) found(m *Model) []*command {
	var out []*command
	want := strings.Fields(strings.ToLower(p.line.Text()))
	for i := range m.table {
		c := &m.table[i]
		if c.at&m.here() == 0 || c.bind.Help().Key == ":" {
			continue
		}
		twin := func(o *command) bool { return o.name() == c.name() && o.help == c.help } // by another key
		if text.HasAll(strings.ToLower(c.name()+" "+c.help), want) && !slices.ContainsFunc(out, twin) {
			out = append(out, c)
		}
	}
	// What can't be done now is there to be found, after what can.
	slices.SortStableFunc(out, func(a, b *command) int { return min(len(m.refusal(a)), 1) - min(len(m.refusal(b)), 1) })
	return out
}

func (p *palettePicker) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	found := p.found(m)
	switch k.String() {
	case "esc":
		m.closeDialog()
	case "ctrl+c":
		m.closeDialog()
		return m.askQuit()
	case "up", "shift+tab":
		p.picked = text.Clamp(p.picked-1, 0, len(found)-1)
	case "down", "tab":
		p.picked = text.Clamp(p.picked+1, 0, len(found)-1)
	case "enter":
		m.closeDialog()
		if len(found) > 0 {
			return m.carryOut(found[text.Clamp(p.picked, 0, len(found)-1)])
		}
	default:
		p.line.Key(k)
		p.picked = 0
	}
	return nil
}

func (p *palettePicker) draw(m *Model, w, h int) text.Block {
	inner := text.Clamp(w-14, 1, 98)
	found := p.found(m)
	picked := text.Clamp(p.picked, 0, len(found)-1)
	about := []string{""} // the sentence of the picked one, for which its row may have no room
	if len(found) > 0 {
		about = append(about, text.WrapIn(m.styles.Dim, m.about(found[picked]), inner)...)
	}
	about = text.Exactly(about, inner, 3)
	rows := text.Clamp(h-8-len(about), 1, 14)
	lines := []string{m.styles.Key.Of(":") + " " + p.line.Draw(&m.styles, inner-2), ""}
	top := text.Window(0, picked, len(found), rows)
	for i := top; i < top+rows; i++ {
		switch {
		case i < len(found):
			lines = append(lines, p.row(m, found[i], i == p.picked, inner))
		case i == 0:
			lines = append(lines, m.styles.Dim.Of("nothing is called that; esc leaves"))
		default:
			lines = append(lines, "")
		}
	}
	return boxed(m, append(lines, about...), inner)
}

// about says what a command does, or why it can't now.
func (m *Model) about(c *command) string {
	if why := m.refusal(c); why != "" {
		return "not now: " + why
	}
	return c.help
}

func (p *palettePicker) row(m *Model, c *command, picked bool, w int) string {
	mark, name, ink := "  ", text.Fit(c.name(), 20), m.styles.Dim
	if picked {
		mark, name = m.styles.Picked.Of("› "), m.styles.Picked.Of(name)
	}
	if m.refusal(c) != "" {
		ink = m.styles.Faint
	}
	return text.Cut(mark+name+m.styles.Key.Of(text.Fit(c.bind.Help().Key, 10))+ink.Of(m.about(c)), w)
}
