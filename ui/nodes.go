package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/ui/nodes"
)

func heatScreen() screen {
	return screen{at: atHeat, name: "GPUs", draw: (*Model).drawHeat, move: (*Model).moveHeat, keys: heatCommands}
}

func nodesScreen() screen { return screen{at: atNodes, name: "nodes", page: (*Model).drawNodes} }

// heatCommands are the keys of the heatmap.
func heatCommands() []command {
	return []command{
		{bind: on("GPUs", "h"), help: "every GPU of every node over time, as a heatmap", at: inSession &^ atHeat, foot: 4, show: atNodes | atTrain, needs: job.Telemetry, can: (*Model).noHeat, do: goer(atHeat)},
		{bind: on("quantity", "c"), help: "utilisation, memory, temperature, power", at: atHeat, foot: 1, do: onHeat((*nodes.Heat).Next)},
		{bind: on("each GPU", "enter"), help: "a row for each GPU, or all nodes on one screen again", at: atHeat, foot: 2, do: onHeat((*nodes.Heat).ToggleDetail)},
		{bind: on("finer", "+", "="), help: "less time in one column", at: atHeat, foot: 3, do: onHeat(func(v *nodes.Heat) { v.Coarser(-1) })},
		{bind: on("coarser", "-"), help: "more time in one column", at: atHeat, do: onHeat(func(v *nodes.Heat) { v.Coarser(1) })},
	}
}

// onHeat makes the command that changes how the heatmap is looked at.
func onHeat(do func(*nodes.Heat)) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		do(&m.heat)
		return nil
	}
}

func (m *Model) noHeat() string {
	if m.ses == nil || len(m.ses.State.Nodes) == 0 {
		return "no node has answered yet"
	}
	return ""
}

func (m *Model) moveHeat(d int) { m.heat.Move(d) }

// nodes is the nodes of the session as they are drawn.
func (m *Model) nodes() nodes.Page { return nodes.Page{Look: m.looks(), Of: m.ses} }

func (m *Model) drawHeat(w, h int) []string { return m.nodes().Heatmap(&m.heat, w, h) }

// drawNodes is every node in full, and what it all costs.
func (m *Model) drawNodes(w int) []string {
	out := m.nodes().List(w)
	if len(m.ses.State.Nodes) == 0 {
		return out
	}
	return append(out, m.costRows(w)...)
}
