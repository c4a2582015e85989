package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

const (
	// onCharts are the screens with charts on them.
	onCharts = atTrain | inGrid
	// inGrid are those with a grid of charts.
	inGrid = atCharts | atCompare
)

// chartCommands are the keys of charts. All charts are zoomed, smoothed and
// read together.
func chartCommands() []command {
	view := func(key, name, help string, do func(*Model)) command {
		return command{keys: []string{key}, name: name, help: help, at: onCharts, can: (*Model).noChart,
			do: func(m *Model) tea.Cmd { return m.lookedAt(do) }}
	}
	zoomIn := view("+", "zoom in", "zoom in, around the cursor or at the newest; so does the wheel", func(m *Model) { m.zoom(1 / zoomBy) })
	zoomIn.keys = append(zoomIn.keys, "=")
	zoomIn.foot, zoomIn.show = 3, inGrid
	smoother := view("]", "smoother", "more smoothing: an average, as in TensorBoard; the values stay behind it", func(m *Model) { m.smoother(1) })
	smoother.foot, smoother.show = 4, inGrid
	xaxis := view("a", "x axis", "count x by step, epoch or time, or by what suits each chart", (*Model).nextAxis)
	xaxis.foot, xaxis.show = 4, inGrid
	return []command{
		{keys: []string{"v"}, name: "charts", help: "every chart in a grid", at: inSession &^ (atCharts | atNew), foot: 5, show: atTrain, can: (*Model).noRun, do: goer(atCharts)},
		{keys: []string{"c"}, name: "chart", help: "next chart", at: onCharts, foot: 6, show: atTrain, can: (*Model).noCharts, do: (*Model).nextChart},
		{keys: []string{"r"}, name: "own metric", help: "your own regular expression, tried on the last lines, then on the whole log", at: atTrain | atCharts | atLogs, foot: 7, show: atLogs | atCharts,
			can: (*Model).noRun, do: (*Model).tryMetric},
		{keys: []string{"enter"}, name: "whole screen", help: "the picked chart on the whole screen, or the grid again", at: inGrid, foot: 1, can: (*Model).noChart, do: (*Model).toggleFull},
		{keys: []string{"/"}, name: "filter", help: "only the charts whose names hold a word", at: inGrid, foot: 2, can: (*Model).noChart, do: (*Model).askCharts},
		{keys: []string{"tab"}, name: "next chart", help: "pick the next chart", at: inGrid, can: (*Model).noCharts, do: (*Model).nextChart},
		{keys: []string{"shift+tab"}, name: "previous chart", help: "pick the chart before", at: inGrid, can: (*Model).noCharts, do: (*Model).prevChart},
		view("left", "read left", "move the cursor left: all charts are read at the same x", func(m *Model) { m.readOn(-1) }),
		view("right", "read right", "move the cursor right; esc takes it away", func(m *Model) { m.readOn(1) }),
		zoomIn,
		view("-", "zoom out", "zoom out", func(m *Model) { m.zoom(zoomBy) }),
		view(",", "earlier", "move to what was earlier, when zoomed in", func(m *Model) { m.pan(-panBy) }),
		view(".", "later", "move to what came later; at the right edge the newest is followed", func(m *Model) { m.pan(panBy) }),
		view("z", "show all", "show everything again", func(m *Model) { m.charts.windows = [session.Axes]extent{} }),
		{keys: []string{"0"}, name: "show all", help: "show everything again", at: inGrid, can: (*Model).noChart, do: func(m *Model) tea.Cmd { return m.move(-far) }},
		view("o", "log axis", "logarithmic value axis, or linear again", func(m *Model) { m.charts.logY = !m.charts.logY }),
		xaxis,
		view("[", "less smooth", "less smoothing", func(m *Model) { m.smoother(-1) }),
		smoother,
	}
}

const (
	// zoomBy is how much a key or a notch of the wheel zooms.
	zoomBy = 1.5
	// panBy is the share of its width that a key moves the window by.
	panBy = 0.25
)

