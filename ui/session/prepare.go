package session

import (
	"github.com/dlwb/dlwb/ui/plot"
)

// Prepared is a curve by an axis, with its average where one is asked for: what
// drawing would make by itself, made beforehand.
type Prepared struct {
	curve  *Curve
	axis   Axis
	series *plot.Series
	smooth *plot.Smoothed
}

// Unprepared says what has to be made of curves for an axis that was asked for.
func Unprepared(groups [][]*Curve, asked Axis) []Prepared {
	var out []Prepared
	for _, g := range groups {
		a := AxisOf(g, asked)
		for _, c := range g {
			p := Prepared{curve: c, axis: a}
			if a == AxisStep || a == AxisOrder && c.steps == 0 {
				p.series = c.Points
			} else if c.others[a] != nil && c.taken[a] == c.N {
				p.series = c.others[a]
			}
			out = append(out, p)
		}
	}
	return out
}

// Prepare makes what is missing; factor is that of the average of a curve. It reads
// the curves, which must not change meanwhile, and writes nothing into them: a
// screen may draw them.
func Prepare(all []Prepared, factor func(*Curve) float64) []Prepared {
	for i := range all {
		p := &all[i]
		if p.series == nil {
			p.series = &plot.Series{}
			for k := range p.curve.N {
				p.series.Add(p.curve.X(p.axis, k), p.curve.Value(k))
			}
		}
		if f := factor(p.curve); f > 0 {
			p.smooth = plot.NewSmoothed(p.series, f)
			p.smooth.Series()
		}
	}
	return all
}

// Keep gives the curve what was made of it.
func (p *Prepared) Keep() {
	if p.series != p.curve.Points {
		p.curve.others[p.axis], p.curve.taken[p.axis] = p.series, p.curve.N
	}
	if p.smooth != nil {
		p.curve.smooth = p.smooth
	}
}
