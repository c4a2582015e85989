package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/compare"
)

// compareScreen is runs over each other.
func compareScreen() screen {
	return screen{at: atCompare, name: "compare", draw: (*Model).drawCompare, title: (*Model).noTitle, move: (*Model).moveCompare,
		copy: func(m *Model) string { return m.comp.Text() }, back: (*Model).compareBack}
}

func (m *Model) compareRuns() tea.Cmd { return m.compareThese(m.runs.Marked()) }

// compareThese shows runs over each other.
func (m *Model) compareThese(runs []string) tea.Cmd {
	m.openSession("")
	m.ses.Past, m.ses.Follow = true, false
	m.goTo(atCompare)
	var cmd tea.Cmd
	m.comp, cmd = compare.New(m.bench, &m.charts, runs, m.now)
	return cmd
}

// comparison is what is compared as it is drawn.
func (m *Model) comparison() compare.Page { return compare.Page{Look: m.looks(), Comparison: &m.comp} }

func (m *Model) drawCompare(w, h int) []string { return m.comparison().Draw(w, h) }

func (m *Model) noComparison() string {
	if !m.comp.Known() {
		return "what differs is not known yet"
	}
	return ""
}

func (m *Model) toggleFacts() tea.Cmd {
	m.comp.ToggleFacts()
	return nil
}

// compareBack goes from the facts back to the charts, or back in these.
func (m *Model) compareBack() (tea.Cmd, bool) {
	if m.ses == nil || !m.comp.Whole() {
		return m.chartsBack()
	}
	m.comp.ShowCharts()
	return nil, true
}

// moveCompare scrolls the facts, or goes through the charts.
func (m *Model) moveCompare(d int) {
	if !m.comp.Whole() {
		m.moveCharts(d)
		return
	}
	m.comparison().Scroll(d, m.bodyWidth(), m.bodyHeight())
}

// lookedAt changes how charts are looked at: at once, but in a comparison the
// axis and the average when they are made.
func (m *Model) lookedAt(do func(*Model)) tea.Cmd {
	if m.here() != atCompare || m.ses == nil {
		do(m)
		return nil
	}
	return m.comp.LookedAt(func() { do(m) })
}

// gridRoom is where the grid of charts lies in the body.
func (m *Model) gridRoom() chart.Spot {
	w, h := m.bodyWidth(), m.bodyHeight()
	if m.here() == atCompare {
		return m.comparison().GridRoom(w, h)
	}
	top := m.charts.Head(h)
	return chart.Spot{X: 0, Y: top, W: w, H: h - top}
}