// pickedAxis is by what the picked chart counts its x.
func (m *Model) pickedAxis() (session.Axis, bool) {
	g := m.charts.pickedChart()
	if g == nil {
		return session.AxisAuto, false
	}
	return session.AxisOf(g, m.charts.asked), true
}

// zoom changes the width of what is shown: around the cursor where it is seen,
// at the right edge where the newest is followed, else around the middle.
func (m *Model) zoom(by float64) {
	a, ok := m.pickedAxis()
	from, to, lo, hi, some := m.charts.windowOf(a)
	if !ok || !some {
		return
	}
	v := &m.charts
	at := (from + to) / 2
	switch c := v.cursor; {
	case c.on && !c.hover && c.axis == a && c.x >= from && c.x <= to:
		at = c.x
	case !v.windows[a].held:
		at = to
	}
	v.windows[a] = v.windows[a].zoomed(lo, hi, at, by)
}

func (m *Model) pan(by float64) {
	a, ok := m.pickedAxis()
	_, _, lo, hi, some := m.charts.windowOf(a)
	if ok && some {
		w := &m.charts.windows[a]
		*w = w.panned(lo, hi, by)
	}
}

// readOn moves the cursor by columns of the picked chart.
func (m *Model) readOn(columns int) {
	width := float64(m.bodyWidth())
	for _, s := range m.spots() {
		if s.index == m.charts.picked {
			if a, ok := m.area(s); ok {
				width = float64(a.W)
			}
		}
	}
	m.charts.step(columns, width)
}

func (m *Model) smoother(d int) {
	v := &m.charts
	v.smooth = text.Clamp(v.smooth+d, 0, len(factors)-1)
}

// nextAxis goes on to the next axis that some curve has.
func (m *Model) nextAxis() {
	v := &m.charts
	for {
		v.asked = (v.asked + 1) % session.AxisOrder
		if v.asked == session.AxisAuto || m.ses.State.AnyHas(v.asked) {
			return
		}
	}
}

func (m *Model) nextChart() tea.Cmd { return m.turnChart(1) }
func (m *Model) prevChart() tea.Cmd { return m.turnChart(-1) }

func (m *Model) turnChart(d int) tea.Cmd {
	m.charts.picked = pick(m.charts.picked+d, max(len(m.charts.shownCharts()), 1))
	return nil
}

func (m *Model) toggleFull() tea.Cmd {
	m.charts.full = !m.charts.full || m.here() == atCompare && m.comp.whole
	m.comp.whole = false
	return nil
}

func (m *Model) askCharts() tea.Cmd {
	set := func(m *Model, text string) { m.charts.filter, m.charts.picked = text, 0 }
	was := m.charts.filter
	m.ask = &prompt{label: "charts with", line: line.New(was), live: set,
		done: func(m *Model, text string) tea.Cmd { set(m, text); return nil },
		left: func(m *Model) { set(m, was) }}
	return nil
}

// chartBack takes back one thing that esc takes back before it leaves the
// screen: the cursor, the whole screen for one chart, the filter.
func (v *chartView) chartBack(here place) bool {
	switch {
	case v.cursor.on && !v.cursor.hover:
		v.cursor = cursor{}
	case here&inGrid != 0 && v.full:
		v.full = false
	case here&inGrid != 0 && v.filter != "":
		v.filter, v.picked = "", 0
	default:
		v.cursor = cursor{}
		return false
	}
	return true
}

// moveCharts goes up and down in the grid, by pages through it; to the top
// shows all again and to the end follows the newest.
func (m *Model) moveCharts(d int) {
	v, n := &m.charts, len(m.charts.shownCharts())
	if n == 0 {
		return
	}
	across, down := grid(n, m.gridRoom().w, m.gridRoom().h)
	switch {
	case d <= -far:
		v.windows = [session.Axes]extent{}
	case d >= far:
		for a := range v.windows {
			v.windows[a].held = false
		}
	case d == 1 || d == -1:
		v.picked = text.Clamp(v.picked+d*across, 0, n-1)
	default:
		v.picked = text.Clamp((v.picked/(across*down)+d/max(d, -d))*across*down, 0, n-1)
	}
}
