package ui

import (
	"strings"

	"github.com/dlwb/dlwb/ui/text"
)

func helpScreen() screen {
	return screen{at: atHelp, name: "help", page: (*Model).drawHelp, title: (*Model).helpTitle}
}

// helpTitle is that of the screen that the help is about.
func (m *Model) helpTitle() (left, right string) { return m.titleOf(m.helpOf()) }

// helpOf is the screen that the help is about: where one came from.
func (m *Model) helpOf() place {
	if len(m.path) > 1 {
		return m.path[len(m.path)-2]
	}
	return atHome
}

// drawHelp is made from the key table: the keys of where one came from, then
// what is said nowhere else.
func (m *Model) drawHelp(w int) []string {
	from := m.helpOf()
	s := m.styles
	var look, act, more []string
	for i := range m.table {
		c := &m.table[i]
		if c.at&from == 0 {
			continue
		}
		keys := strings.Join(c.bind.Keys(), " ")
		name := text.Fit(c.name(), 19)
		if w < 100 { // the sentence says it alone
			name = ""
		}
		head, about, ink := "  "+s.Key.Of(text.Fit(keys, 15))+name, c.help, text.Ink{}
		if m.lack(c) != nil {
			head, about, ink = "  "+s.Faint.Of(text.Fit(keys, 15)+name), m.refusal(c), s.Faint
		}
		rows := text.Hang(head, about, ink, w)
		switch {
		case len(c.bind.Keys()) == 0:
			help := c.help
			if m.lack(c) != nil {
				help = s.Faint.Of(m.refusal(c))
			}
			more = append(more, text.Cut("  "+text.Fit(c.name(), 20)+help, w))
		case c.acts:
			act = append(act, rows...)
		default:
			look = append(look, rows...)
		}
	}
	out := append([]string{s.Strong.Of("Keys on the " + placeList(from) + " screen"), "", s.Dim.Of("looking")}, look...)
	if len(act) > 0 {
		out = append(append(out, "", s.Dim.Of("acting on the cluster")), act...)
	}
	if len(more) > 0 {
		out = append(append(out, "", s.Dim.Of("in the palette only (:)")), more...)
	}
	return append(out, "", s.Dim.Of("Quitting leaves every cluster running: dlwb attach comes back to it."))
}
