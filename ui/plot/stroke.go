package plot

import "math"

// joinBudget bounds the dots of the lines between the columns of one curve:
// with x in disorder every one could cross the whole plot.
const joinBudget = 200_000

// stroke draws one curve. Neighbours in one column are drawn as one line from
// the lowest to the highest.
type stroke struct {
	*frame
	pen       uint8
	axis      int // by which value axis
	origin    float64
	column    int
	top, foot int // dots of the line so far; none while top > foot
	budget    int
}

// curve draws one line.
func (f *frame) curve(i int, l Line) {
	s, from := l.Series, l.Origin
	k := stroke{frame: f, pen: uint8(min(i+1, rulePen-1)), axis: l.Axis, origin: from, top: 1, budget: joinBudget}
	outside := func(n node) bool { return n.xmax < f.x0+from || n.xmin > f.x1+from }
	before, alone := 0, false // the column of the stretch before, if it has only one
	s.walk(func(n node) bool {
		return outside(n) || dotAt(f.px(n.xmin-from)) == dotAt(f.px(n.xmax-from))
	}, func(n node, first int) {
		out, column := outside(n), 0
		if !out {
			column = dotAt(f.px(n.xmin - from))
		}
		narrow := !out && column == dotAt(f.px(n.xmax-from))
		// Within one column there is nothing to join: then the points
		// themselves, which lie far apart in memory, are not looked at.
		if first > 0 && !(narrow && alone && column == before) {
			k.join(s.at(first-1), s.at(first))
		}
		before, alone = column, narrow
		if out {
			return
		}
		if lo, hi, ok := f.shown(n); ok {
			k.extend(column, f.py(hi, k.axis), f.py(lo, k.axis))
		}
		if n.bad > 0 && column >= 0 && column < f.canvas.pw {
			f.gaps[column/f.canvas.sx] = k.pen
		}
	})
	k.flush()
}

// dotAt is the dot that a place is in.
func dotAt(v float64) int { return int(math.Floor(v + 0.5)) }

// extend adds a stretch from top down to foot in a column.
func (k *stroke) extend(column int, top, foot float64) {
	last := k.canvas.ph - 1
	if top > float64(last)+0.5 || foot < -0.5 {
		return // a fixed scale leaves it out
	}
	a, b := dotAt(max(top, 0)), dotAt(min(foot, float64(last)))
	if column != k.column || k.top > k.foot {
		k.flush()
		k.column, k.top, k.foot = column, a, b
		return
	}
	k.top, k.foot = min(k.top, a), max(k.foot, b)
}

func (k *stroke) flush() {
	for y := max(k.top, 0); y <= min(k.foot, k.canvas.ph-1); y++ {
		k.canvas.dot(k.column, y, k.pen)
	}
	k.top, k.foot = 1, 0
}

// join draws the line between two neighbours, unless it is within one column:
// then the column's own extent covers it.
func (k *stroke) join(a, b point) {
	if a.y != a.y || b.y != b.y || k.LogY && (a.y <= 0 || b.y <= 0) || k.budget <= 0 {
		return
	}
	a.x, b.x = a.x-k.origin, b.x-k.origin
	if max(a.x, b.x) < k.x0 || min(a.x, b.x) > k.x1 {
		return
	}
	if x0, x1 := k.px(a.x), k.px(b.x); dotAt(x0) != dotAt(x1) {
		k.budget -= k.canvas.line(x0, k.py(a.y, k.axis), x1, k.py(b.y, k.axis), k.pen)
	}
}
