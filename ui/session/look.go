package session

import (
	"math"
	"sort"
	"strings"
)

// look is what was found of a curve's values when it had so many points: it is
// looked at anew when there are an eighth more.
type look struct {
	n       int
	typical float64
	light   float64
}

// looked is what there is to know of a curve's values.
func (c *Curve) looked() look {
	if n := c.look.n; n > 0 && c.N >= n && c.N <= n+n/8 {
		return c.look
	}
	c.look = look{n: c.N, typical: c.Points.Typical(), light: c.lightly()}
	return c.look
}

const (
	// slabColumns is the width of a usual chart, in cells.
	slabColumns = 100
	// slabShare is the part of a chart's height that noise must fill for the curve
	// to be a slab.
	slabShare = 0.2
)

// lightFactors are the averages that are light, by how many points they need in a
// column.
var lightFactors = []float64{0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999}

// lightly is the factor of an average by which a curve can be read whose values
// alone are a slab, since noise fills the height; 0 where they are not.
func (c *Curve) lightly() float64 {
	lo, hi, ok := c.Points.Range()
	if !ok {
		return 0
	}
	if IsRate(c.Name) {
		lo = min(lo, 0)
	}
	if noise := c.Points.Noise(slabColumns); !(noise > 0) || noise < slabShare*(hi-lo) {
		return 0
	}
	want := 1 - slabColumns/(2*float64(c.N))
	best := lightFactors[0]
	for _, f := range lightFactors {
		if f <= want {
			best = f
		}
	}
	return best
}

// Light is the factor of the light average that a curve is drawn with where a
// person has asked for none: 0 where its values can be read as they are.
func (c *Curve) Light() float64 { return c.looked().light }

// farApart is by how much the scales of curves differ that can't share a value axis.
const farApart = 1000

// ValueAxes says by which value axis each curve of a chart is drawn: all by 0, the
// one at the left, where their scales are near each other; some by 1, the one at the
// right, where two do; else each by its own.
func ValueAxes(group []*Curve) []int {
	axes := make([]int, len(group))
	order := make([]int, 0, len(group)) // those with a scale, the smallest first
	for i, c := range group {
		if t := c.looked().typical; t > 0 {
			order = append(order, i)
		}
	}
	size := func(k int) float64 { return group[order[k]].look.typical }
	sort.SliceStable(order, func(a, b int) bool { return size(a) < size(b) })
	n := len(order)
	if n < 2 || size(n-1) < farApart*size(0) {
		return axes
	}
	cut, gap := 1, 0.0
	for k := 1; k < n; k++ {
		if g := math.Log(size(k)) - math.Log(size(k-1)); g > gap {
			cut, gap = k, g
		}
	}
	if size(cut-1) >= farApart*size(0) || size(n-1) >= farApart*size(cut) {
		for i := range axes {
			axes[i] = i
		}
		return axes
	}
	for k := cut; k < n; k++ {
		axes[order[k]] = 1
	}
	if first := axes[0]; first == 1 { // the first curve is at the left
		for i := range axes {
			axes[i] = 1 - axes[i]
		}
	}
	return axes
}

// IsRate reports whether a series counts something a second.
func IsRate(name string) bool {
	return strings.HasSuffix(name, "/s") || strings.HasSuffix(name, "_per_sec")
}
