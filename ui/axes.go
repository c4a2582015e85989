package ui

import (
	"math"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/text"
)

// axis is what the x of a chart counts.
type axis uint8

const (
	axisAuto  axis = iota // the best of those below that all curves of a chart have
	axisStep              // steps of the whole run
	axisEpoch             // epochs, with fractions where they are printed
	axisTime              // seconds since the run was started
	axisOrder             // the values one after the other
	axes
)

// String is what stands at the end of an x axis.
func (a axis) String() string { return [...]string{"auto", "step", "epoch", "time", "point"}[a] }

// number writes an x of an axis.
func (a axis) number(x float64) string {
	if a == axisTime {
		return units.Clock(text.Seconds(x))
	}
	if a == axisStep || a == axisOrder {
		return text.Count(int64(math.Round(x)))
	}
	return plot.Short(x)
}

// has reports whether a curve can be drawn by an axis.
func (c *curve) has(a axis) bool {
	switch a {
	case axisStep:
		return c.n > 0 && c.steps*100 >= c.n*95 // a summary among them keeps the last step
	case axisEpoch:
		return c.n > 0 && c.epochs == c.n
	case axisTime:
		return c.n > 0 && c.times == c.n
	}
	return true
}

// axisOf chooses the axis of a chart: what a person asked for where all its
// curves have it; else the step beside every value, the epoch where each has a
// new one, the time where only that is common to the curves, the order.
func axisOf(group []*curve, asked axis) axis {
	every := func(ok func(c *curve) bool) bool {
		for _, c := range group {
			if !ok(c) && (c.n > 0 || c.run == 0) { // a run without the series has no say
				return false
			}
		}
		return true
	}
	has := func(a axis) bool { return every(func(c *curve) bool { return c.has(a) }) }
	switch {
	case asked != axisAuto && has(asked):
		return asked
	case has(axisStep):
		return axisStep
	case has(axisEpoch) && every(func(c *curve) bool { return c.climbs }):
		return axisEpoch
	case len(group) > 1 && has(axisTime):
		return axisTime
	}
	return axisOrder
}

// anyHas reports whether an axis is worth being offered.
func (s *state) anyHas(a axis) bool {
	for _, c := range s.curves {
		if c.has(a) {
			return true
		}
	}
	return false
}

// span is the x from the first to the last point of all curves that are drawn
// by an axis: charts side by side then have the same x above each other. The
// order is each curve's own.
func (s *state) span(a, asked axis) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, g := range s.chartGroups() {
		if axisOf(g, asked) != a {
			continue
		}
		for _, c := range g {
			if from, to, some := c.by(a).Span(); some {
				lo, hi = min(lo, from), max(hi, to)
			}
		}
	}
	return lo, hi, lo <= hi
}
