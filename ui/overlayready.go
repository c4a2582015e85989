package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/plot"
)

// A comparison has many points, and another axis or average of all of them
// takes longer than a frame may. It is made in the background; until it is
// there the charts stay as they are.

// manner is by what the curves are drawn.
type manner struct {
	asked  axis
	smooth int
}

// made is a curve by an axis, with its average where there is one.
type made struct {
	curve  *curve
	axis   axis
	series *plot.Series
	smooth *plot.Smoothed
}

// lookedAt changes how charts are looked at: at once, but in a comparison the
// axis and the average when they are made.
func (m *Model) lookedAt(do func(*Model)) tea.Cmd {
	if m.here() != atCompare || m.ses == nil {
		do(m)
		return nil
	}
	v, c := &m.ses.charts, &m.comp
	shown := manner{v.asked, v.smooth}
	if c.turn == c.turned { // nothing is under way
		c.next = shown
	}
	v.asked, v.smooth = c.next.asked, c.next.smooth
	do(m)
	next := manner{v.asked, v.smooth}
	if next == c.next {
		v.asked, v.smooth = shown.asked, shown.smooth
		return nil
	}
	factor := v.factor()
	v.asked, v.smooth = shown.asked, shown.smooth
	c.next = next
	c.turn++
	gen, turn, curves := c.gen, c.turn, plansOf(m.ses.st.groups, next.asked)
	return func() tea.Msg { return readied{gen, turn, next, makeAll(curves, factor)} }
}

// plansOf says what has to be made of curves for an axis that was asked for.
func plansOf(groups [][]*curve, asked axis) []made {
	var out []made
	for _, g := range groups {
		a := axisOf(g, asked)
		for _, c := range g {
			p := made{curve: c, axis: a}
			if a == axisStep || a == axisOrder && c.steps == 0 {
				p.series = c.points
			} else if c.others[a] != nil && c.taken[a] == c.n {
				p.series = c.others[a]
			}
			out = append(out, p)
		}
	}
	return out
}

// makeAll makes what is missing. It reads the curves, which do not change any
// more, and writes nothing into them: the screen draws them meanwhile.
func makeAll(all []made, factor float64) []made {
	for i := range all {
		p := &all[i]
		if p.series == nil {
			p.series = &plot.Series{}
			for k := range p.curve.n {
				p.series.Add(p.curve.x(p.axis, k), p.curve.value(k))
			}
		}
		if factor > 0 {
			p.smooth = plot.NewSmoothed(p.series, factor)
			p.smooth.Series()
		}
	}
	return all
}

// takeReady shows what was made, unless something else was asked for since.
func (m *Model) takeReady(msg readied) {
	if !m.comparing(msg.gen) || msg.turn != m.comp.turn {
		return
	}
	for _, p := range msg.all {
		p.put()
	}
	m.comp.turned = msg.turn
	m.ses.charts.asked, m.ses.charts.smooth = msg.how.asked, msg.how.smooth
}

// put gives a curve what was made of it.
func (p *made) put() {
	if p.series != p.curve.points {
		p.curve.others[p.axis], p.curve.taken[p.axis] = p.series, p.curve.n
	}
	if p.smooth != nil {
		p.curve.smooth = p.smooth
	}
}
