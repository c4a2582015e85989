package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/session"
)

// drag is the left button held down on a chart.
type drag struct {
	on    bool
	moved bool
	index int // of the chart
	axis  session.Axis
	x     int     // column at which it was taken
	width int     // of the plot, in columns
	was   extent  // the window then
	from  float64 // its edges then
	to    float64
}

// spots are the charts of the present screen, in cells of its body.
func (m *Model) spots() []spot {
	w, h := m.bodyWidth(), m.bodyHeight()
	switch {
	case m.ses == nil || m.w < leastW || m.h < leastH:
		return nil
	case m.here()&inGrid != 0:
		room := m.gridRoom()
		spots := m.gridSpots(room.w, room.h)
		for i := range spots {
			spots[i].y += room.y
		}
		return spots
	case m.here() != atTrain || m.ses.Lost != "" && m.ses.State.Run == "":
		return nil
	}
	top := len(m.trainTop(w, h))
	chartH, _ := share(h - top)
	if chartH == 0 {
		return nil
	}
	spots := m.trainSpots(w, chartH)
	for i := range spots {
		spots[i].y += top
	}
	return spots
}

// spotAt is the chart at a cell of the screen, with the place of its plot and
// the column in it.
func (m *Model) spotAt(e tea.Mouse) (s spot, a plot.Area, x int, ok bool) {
	x, y := e.X-m.margin(), e.Y-m.bodyTop()
	for _, s := range m.spots() {
		if x >= s.x && x < s.x+s.w && y >= s.y && y < s.y+s.h {
			a, drawn := m.area(s)
			return s, a, x, drawn
		}
	}
	return spot{}, plot.Area{}, 0, false
}

// pointed reads the charts where the mouse is, or moves what is held.
func (m *Model) pointed(e tea.Mouse) {
	if m.ses == nil || m.here()&onCharts == 0 || len(m.dialogs) > 0 {
		return
	}
	v := &m.charts
	if v.drag.on && e.Button == tea.MouseLeft {
		m.dragged(e.X - m.margin())
		return
	}
	s, a, x, ok := m.spotAt(e)
	if !ok || x < a.Left || x >= a.Left+a.W {
		if v.cursor.hover {
			v.cursor = cursor{}
		}
		return
	}
	v.cursor = cursor{on: true, hover: true, axis: session.AxisOf(s.group, v.asked), x: a.At(x)}
}

// grab takes hold of a chart: to move it, or to pick it when it is let go
// where it was taken.
func (m *Model) grab(e tea.Mouse) {
	s, a, x, ok := m.spotAt(e)
	if !ok {
		return
	}
	v := &m.charts
	d := drag{on: true, index: s.index, axis: session.AxisOf(s.group, v.asked), x: x, width: a.W}
	d.was = v.windows[d.axis]
	d.from, d.to, _, _, _ = m.charts.windowOf(d.axis)
	v.drag = d
}

// dragged moves the window with the mouse.
func (m *Model) dragged(x int) {
	v := &m.charts
	d := &v.drag
	_, _, lo, hi, ok := m.charts.windowOf(d.axis)
	if x == d.x && !d.moved || !ok {
		return
	}
	d.moved = true
	if d.was.on {
		held := extent{on: true, lo: d.from, hi: d.to, held: true}
		v.windows[d.axis] = held.panned(lo, hi, float64(d.x-x)/float64(max(d.width, 1)))
	}
}

// letGo ends a drag. One that moved nothing was a click: it picks the chart,
// and a picked one gets the whole screen.
func (m *Model) letGo(e tea.Mouse) {
	if m.ses == nil || !m.charts.drag.on {
		return
	}
	v := &m.charts
	d := v.drag
	v.drag = drag{}
	switch {
	case d.moved || m.here()&onCharts == 0:
	case m.here()&inGrid != 0 && d.index == v.picked:
		v.full = !v.full
	default:
		v.picked = d.index
	}
}

// wheelCharts zooms at the mouse; took is false where there is no chart.
func (m *Model) wheelCharts(e tea.Mouse) (cmd tea.Cmd, took bool) {
	if m.ses == nil || m.here()&onCharts == 0 {
		return nil, false
	}
	s, a, x, ok := m.spotAt(e)
	if !ok {
		return nil, m.here()&inGrid != 0
	}
	v := &m.charts
	by := zoomBy
	switch e.Button {
	case tea.MouseWheelUp:
		by = 1 / zoomBy
	case tea.MouseWheelDown:
	default:
		return nil, true
	}
	ax := session.AxisOf(s.group, v.asked)
	if _, _, lo, hi, some := m.charts.windowOf(ax); some {
		v.windows[ax] = v.windows[ax].zoomed(lo, hi, a.At(x), by)
	}
	return nil, true
}
