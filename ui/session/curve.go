package session

import (
	"math"

	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/metrics/order"
	"github.com/dlwb/dlwb/ui/plot"
)

// Curve is one series of the run. A point takes 31 bytes: 23 in Points, by the
// axis that nearly all are looked at by, and four each for the two others.
type Curve struct {
	Name   string
	Run    int          // in a comparison: which run's it is, from 1
	N      int          // how many points it has
	Points *plot.Series // by step, or by order where the lines name none
	epoch  column
	at     column // seconds since the run was started
	Last   float64
	step   float64 // the newest that was named

	steps, epochs, times int // how many points have one
	stumbles             int // the first point without an epoch later than the one before; -1: none
	kinds                []stretch
	order                order.Order[placed]

	Least, Most int // where the smallest and the largest value are; -1 for nowhere

	others [Axes]*plot.Series // by the other axes, made when they are looked at
	taken  [Axes]int          // points that are in them
	smooth *plot.Smoothed
	look   look
	// Record is the series on record that this stands for; nil: it is one itself.
	Record *Curve
	Rank   string // whose values they are, where ranks differ and are shown singly
	Of     string // of which series they are then
	// Cuts counts how often points at the end were replaced.
	Cuts int
}

// NewCurve begins a series.
func NewCurve(name string) *Curve {
	return &Curve{Name: name, Points: &plot.Series{}, stumbles: -1, Least: -1, Most: -1}
}

// push puts a point at the end.
func (c *Curve) push(p placed) {
	x := float64(c.N)
	switch {
	case p.kind.stepped:
		x, c.step = p.step, p.step
	case c.steps > 0:
		x = c.step // a line without a step belongs to the one before
	}
	if n := len(c.kinds); n == 0 || c.kinds[n-1].kind != p.kind {
		c.kinds = append(c.kinds, stretch{c.N, p.kind})
	}
	c.count(p, 1)
	if c.stumbles < 0 && (p.epoch != p.epoch || c.N > 0 && p.epoch <= c.epoch.get(c.N-1)) {
		c.stumbles = c.N
	}
	c.epoch.put(p.epoch)
	c.at.put(p.at)
	c.Points.Add(x, p.value)
	c.Last = p.value
	if v := p.value; !math.IsNaN(v) && !math.IsInf(v, 0) {
		if c.Least < 0 || v < c.Value(c.Least) {
			c.Least = c.N
		}
		if c.Most < 0 || v > c.Value(c.Most) {
			c.Most = c.N
		}
	}
	c.N++
}

// Recorded is the series on record: the curve itself, or what it stands for.
func (c *Curve) Recorded() *Curve {
	if c.Record != nil {
		return c.Record
	}
	return c
}

// PutLike puts a value at the end, in the place that another curve's point has.
func (c *Curve) PutLike(o *Curve, i int, value float64) {
	p := o.point(i)
	p.value = value
	c.push(p)
}

// Value is that of the point with an index.
func (c *Curve) Value(i int) float64 {
	_, y := c.Points.At(i)
	return y
}

// X is where the point with an index lies on an axis.
func (c *Curve) X(a Axis, i int) float64 {
	switch a {
	case axisEpoch:
		const places = 1e6 // float32 rounded what was printed
		return math.Round(float64(c.epoch.get(i))*places) / places
	case AxisTime:
		return float64(c.at.get(i))
	case AxisOrder:
		return float64(i)
	}
	x, _ := c.Points.At(i)
	return x
}

// By is the curve by an axis.
func (c *Curve) By(a Axis) *plot.Series {
	if a == AxisStep || a == AxisAuto || a == AxisOrder && c.steps == 0 {
		return c.Points
	}
	if c.others[a] == nil {
		c.others[a] = &plot.Series{}
	}
	s := c.others[a]
	for ; c.taken[a] < c.N; c.taken[a]++ {
		s.Add(c.X(a, c.taken[a]), c.Value(c.taken[a]))
	}
	return s
}

// SameTime is the x of what the curve had when another had its point with an
// index. Both need a time for each point.
func (c *Curve) SameTime(a Axis, other *Curve, i int) float64 {
	return c.X(a, c.at.near(other.at.get(i)))
}

// Smoothed is the average of the curve by an axis. Only the newest is kept.
func (c *Curve) Smoothed(a Axis, factor float64) *plot.Series {
	if !c.Averaged(a, factor) {
		c.smooth = plot.NewSmoothed(c.By(a), factor)
	}
	return c.smooth.Series()
}

// Averaged reports whether the average by an axis is made already.
func (c *Curve) Averaged(a Axis, factor float64) bool { return c.smooth.Of(c.By(a), factor) }

// Best is the index of the best value by the rule that goes with its name; ok
// is false where there is no rule, or no value.
func (c *Curve) Best() (i int, ok bool) {
	switch goal.Of(c.Name) {
	case goal.Least:
		return c.Least, c.Least >= 0
	case goal.Most:
		return c.Most, c.Most >= 0
	}
	return 0, false
}

// columnChunk is how many numbers of a column lie together: growing copies
// nothing.
const columnChunk = 4096

// column is a number for each point.
type column struct {
	chunks [][]float32
	n      int
}

func (c *column) put(v float32) {
	if c.n%columnChunk == 0 {
		room := columnChunk
		if c.n == 0 {
			room = 16 // most series are short
		}
		c.chunks = append(c.chunks, make([]float32, 0, room))
	}
	last := len(c.chunks) - 1
	c.chunks[last] = append(c.chunks[last], v)
	c.n++
}

// cut leaves the first n numbers.
func (c *column) cut(n int) {
	full := (n + columnChunk - 1) / columnChunk
	c.chunks, c.n = c.chunks[:full], n
	if full > 0 {
		c.chunks[full-1] = c.chunks[full-1][:n-(full-1)*columnChunk]
	}
}

func (c *column) get(i int) float32 { return c.chunks[i/columnChunk][i%columnChunk] }

// Near is the index of the number that is nearest, in a column that grows.
func (c *column) near(v float32) int {
	lo, hi := 0, c.n
	for lo < hi {
		if mid := (lo + hi) / 2; c.get(mid) < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == c.n || lo > 0 && v-c.get(lo-1) < c.get(lo)-v {
		lo--
	}
	return lo
}
