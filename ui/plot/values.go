package plot

import (
	"math"

	"charm.land/lipgloss/v2"

	"github.com/dlwb/dlwb/ui/scale"
)

// A chart has one value axis, at the left. Where its curves are of scales so
// far apart that one would lie flat at the bottom, it has two, left and right; and
// where even that does not do, each curve has its own, and its lowest and highest
// value are all that the rows say.

// span is what a value axis shows; logarithms when LogY.
type span struct{ lo, hi float64 }

// axes is how many value axes the chart has.
func (c *Chart) axes() int {
	n := 0
	for _, l := range c.Series {
		n = max(n, l.Axis)
	}
	return n + 1
}

// rangeY sets what each value axis shows, from what lies between x0 and x1; false
// when nothing finite (on a log axis: nothing above zero) does.
func (f *frame) rangeY() bool {
	some := false
	for axis := range f.axes() {
		sum := emptyNode
		for _, l := range f.Series {
			if l.Axis == axis {
				l.add(&sum, f.x0, f.x1)
			}
		}
		s, ok := f.spanOf(sum, axis == 0)
		some = some || ok
		f.values = append(f.values, s)
	}
	return some
}

// add adds what a line spans from one x to another, its band included.
func (l Line) add(sum *node, x0, x1 float64) {
	for _, s := range [3]*Series{l.Series, l.Low, l.High} {
		if s != nil {
			sum.merge(s.within(x0+l.Origin, x1+l.Origin))
		}
	}
}

// spanOf is the value axis for values; fixed says that YMin and YMax are for it. ok
// is false where there is nothing to show.
func (f *frame) spanOf(sum node, fixed bool) (s span, ok bool) {
	lo, hi := sum.ymin, sum.ymax
	if f.LogY {
		lo = sum.ypos
	}
	if lo > hi {
		return span{0, 1}, false
	}
	if fixed && f.YMax > f.YMin && (!f.LogY || f.YMin > 0) {
		lo, hi = f.YMin, f.YMax
	}
	if f.LogY {
		s.lo, s.hi = widen(math.Log10(lo), math.Log10(hi), 0.3, 0.3)
		return s, true
	}
	below := 0.05 * math.Abs(lo)
	if lo == 0 {
		below = 0
	}
	s.lo, s.hi = widen(lo, hi, below, max(0.05*math.Abs(hi), 1e-290))
	if lo == 0 && hi == 0 {
		s.hi = 1
	}
	return s, true
}

// ticksOf are the labelled places of a value axis.
func (f *frame) ticksOf(s span) []scale.Tick {
	n := max(2, (f.plotH+1)/2)
	if f.LogY {
		return scale.LogTicks(s.lo, s.hi, n)
	}
	return scale.Ticks(s.lo, s.hi, n)
}

// labelY chooses the y labels. They stay away where they would take more than
// a third of the width.
func (f *frame) labelY() {
	f.yTicks = f.ticksOf(f.values[0])
	if len(f.values) > 2 {
		v := f.values[0]
		f.yTicks = []scale.Tick{{At: v.hi, Text: "most"}, {At: v.lo, Text: "least"}}
	}
	f.yWidth = widest(f.yTicks)
	f.left = f.yWidth + 1
	if f.plotH < 2 || f.left*3 > f.w {
		f.yTicks, f.yWidth, f.left = nil, 0, 0
	}
}

// labelRight chooses the labels of the second value axis.
func (f *frame) labelRight() {
	if len(f.values) != 2 || f.left == 0 {
		return
	}
	ticks := f.ticksOf(f.values[1])
	if right := widest(ticks) + 1; (f.left+right)*2 <= f.w {
		f.rTicks, f.right = ticks, right
	}
}

func widest(ticks []scale.Tick) (w int) {
	for _, t := range ticks {
		w = max(w, lipgloss.Width(t.Text))
	}
	return w
}

// labelsByRow puts every label in its row; of two in one row the first stays.
func (f *frame) labelsByRow(ticks []scale.Tick, s span) map[int]string {
	labels := map[int]string{}
	for _, t := range ticks {
		row := int((s.hi-t.At)/(s.hi-s.lo)*float64(f.canvas.ph-1)+0.5) / f.canvas.sy
		if row >= 0 && row < f.plotH && labels[row] == "" {
			labels[row] = t.Text
		}
	}
	return labels
}
