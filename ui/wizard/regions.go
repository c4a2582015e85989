package wizard

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/text"
)

// regionPicker is the choice of one region, or of several in order.
type regionPicker struct {
	marked []string
	typed  []string // regions that are not in the list
	known  []about.Region
}

// open begins with the regions that a draft has.
func (r *regionPicker) open(provider, regions string) {
	r.known = providers.Named(provider).Regions
	r.marked = splitList(regions)
	for _, name := range r.marked {
		r.add(name)
	}
}

// add puts a region into the list that is not there.
func (r *regionPicker) add(name string) {
	for _, row := range r.rows() {
		if row[0] == name {
			return
		}
	}
	r.typed = append(r.typed, name)
}

const (
	rowDefault = "" // the region that the configuration of the provider names
	rowOther   = "another"
)

// rows are all that can be picked: the default, the known, the typed, another.
func (r *regionPicker) rows() [][2]string {
	out := [][2]string{{rowDefault, "the region of your own configuration"}}
	for _, region := range r.known {
		out = append(out, [2]string{region.Name, region.Place})
	}
	for _, name := range r.typed {
		out = append(out, [2]string{name, ""})
	}
	return append(out, [2]string{rowOther, "type its name"})
}

// names are the regions that are known.
func (r *regionPicker) names() []string {
	out := make([]string, len(r.known))
	for i, region := range r.known {
		out[i] = region.Name
	}
	return out
}

func (r *regionPicker) mark(name string) {
	if i := slices.Index(r.marked, name); i >= 0 {
		r.marked = slices.Delete(r.marked, i, i+1)
		return
	}
	r.marked = append(r.marked, name)
}

func splitList(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
}

// drawRegions is the list of regions; marked ones have their turn's number.
func (z *Wizard) drawRegions(l text.Look, w, h int) []string {
	rows := z.region.rows()
	note := l.Styles.Dim.Of("enter picks one and goes on; c marks several, which are tried in order")
	out := []string{text.Cut(note, w), ""}
	if why := z.faults["machines.region"]; why != "" {
		out[1] = l.Styles.Bad.Of(text.Cut("✗ "+why, w))
	}
	n := max(h-len(out), 1)
	top := text.Window(0, z.picked, len(rows), n)
	for i := top; i < min(top+n, len(rows)); i++ {
		name, about := rows[i][0], rows[i][1]
		if name == rowDefault {
			name = "default"
		}
		turn := "    "
		if at := slices.Index(z.region.marked, rows[i][0]); at >= 0 {
			turn = l.Styles.Good.Of(text.Fit(fmt.Sprintf("✓ %d", at+1), 4))
		}
		out = append(out, l.PickRow(i == z.picked, turn+text.Fit(text.Word(name), 18), about, w))
	}
	return out
}

// chooseRegion takes the picked region and goes on.
func (z *Wizard) chooseRegion() tea.Cmd {
	name := z.region.rows()[z.picked][0]
	switch {
	case name == rowOther:
		z.screen.Ask(Prompt{Label: "region", Line: line.New("", z.region.names()...), Done: func(text string) tea.Cmd {
			if text != "" {
				z.region.add(text)
				z.region.marked = []string{text}
				z.takeRegions()
				z.picked = slices.IndexFunc(z.region.rows(), func(row [2]string) bool { return row[0] == text })
			}
			return nil
		}})
		return nil
	case len(z.region.marked) > 1: // several were marked: enter confirms them
	case name == rowDefault:
		z.region.marked = nil
	default:
		z.region.marked = []string{name}
	}
	return z.Next()
}

// takeRegions puts the marked regions into the draft.
func (z *Wizard) takeRegions() {
	z.draft.Region = strings.Join(z.region.marked, ", ")
	z.judge()
}
