package chart

import (
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

// Held reports whether the left button is down on a chart.
func (v *View) Held() bool { return v.drag.on }

// Point reads the charts at a column of one of them.
func (v *View) Point(s Spot, a plot.Area, x int) {
	v.cursor = cursor{on: true, hover: true, axis: v.axisOf(s), x: a.At(x)}
}

// PointAway takes away a cursor that was the mouse's.
func (v *View) PointAway() {
	if v.cursor.hover {
		v.cursor = cursor{}
	}
}

// Grab takes hold of a chart at a column: to move it, or to pick it when it is
// let go where it was taken.
func (v *View) Grab(s Spot, a plot.Area, x int) {
	d := drag{on: true, index: s.Index, axis: v.axisOf(s), x: x, width: a.W}
	d.was = v.windows[d.axis]
	d.from, d.to, _, _, _ = v.Window(d.axis)
	v.drag = d
}

// Drag moves the window with the mouse, which is at a column.
func (v *View) Drag(x int) {
	d := &v.drag
	_, _, lo, hi, ok := v.Window(d.axis)
	if x == d.x && !d.moved || !ok {
		return
	}
	d.moved = true
	if d.was.on {
		held := extent{on: true, lo: d.from, hi: d.to, held: true}
		v.windows[d.axis] = held.panned(lo, hi, float64(d.x-x)/float64(max(d.width, 1)))
	}
}

// Drop ends a drag, on a screen with charts or not. One that moved nothing was a
// click: it picks the chart, and in a grid a picked one gets the whole screen.
func (v *View) Drop(charts, grid bool) {
	d := v.drag
	v.drag = drag{}
	switch {
	case d.moved || !charts:
	case grid && d.index == v.Picked:
		v.Full = !v.Full
	default:
		v.Picked = d.index
	}
}

// ZoomAt zooms around a column of a chart.
func (v *View) ZoomAt(s Spot, a plot.Area, x int, by float64) {
	ax := v.axisOf(s)
	if _, _, lo, hi, some := v.Window(ax); some {
		v.windows[ax] = v.windows[ax].zoomed(lo, hi, a.At(x), by)
	}
}

// axisOf is the axis of a chart.
func (v *View) axisOf(s Spot) session.Axis { return session.AxisOf(s.group, v.Asked) }
