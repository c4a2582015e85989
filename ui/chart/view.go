// Package chart shows curves: which of them, by what axis, how much of it, how
// smooth and read where. A View is what a person has chosen, and changes by keys
// and the mouse; a Page draws it, and Spots say where each chart lies, for drawing
// and for the mouse alike.
package chart

import (
	"math"
	"strings"

	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/ranks"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// View is how the charts of a session are looked at. All charts share it:
// what is zoomed into, smoothed or read at one x is so in all of them.
type View struct {
	Of      *session.Session // whose curves
	Picked  int              // of the charts that the filter leaves
	top     int              // the first chart of the page
	Full    bool             // the picked chart alone
	Filter  string           // charts whose names hold it
	Asked   session.Axis     // by what x is counted; session.AxisAuto chooses
	logY    bool
	Smooth  int          // which of Factors
	Raw     bool         // no average that nobody asked for
	Ranks   *ranks.Ranks // what all ranks print; nil: not known
	Singly  bool         // the ranks that differ, each by itself
	Weak    bool         // also what waits to be known as a metric
	windows [session.Axes]extent
	cursor  cursor
	drag    drag
}

// Factors are the weights of what was before in the average that is drawn.
var Factors = []float64{0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999}

// extent is the part of an axis that is shown; all of it unless on.
type extent struct {
	on     bool
	lo, hi float64
	held   bool // else its right edge goes along with the newest point
}

// cursor is where the charts are read.
type cursor struct {
	on    bool
	hover bool // it is the mouse's, and leaves with it
	axis  session.Axis
	x     float64
}

// within is a window on what there is from lo to hi: one that is not held
// shows the newest.
func (v extent) within(lo, hi float64) (float64, float64) {
	if !v.on {
		return lo, hi
	}
	if !v.held {
		return hi - (v.hi - v.lo), hi
	}
	return v.lo, v.hi
}

// zoomed is a window with the x at a place kept there; by is how much of its
// width is left, above 1 it grows. One that holds everything is no window.
func (v extent) zoomed(lo, hi, at, by float64) extent {
	from, to := v.within(lo, hi)
	at = min(max(at, from), to)
	from, to = at-(at-from)*by, at+(to-at)*by
	if least := (hi - lo) * 1e-6; to-from < least {
		mid := (from + to) / 2
		from, to = mid-least/2, mid+least/2
	}
	return settled(from, to, lo, hi)
}

// panned is a window moved by a share of its width.
func (v extent) panned(lo, hi, by float64) extent {
	from, to := v.within(lo, hi)
	if !v.on {
		return v
	}
	d := (to - from) * by
	d = min(max(d, lo-from), hi-to)
	return settled(from+d, to+d, lo, hi)
}

// settled is a window from one x to another, kept inside of what there is. At
// the right edge it follows the newest.
func settled(from, to, lo, hi float64) extent {
	if to-from >= (hi-lo)*(1-1e-9) || !(to > from) {
		return extent{}
	}
	if from < lo {
		from, to = lo, to+lo-from
	}
	if to > hi {
		from, to = from-(to-hi), hi
	}
	return extent{on: true, lo: max(from, lo), hi: to, held: to < hi-(hi-lo)*1e-9}
}

// Shown are the groups of curves that the filter leaves.
func (v *View) Shown() [][]*session.Curve {
	all := v.groups()
	words := strings.Fields(strings.ToLower(v.Filter))
	if len(words) == 0 {
		return all
	}
	var out [][]*session.Curve
	for _, g := range all {
		for _, c := range g {
			if text.HasAll(strings.ToLower(c.Name), words) {
				out = append(out, g)
				break
			}
		}
	}
	return out
}

// PickedGroup is the picked group of curves; nil where there is none.
func (v *View) PickedGroup() []*session.Curve {
	g := v.Shown()
	if len(g) == 0 {
		return nil
	}
	return g[pick(v.Picked, len(g))]
}

// Page is charts as they are drawn.
type Page struct {
	text.Look
	*View
	// Grid says that they are in a grid, with a sign at the picked one.
	Grid bool
	// Names are those of the runs that lie over each other.
	Names []string
	// Kept are charts that were drawn before; nil draws all anew.
	Kept Kept
}

// pick is a number that goes round.
func pick(i, n int) int { return ((i % n) + n) % n }

// Window is what is shown of an axis, and all that there is of it.
func (v *View) Window(a session.Axis) (from, to, lo, hi float64, ok bool) {
	lo, hi, ok = v.Of.State.Span(a, v.Asked)
	from, to = v.windows[a].within(lo, hi)
	return from, to, lo, hi, ok
}

// readAt is the x at which a chart by an axis is read. Where the cursor is on
// another axis, what was known at that time is read: the curve under it and a
// curve of the chart say when.
func (v *View) readAt(a session.Axis, group []*session.Curve) (x float64, ok bool) {
	c := v.cursor
	if !c.on || c.axis == a {
		return c.x, c.on
	}
	for _, g := range v.Shown() {
		if session.AxisOf(g, v.Asked) != c.axis {
			continue
		}
		from, to := lead(g), lead(group)
		i, some := from.By(c.axis).Near(c.x)
		if !some || !from.Has(session.AxisTime) || !to.Has(session.AxisTime) {
			return 0, false
		}
		return to.SameTime(a, from, i), true
	}
	return 0, false
}

// lead is the curve that says when: the first that has values.
func lead(group []*session.Curve) *session.Curve {
	for _, c := range group {
		if c.N > 0 {
			return c
		}
	}
	return group[0]
}

// read is a curve's value at the cursor; ok is false without one.
func (v *View) read(c *session.Curve, a session.Axis, group []*session.Curve) (x, y float64, ok bool) {
	at, ok := v.readAt(a, group)
	if !ok {
		return 0, 0, false
	}
	i, ok := c.By(a).Near(at)
	if !ok {
		return 0, 0, false
	}
	x, y = c.By(a).At(i)
	return x, y, true
}

// Factor is the present weight of the average; 0 for none.
func (v *View) Factor() float64 { return Factors[min(max(v.Smooth, 0), len(Factors)-1)] }

// FactorOf is the factor of the average by which each curve is drawn, as the charts
// are looked at now: a person's, else a light one where the values alone would be a
// slab.
func (v *View) FactorOf() func(*session.Curve) float64 {
	f, raw := v.Factor(), v.Raw
	return func(c *session.Curve) float64 {
		if f > 0 || raw {
			return f
		}
		return c.Light()
	}
}

// fewInView is how many points of a curve may be seen for it to be drawn without an
// average that nobody asked for: each can be told from the next.
const fewInView = 200

// factorFor is the factor of the average by which a curve is drawn on an axis.
func (v *View) factorFor(c *session.Curve, a session.Axis) float64 {
	f := v.FactorOf()(c)
	if f == 0 || v.Smooth > 0 || !v.windows[a].on {
		return f
	}
	if from, to, lo, hi, ok := v.Window(a); ok && float64(c.N)*(to-from) < fewInView*(hi-lo) {
		return 0
	}
	return f
}

// Step moves the cursor of the picked chart by a number of columns, but at
// least to the next point.
func (v *View) Step(columns int, width float64) {
	group := v.PickedGroup()
	if group == nil {
		return
	}
	a := session.AxisOf(group, v.Asked)
	from, to, _, _, ok := v.Window(a)
	if !ok {
		return
	}
	c := &v.cursor
	ref := longest(group).By(a)
	if !c.on || c.axis != a {
		*c = cursor{on: true, axis: a, x: to}
		columns = 0
	}
	c.hover = false
	was := c.x
	c.x = snap(ref, c.x+float64(columns)*(to-from)/max(width, 1))
	if c.x == was && columns != 0 {
		c.x = neighbour(ref, was, columns)
	}
	v.reveal(a)
}

// longest is the curve of a chart with the most points: reading one with few
// would jump over what there is.
func longest(group []*session.Curve) *session.Curve {
	best := group[0]
	for _, c := range group {
		if c.N > best.N {
			best = c
		}
	}
	return best
}

// snap is the x of the nearest point.
func snap(s *plot.Series, x float64) float64 {
	if i, ok := s.Near(x); ok {
		x, _ = s.At(i)
	}
	return x
}

// neighbour is the x of the next point in a direction.
func neighbour(s *plot.Series, x float64, d int) float64 {
	i, ok := s.Near(x)
	if !ok {
		return x
	}
	for d /= max(d, -d); i+d >= 0 && i+d < s.Len(); {
		i += d
		if at, _ := s.At(i); at != x {
			return at
		}
	}
	return x
}

// reveal moves the window so that the cursor is in it.
func (v *View) reveal(a session.Axis) {
	from, to, lo, hi, _ := v.Window(a)
	w, x := &v.windows[a], v.cursor.x
	switch {
	case !w.on || math.IsNaN(x):
	case x < from:
		*w = settled(x, x+to-from, lo, hi)
	case x > to:
		*w = settled(x-(to-from), x, lo, hi)
	}
}
