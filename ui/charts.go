package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/ranks"
)

// chartsScreen is every chart in a grid.
func chartsScreen() screen {
	return screen{at: atCharts, name: "charts", draw: (*Model).drawCharts, move: (*Model).moveCharts,
		copy: func(m *Model) string { return m.charts.Text() }, back: (*Model).chartsBack, keys: chartCommands}
}

const (
	// onCharts are the screens with charts on them.
	onCharts = atTrain | inGrid
	// inGrid are those with a grid of charts.
	inGrid = atCharts | atCompare
)

// chartCommands are the keys of charts. All charts are zoomed, smoothed and
// read together.
func chartCommands() []command {
	view := func(k, name, help string, do func(*Model)) command {
		return command{bind: on(name, k), help: help, at: onCharts, can: (*Model).noChart,
			do: func(m *Model) tea.Cmd { return m.lookedAt(do) }}
	}
	zoomIn := view("+", "zoom in", "zoom in, around the cursor or at the newest; so does the wheel", func(m *Model) { m.charts.Zoom(1 / chart.ZoomBy) })
	zoomIn.bind.SetKeys("+", "=")
	zoomIn.foot, zoomIn.show = 3, inGrid
	smoother := view("]", "smoother", "more smoothing: an average, as in TensorBoard; the values stay behind it", func(m *Model) { m.charts.Smoother(1) })
	smoother.foot, smoother.show = 4, inGrid
	xaxis := view("a", "x axis", "count x by step, epoch or time, or by what suits each chart", func(m *Model) { m.charts.NextAxis() })
	xaxis.foot, xaxis.show = 4, inGrid
	ofRun := func(c command) command {
		c.at = atTrain | atCharts
		return c
	}
	return []command{
		{bind: on("charts", "v"), help: "every chart in a grid", at: inSession &^ (atCharts | atNew), foot: 5, show: atTrain, can: (*Model).noRun, do: goer(atCharts)},
		{bind: on("chart", "c"), help: "next chart", at: onCharts, foot: 6, show: atTrain, can: (*Model).noCharts, do: (*Model).nextChart},
		{bind: on("own metric", "r"), help: "your own regular expression, tried on the last lines, then on the whole log", at: atTrain | atCharts | atLogs, foot: 7, show: atLogs | atCharts,
			can: (*Model).noRun, do: (*Model).tryMetric},
		{bind: on("whole screen", "enter"), help: "the picked chart on the whole screen, or the grid again", at: inGrid, foot: 1, can: (*Model).noChart, do: (*Model).toggleFull},
		{bind: on("filter", "/"), help: "only the charts whose names hold a word", at: inGrid, foot: 2, can: (*Model).noChart, do: (*Model).askCharts},
		{bind: on("next chart", "tab"), help: "pick the next chart", at: inGrid, can: (*Model).noCharts, do: (*Model).nextChart},
		{bind: on("previous chart", "shift+tab"), help: "pick the chart before", at: inGrid, can: (*Model).noCharts, do: (*Model).prevChart},
		view("left", "read left", "move the cursor left: all charts are read at the same x", func(m *Model) { m.readOn(-1) }),
		view("right", "read right", "move the cursor right; esc takes it away", func(m *Model) { m.readOn(1) }),
		zoomIn,
		view("-", "zoom out", "zoom out", func(m *Model) { m.charts.Zoom(chart.ZoomBy) }),
		view(",", "earlier", "move to what was earlier, when zoomed in", func(m *Model) { m.charts.Pan(-chart.PanBy) }),
		view(".", "later", "move to what came later; at the right edge the newest is followed", func(m *Model) { m.charts.Pan(chart.PanBy) }),
		view("z", "show all", "show everything again", func(m *Model) { m.charts.ShowAll() }),
		{bind: on("show all", "0"), help: "show everything again", at: inGrid, can: (*Model).noChart, do: func(m *Model) tea.Cmd { return m.move(-far) }},
		view("o", "log axis", "logarithmic value axis, or linear again", func(m *Model) { m.charts.ToggleLog() }),
		xaxis,
		view("[", "less smooth", "less smoothing", func(m *Model) { m.charts.Smoother(-1) }),
		smoother,
		ofRun(view("i", "ranks singly", "where ranks differ: each by itself, the farthest first, or their middle with a band", func(m *Model) { m.charts.Singly = !m.charts.Singly })),
		ofRun(view("d", "doubtful names", "also the names of which it is not known whether they are metrics, and why", func(m *Model) { m.charts.Weak = !m.charts.Weak })),
		view("u", "raw values", "the values alone, or with the light average again that noisy curves are drawn with", func(m *Model) { m.charts.ToggleRaw() }),
	}
}

