package plot

import (
	"math"

	"github.com/dlwb/dlwb/ui/scale"
)

// frame is a chart laid out for one size: where the plot is and how values
// become places in it.
type frame struct {
	*Chart
	w, h   int // of everything below the head
	x0, x1 float64
	values []span // of each value axis
	left   int    // cells left of the plot: labels and the axis itself
	plotW  int
	plotH  int
	yTicks []scale.Tick
	yWidth int          // of the widest label
	xAxis  int          // rows below the plot: 0 to 2
	right  int          // cells right of the plot: values at the ends, or the second value axis
	rTicks []scale.Tick // of the second value axis
	canvas canvas
	ends   []end
	gaps   []uint8 // by column: whose value is not finite there, 0 for none
}

// frame lays the chart out and draws its curves; nil when there is nothing to
// draw.
func (c *Chart) frame(w, h int) *frame {
	f := c.measure(w, h)
	if f == nil {
		return nil
	}
	f.gaps = make([]uint8, f.plotW)
	f.canvas.behind = make([]bool, len(c.Series)+1)
	for i, l := range c.Series {
		f.canvas.behind[i+1] = l.Behind
	}
	for _, behind := range []bool{true, false} {
		for i, l := range c.Series {
			if l.Behind != behind {
				continue
			}
			f.band(i, l)
			if l.Series != nil {
				f.curve(i, l)
			}
		}
	}
	f.number()
	f.signs()
	f.rule()
	return f
}

// measure lays the chart out; nil when there is nothing to draw.
func (c *Chart) measure(w, h int) *frame {
	f := &frame{Chart: c, w: w, h: h}
	if !f.rangeX() || !f.rangeY() {
		return nil
	}
	switch {
	case h >= 7:
		f.xAxis = 2
	case h >= 4:
		f.xAxis = 1
	}
	f.plotH = h - f.xAxis
	f.labelY()
	f.labelRight()
	f.labelEnds()
	f.plotW = w - f.left - f.right
	f.canvas = newCanvas(f.plotW, f.plotH, c.ASCII)
	return f
}

// Area is where the plot of a chart lies in what Draw returns, in cells from
// its upper left corner, and which x are at its edges.
type Area struct {
	Left, Top, W, H int
	X0, X1          float64
}

// Area is where the plot lies when the chart is drawn at a size; ok is false
// when nothing is drawn.
func (c *Chart) Area(w, h int) (a Area, ok bool) {
	if w <= 0 || h <= 0 {
		return a, false
	}
	top := 0
	if c.hasHead() {
		top = 1
	}
	if h <= top {
		return a, false
	}
	f := c.measure(w, h-top)
	if f == nil {
		return a, false
	}
	return Area{Left: f.left, Top: top, W: f.plotW, H: f.plotH, X0: f.x0, X1: f.x1}, true
}

// Holds reports whether a cell lies in the plot.
func (a Area) Holds(x, y int) bool {
	return x >= a.Left && x < a.Left+a.W && y >= a.Top && y < a.Top+a.H
}

// At is the x at the middle of a column of the chart.
func (a Area) At(column int) float64 {
	return a.X0 + (float64(column-a.Left)+0.5)/float64(max(a.W, 1))*(a.X1-a.X0)
}

// rangeX sets x0 and x1; false when no series has points there.
func (f *frame) rangeX() bool {
	f.x0, f.x1 = math.Inf(1), math.Inf(-1)
	for _, l := range f.Series {
		if l.Series == nil {
			continue
		}
		if lo, hi, ok := l.Series.Span(); ok {
			f.x0, f.x1 = min(f.x0, lo-l.Origin), max(f.x1, hi-l.Origin)
		}
	}
	if f.x0 > f.x1 {
		return false
	}
	if f.XMax > f.XMin {
		f.x0, f.x1 = f.XMin, f.XMax
	}
	f.x0, f.x1 = widen(f.x0, f.x1, 0, 1)
	return true
}

// widen makes room around a range that has no extent, and keeps it far enough
// from the limits of floating point that differences stay finite.
func widen(lo, hi, below, above float64) (float64, float64) {
	lo, hi = max(lo, -1e300), min(hi, 1e300)
	lo, hi = min(lo, 1e300), max(hi, -1e300)
	if hi-lo > 1e-12*max(math.Abs(lo), math.Abs(hi)) && hi-lo > 1e-300 {
		return lo, hi
	}
	above = max(above, 1e-9*math.Abs(hi), 1e-290)
	return lo - below, hi + above
}

// px is the horizontal place of x in the canvas's dots, py the vertical one by a
// value axis, 0 at the top.
func (f *frame) px(x float64) float64 {
	return share(x-f.x0, f.x1-f.x0) * float64(f.canvas.pw-1)
}

func (f *frame) py(y float64, axis int) float64 {
	if f.LogY {
		y = math.Log10(y)
	}
	v := f.values[axis]
	return share(v.hi-y, v.hi-v.lo) * float64(f.canvas.ph-1)
}

// share is part/whole, kept finite: what lies a million plots away may lie
// there exactly, and infinity times a plot of one dot would be no place at all.
func share(part, whole float64) float64 {
	return min(max(part/whole, -1e6), 1e6)
}

// shown is the part of n that the axis can show; ok is false when there is
// none.
func (f *frame) shown(n node) (lo, hi float64, ok bool) {
	lo, hi = n.ymin, n.ymax
	if f.LogY {
		lo = n.ypos
	}
	return lo, hi, lo <= hi
}
