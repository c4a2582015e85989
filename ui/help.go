package ui

import (
	"strings"

	"github.com/dlwb/dlwb/ui/text"
)

func helpScreen() screen { return screen{at: atHelp, name: "help", page: (*Model).drawHelp} }

// drawHelp is made from the key table: the keys of where one came from, then
// what is said nowhere else.
func (m *Model) drawHelp(w int) []string {
	from := atHome
	if len(m.path) > 1 {
		from = m.path[len(m.path)-2]
	}
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
		row := text.Cut("  "+s.Key.Of(text.Fit(keys, 15))+name+c.help, w)
		if m.lack(c) != nil {
			row = text.Cut("  "+s.Faint.Of(text.Fit(keys, 15)+name+m.refusal(c)), w)
		}
		switch {
		case len(c.bind.Keys()) == 0:
			help := c.help
			if m.lack(c) != nil {
				help = s.Faint.Of(m.refusal(c))
			}
			more = append(more, text.Cut("  "+text.Fit(c.name(), 20)+help, w))
		case c.acts:
			act = append(act, row)
		default:
			look = append(look, row)
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
