package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/plot"
)

// spots are the charts of the present screen, in cells of its body.
func (m *Model) spots() []chart.Spot {
	w, h := m.bodyWidth(), m.bodyHeight()
	switch {
	case m.ses == nil || m.w < leastW || m.h < leastH:
		return nil
	case m.here()&inGrid != 0:
		room := m.gridRoom()
		spots := m.charts.Spots(room.W, room.H)
		for i := range spots {
			spots[i].Y += room.Y
		}
		return spots
	case m.here() != atTrain || m.ses.Lost != "" && m.ses.State.Run == "":
		return nil
	}
	top, chartH := m.watch().ChartRoom(w, h)
	if chartH == 0 {
		return nil
	}
	spots := m.charts.Row(w, chartH)
	for i := range spots {
		spots[i].Y += top
	}
	return spots
}

// spotAt is the chart at a cell of the screen, with the place of its plot and
// the column in it.
func (m *Model) spotAt(e tea.Mouse) (s chart.Spot, a plot.Area, x int, ok bool) {
	x, y := e.X-m.margin(), e.Y-m.bodyTop()
	for _, s := range m.spots() {
		if x >= s.X && x < s.X+s.W && y >= s.Y && y < s.Y+s.H {
			a, drawn := m.chartPage().Area(s)
			return s, a, x, drawn
		}
	}
	return chart.Spot{}, plot.Area{}, 0, false
}

// pointed reads the charts where the mouse is, or moves what is held.
func (m *Model) pointed(e tea.Mouse) {
	if m.ses == nil || m.here()&onCharts == 0 || len(m.dialogs) > 0 {
		return
	}
	if m.charts.Held() && e.Button == tea.MouseLeft {
		m.charts.Drag(e.X - m.margin())
		return
	}
	s, a, x, ok := m.spotAt(e)
	if !ok || x < a.Left || x >= a.Left+a.W {
		m.charts.PointAway()
		return
	}
	m.charts.Point(s, a, x)
}

// grab takes hold of a chart.
func (m *Model) grab(e tea.Mouse) {
	if s, a, x, ok := m.spotAt(e); ok {
		m.charts.Grab(s, a, x)
	}
}

// letGo ends a drag.
func (m *Model) letGo(e tea.Mouse) {
	if m.ses != nil && m.charts.Held() {
		m.charts.Drop(m.here()&onCharts != 0, m.here()&inGrid != 0)
	}
}

// wheelCharts zooms at the mouse; took is false where there is no chart.
func (m *Model) wheelCharts(e tea.Mouse) (took bool) {
	if m.ses == nil || m.here()&onCharts == 0 {
		return false
	}
	s, a, x, ok := m.spotAt(e)
	if !ok {
		return m.here()&inGrid != 0
	}
	switch e.Button {
	case tea.MouseWheelUp:
		m.charts.ZoomAt(s, a, x, 1/chart.ZoomBy)
	case tea.MouseWheelDown:
		m.charts.ZoomAt(s, a, x, chart.ZoomBy)
	}
	return true
}
