package session

import (
	"math"
	"sort"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/plot"
)

// placed is a point as a curve keeps it.
type placed struct {
	step, value float64
	epoch, at   float32
	kind        kind
}

// kind is how points are placed: nearly all of a curve are alike.
type kind struct {
	by      metrics.Axis
	stepped bool
}

// stretch is points of one kind, from an index on.
type stretch struct {
	from int
	kind kind
}

// Add takes a point to its place: what a resumed run repeats is replaced, and a
// single point that came late is put where it belongs. from is the moment that
// its time is counted from.
func (c *Curve) Add(p metrics.Point, from time.Time) {
	nan := float32(math.NaN())
	q := placed{value: p.Value, epoch: nan, at: nan, kind: kind{p.X, p.Step != nil}}
	if p.Step != nil {
		q.step = float64(*p.Step)
	}
	if p.Epoch != nil {
		q.epoch = float32(*p.Epoch)
	}
	if !p.Time.IsZero() && !from.IsZero() {
		q.at = float32(p.Time.Sub(from).Seconds())
	}
	x, by := p.Place()
	c.order.Add((*inOrder)(c), q, x, uint8(by))
}

// inOrder is a curve as its order sees it.
type inOrder Curve

// Len is how many points there are.
func (o *inOrder) Len() int { return o.N }

// Place is by what a point is ordered.
func (o *inOrder) Place(i int) (float64, uint8) {
	c := (*Curve)(o)
	switch k := c.kindOf(i); {
	case k.by >= metrics.AxisInner && k.stepped:
		x, _ := c.Points.At(i)
		return x, uint8(k.by)
	case k.by == metrics.AxisEpoch:
		if e := c.epoch.get(i); e == e {
			return float64(e), uint8(k.by)
		}
	}
	return 0, 0
}

// Push puts a point at the end.
func (o *inOrder) Push(p placed) { (*Curve)(o).push(p) }

// Cut leaves the first n points.
func (o *inOrder) Cut(n int) {
	c := (*Curve)(o)
	if n >= c.N {
		return
	}
	for i := n; i < c.N; i++ {
		c.count(c.point(i), -1)
	}
	c.Cuts++
	c.Points.Cut(n)
	c.epoch.cut(n)
	c.at.cut(n)
	for len(c.kinds) > 0 && c.kinds[len(c.kinds)-1].from >= n {
		c.kinds = c.kinds[:len(c.kinds)-1]
	}
	c.N = n
	if c.stumbles >= n {
		c.stumbles = -1
	}
	c.others, c.taken, c.smooth, c.look = [Axes]*plot.Series{}, [Axes]int{}, nil, look{}
	c.Least, c.Most, _ = c.Points.Extremes()
	c.Last, c.step = 0, 0
	if n > 0 {
		c.step, c.Last = c.Points.At(n - 1)
	}
}

// Insert puts a point before the one with an index.
func (o *inOrder) Insert(i int, p placed) {
	c := (*Curve)(o)
	behind := make([]placed, 0, c.N-i)
	for k := i; k < c.N; k++ {
		behind = append(behind, c.point(k))
	}
	o.Cut(i)
	c.push(p)
	for _, q := range behind {
		c.push(q)
	}
}

// point is one of the points, as it was put.
func (c *Curve) point(i int) placed {
	x, y := c.Points.At(i)
	return placed{step: x, value: y, epoch: c.epoch.get(i), at: c.at.get(i), kind: c.kindOf(i)}
}

// kindOf is how a point is placed.
func (c *Curve) kindOf(i int) kind {
	k := sort.Search(len(c.kinds), func(k int) bool { return c.kinds[k].from > i })
	return c.kinds[k-1].kind
}

// count counts a point among those that have a step, an epoch, a time; by −1 it
// is taken out.
func (c *Curve) count(p placed, by int) {
	if p.kind.stepped {
		c.steps += by
	}
	if p.epoch == p.epoch {
		c.epochs += by
	}
	if p.at == p.at {
		c.times += by
	}
}
