package history

import (
	"math"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/metrics/order"
	"github.com/dlwb/dlwb/store"
)

// line is the points of a curve as they are put in order: what a resumed run
// repeats is replaced, and a single point that came late is where it belongs.
type line struct {
	points []metrics.Point
	order  order.Order[metrics.Point]
}

// Len is how many points there are.
func (l *line) Len() int { return len(l.points) }

// Place is by what a point is ordered.
func (l *line) Place(i int) (float64, uint8) {
	x, by := l.points[i].Place()
	return x, uint8(by)
}

// Cut leaves the first n points.
func (l *line) Cut(n int) { l.points = l.points[:n] }

// Push puts a point behind the last.
func (l *line) Push(p metrics.Point) { l.points = append(l.points, p) }

// Insert puts a point before the one with an index.
func (l *line) Insert(i int, p metrics.Point) {
	l.points = append(l.points, p)
	copy(l.points[i+1:], l.points[i:])
	l.points[i] = p
}

// inOrder are the points of a curve as they are shown, numbered anew.
func inOrder(points []metrics.Point) []metrics.Point {
	l := line{points: make([]metrics.Point, 0, len(points))}
	for _, p := range points {
		x, by := p.Place()
		l.order.Add(&l, p, x, uint8(by))
	}
	for i := range l.points {
		l.points[i].Ordinal = int64(i)
	}
	return l.points
}

// falls reports whether a point of a curve falls back.
func (c curve) falls() bool { return c.main.Falls || c.tail != nil && c.tail.Falls }

// shown are all points of a curve as they are shown.
func (h *History) shown(c curve) ([]metrics.Point, error) {
	points, err := h.curvePoints(c, 0)
	if c.falls() {
		points = inOrder(points)
	}
	return points, err
}

// ends are what is told of a curve without its points.
type ends struct {
	count       int64
	first, last metrics.Point
	best        *metrics.Point // nil where no way is better, or none is a number
}

// endsOf are the ends of a curve: those of its sources, but where a point falls
// back those of all of its points as they are shown.
func (h *History) endsOf(c curve, way goal.Goal) (e ends, err error) {
	if !c.falls() {
		two := appendPoints(nil, c.name, []store.Point{c.main.First, c.last()}, 0)
		e = ends{count: c.count(), first: two[0], last: two[1]}
		best, err := h.best(c, way)
		if best != nil {
			e.best = &appendPoints(nil, c.name, []store.Point{*best}, 0)[0]
		}
		return e, err
	}
	points, err := h.shown(c)
	if err != nil || len(points) == 0 {
		return e, err
	}
	e = ends{count: int64(len(points)), first: points[0], last: points[len(points)-1]}
	for i, p := range points {
		if way != goal.None && !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) && (e.best == nil || way.Better(p.Value, e.best.Value)) {
			e.best = &points[i]
		}
	}
	return e, nil
}
