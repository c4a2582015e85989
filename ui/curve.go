package ui

import (
	"math"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/plot"
)

// curve is one series of the run. A point takes 31 bytes: 23 in points, by the
// axis that nearly all are looked at by, and four each for the two others.
type curve struct {
	name   string
	run    int // in a comparison: which run's it is, from 1
	n      int
	points *plot.Series // by step, or by order where the lines name none
	epoch  column
	at     column // seconds since the run was started
	last   float64
	step   float64 // the newest that was named

	steps, epochs, times int  // how many points have one
	climbs               bool // every point has an epoch, each a later one

	least, most int // where the smallest and the largest value are; -1 for nowhere

	others [axes]*plot.Series // by the other axes, made when they are looked at
	taken  [axes]int          // points that are in them
	smooth *plot.Smoothed
}

func newCurve(name string) *curve {
	return &curve{name: name, points: &plot.Series{}, climbs: true, least: -1, most: -1}
}

// add takes a point; from is the moment that its time is counted from.
func (c *curve) add(p metrics.Point, from time.Time) {
	x := float64(c.n)
	switch {
	case p.Step != nil:
		x = float64(*p.Step)
		c.step = x
		c.steps++
	case c.steps > 0:
		x = c.step // a line without a step belongs to the one before
	}
	c.addPlace(p, from)
	c.points.Add(x, p.Value)
	c.last = p.Value
	if v := p.Value; !math.IsNaN(v) && !math.IsInf(v, 0) {
		if c.least < 0 || v < c.value(c.least) {
			c.least = c.n
		}
		if c.most < 0 || v > c.value(c.most) {
			c.most = c.n
		}
	}
	c.n++
}

// addPlace notes epoch and time of a point.
func (c *curve) addPlace(p metrics.Point, from time.Time) {
	nan := float32(math.NaN())
	epoch, at := nan, nan
	if p.Epoch != nil {
		epoch = float32(*p.Epoch)
		c.epochs++
		c.climbs = c.climbs && (c.n == 0 || epoch > c.epoch.get(c.n-1))
	} else {
		c.climbs = false
	}
	if !p.Time.IsZero() && !from.IsZero() {
		at = float32(p.Time.Sub(from).Seconds())
		c.times++
	}
	c.epoch.put(epoch)
	c.at.put(at)
}

func (c *curve) value(i int) float64 {
	_, y := c.points.At(i)
	return y
}

// x is where a point lies on an axis.
func (c *curve) x(a axis, i int) float64 {
	switch a {
	case axisEpoch:
		const places = 1e6 // float32 rounded what was printed
		return math.Round(float64(c.epoch.get(i))*places) / places
	case axisTime:
		return float64(c.at.get(i))
	case axisOrder:
		return float64(i)
	}
	x, _ := c.points.At(i)
	return x
}

// by is the curve by an axis.
func (c *curve) by(a axis) *plot.Series {
	if a == axisStep || a == axisAuto || a == axisOrder && c.steps == 0 {
		return c.points
	}
	if c.others[a] == nil {
		c.others[a] = &plot.Series{}
	}
	s := c.others[a]
	for ; c.taken[a] < c.n; c.taken[a]++ {
		s.Add(c.x(a, c.taken[a]), c.value(c.taken[a]))
	}
	return s
}

// smoothed is the average of the curve by an axis. Only the newest is kept.
func (c *curve) smoothed(a axis, factor float64) *plot.Series {
	from := c.by(a)
	if !c.smooth.Of(from, factor) {
		c.smooth = plot.NewSmoothed(from, factor)
	}
	return c.smooth.Series()
}

// best is the index of the best value by the rule that goes with its name; ok
// is false where there is no rule, or no value.
func (c *curve) best() (i int, ok bool) {
	switch metrics.GoalOf(c.name) {
	case metrics.Least:
		return c.least, c.least >= 0
	case metrics.Most:
		return c.most, c.most >= 0
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

func (c *column) get(i int) float32 { return c.chunks[i/columnChunk][i%columnChunk] }

// near is the index of the number that is nearest, in a column that grows.
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
