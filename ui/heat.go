package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// scales say what is drawn as idle and what as full.
var scales = [session.Quantities]struct {
	name, unit string
	lo, hi     float64
}{
	{"utilisation", "%", 0, 100},
	{"memory", "%", 0, 100},
	{"temperature", "°C", 30, 90},
	{"power", "% of its limit", 0, 100},
}

// heatView is how the heatmap is looked at.
type heatView struct {
	shows  session.Quantity
	pace   int  // which of the paces, counted from 1; 0 is what suits the width
	detail bool // a row for each GPU, whatever room there is
	top    int
}

// heatSpan is how many seconds are at least shown until somebody says otherwise.
const heatSpan = 120

// paceFor is how many seconds a column stands for.
func (v *heatView) paceFor(columns int) float64 {
	if v.pace > 0 {
		return paces[v.pace-1]
	}
	for _, p := range paces {
		if p*float64(columns) >= heatSpan {
			return p
		}
	}
	return paces[len(paces)-1]
}

// paces are the seconds that one column stands for.
var paces = []float64{1, 2, 5, 10, 20, 30, 60}

// heatCommands are the keys of the heatmap.
func heatCommands() []command {
	return []command{
		{keys: []string{"h"}, name: "GPUs", help: "every GPU of every node over time, as a heatmap", at: inSession &^ atHeat, foot: 4, show: atNodes | atTrain, can: (*Model).noHeat, do: goer(atHeat)},
		{keys: []string{"c"}, name: "quantity", help: "utilisation, memory, temperature, power", at: atHeat, foot: 1, do: (*Model).nextQuantity},
		{keys: []string{"enter"}, name: "each GPU", help: "a row for each GPU, or all nodes on one screen again", at: atHeat, foot: 2, do: (*Model).toggleHeatDetail},
		{keys: []string{"+", "="}, name: "finer", help: "less time in one column", at: atHeat, foot: 3, do: func(m *Model) tea.Cmd { return m.heatPace(-1) }},
		{keys: []string{"-"}, name: "coarser", help: "more time in one column", at: atHeat, do: func(m *Model) tea.Cmd { return m.heatPace(1) }},
	}
}

func (m *Model) noHeat() string {
	if m.ses == nil || len(m.ses.State.Nodes) == 0 {
		return "no node has answered yet"
	}
	return ""
}

func (m *Model) nextQuantity() tea.Cmd {
	m.heat.shows = (m.heat.shows + 1) % session.Quantities
	return nil
}

func (m *Model) toggleHeatDetail() tea.Cmd {
	m.heat.detail, m.heat.top = !m.heat.detail, 0
	return nil
}

func (m *Model) heatPace(d int) tea.Cmd {
	v := &m.heat
	if v.pace == 0 {
		v.pace = 3
	}
	v.pace = text.Clamp(v.pace+d, 1, len(paces))
	return nil
}

// moveHeat scrolls by nodes' rows.
func (m *Model) moveHeat(d int) { m.heat.top = max(m.heat.top+text.Clamp(d, -1<<20, 1<<20), 0) }
