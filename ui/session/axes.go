package session

import (
	"math"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/scale"
	"github.com/dlwb/dlwb/ui/text"
)

// Axis is what the x of a chart counts.
type Axis uint8

const (
	AxisAuto  Axis = iota // the best of those below that all curves of a chart have
	AxisStep              // steps of the whole run
	axisEpoch             // epochs, with fractions where they are printed
	AxisTime              // seconds since the run was started
	AxisOrder             // the values one after the other
	Axes
)

// String is what stands at the end of an x axis.
func (a Axis) String() string { return [...]string{"auto", "step", "epoch", "time", "point"}[a] }

// Number writes an x of an axis.
func (a Axis) Number(x float64) string {
	if a == AxisTime {
		return units.Clock(text.Seconds(x))
	}
	if a == AxisStep || a == AxisOrder {
		return text.Count(int64(math.Round(x)))
	}
	return scale.Short(x)
}

// Has reports whether a curve can be drawn by an axis.
func (c *Curve) Has(a Axis) bool {
	switch a {
	case AxisStep:
		return c.N > 0 && c.steps*100 >= c.N*95 // a summary among them keeps the last step
	case axisEpoch:
		return c.N > 0 && c.epochs == c.N
	case AxisTime:
		return c.N > 0 && c.times == c.N
	}
	return true
}

// AxisOf chooses the axis of a chart: what a person asked for where all its
// curves have it; else the step beside every value, the epoch where each has a
// new one, the time where only that is common to the curves, the order.
func AxisOf(group []*Curve, asked Axis) Axis {
	every := func(ok func(c *Curve) bool) bool {
		for _, c := range group {
			if !ok(c) && (c.N > 0 || c.Run == 0) { // a run without the series has no say
				return false
			}
		}
		return true
	}
	has := func(a Axis) bool { return every(func(c *Curve) bool { return c.Has(a) }) }
	switch {
	case asked != AxisAuto && has(asked):
		return asked
	case has(AxisStep):
		return AxisStep
	case has(axisEpoch) && every(func(c *Curve) bool { return c.stumbles < 0 }):
		return axisEpoch
	case len(group) > 1 && has(AxisTime):
		return AxisTime
	}
	return AxisOrder
}

// AnyHas reports whether an axis is worth being offered.
func (s *State) AnyHas(a Axis) bool {
	for _, c := range s.Curves {
		if c.Has(a) {
			return true
		}
	}
	return false
}

// Span is the x from the first to the last point of all curves that are drawn
// by an axis: charts side by side then have the same x above each other. The
// order is each curve's own.
func (s *State) Span(a, asked Axis) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, g := range s.Groups() {
		if AxisOf(g, asked) != a {
			continue
		}
		for _, c := range g {
			if from, to, some := c.By(a).Span(); some {
				lo, hi = min(lo, from), max(hi, to)
			}
		}
	}
	return lo, hi, lo <= hi
}