// readOn moves the cursor by columns of the picked chart.
func (m *Model) readOn(columns int) {
	width := float64(m.bodyWidth())
	for _, s := range m.spots() {
		if s.Index == m.charts.Picked {
			if a, ok := m.chartPage().Area(s); ok {
				width = float64(a.W)
			}
		}
	}
	m.charts.Step(columns, width)
}

// chartPage is the charts of the present screen as they are drawn.
func (m *Model) chartPage() chart.Page {
	p := chart.Page{Look: m.looks(), View: &m.charts, Grid: m.here()&inGrid != 0}
	if m.here() == atCompare {
		return m.comparison().ChartPage()
	}
	return p
}

// compareRanks reads on in what all ranks print, where charts are looked at.
func (m *Model) compareRanks() tea.Cmd {
	if m.ses == nil || m.here()&(atTrain|atCharts) == 0 {
		return nil
	}
	if m.charts.Ranks == nil || !m.charts.Ranks.Are(m.ses.State.Run) {
		m.charts.Ranks = ranks.Of(m.ses.State.Run)
	}
	return m.charts.Ranks.Read(m.ses, m.bench.ReadLog)
}

func (m *Model) takeRanks(msg ranks.Told) tea.Cmd {
	if m.ses == nil || m.ses.Gen != msg.Gen || m.charts.Ranks == nil {
		return nil
	}
	m.charts.Ranks.Take(msg)
	return m.compareRanks()
}

func (m *Model) nextChart() tea.Cmd {
	m.charts.Turn(1)
	return nil
}

func (m *Model) prevChart() tea.Cmd {
	m.charts.Turn(-1)
	return nil
}

func (m *Model) toggleFull() tea.Cmd {
	m.charts.Full = !m.charts.Full || m.here() == atCompare && m.comp.Whole()
	m.comp.ShowCharts()
	return nil
}

func (m *Model) askCharts() tea.Cmd {
	set := func(m *Model, text string) { m.charts.SetFilter(text) }
	was := m.charts.Filter
	m.ask = &prompt{label: "charts with", line: line.New(was), live: set,
		done: func(m *Model, text string) tea.Cmd { set(m, text); return nil },
		left: func(m *Model) { set(m, was) }}
	return nil
}

// moveCharts goes up and down in the grid, by pages through it; to the top
// shows all again and to the end follows the newest.
func (m *Model) moveCharts(d int) {
	switch room := m.gridRoom(); {
	case len(m.charts.Shown()) == 0:
	case d <= -far:
		m.charts.ShowAll()
	case d >= far:
		m.charts.FollowNewest()
	default:
		m.charts.MoveIn(room.W, room.H, d)
	}
}

func (m *Model) noCharts() string {
	if m.ses == nil || len(m.charts.Shown()) < 2 {
		return "there is no other chart"
	}
	return ""
}

func (m *Model) noChart() string {
	if m.ses == nil || len(m.ses.State.Curves) == 0 {
		return "there are no values yet"
	}
	return ""
}

// drawCharts is every chart in a grid, or why there are none.
func (m *Model) drawCharts(w, h int) []string {
	if m.ses.Lost != "" && m.ses.State.Run == "" {
		return m.watch().Lost(w)
	}
	return m.chartPage().Draw(w, h)
}

func (m *Model) chartsBack() (tea.Cmd, bool) { return nil, m.charts.Back(m.here()&inGrid != 0) }
