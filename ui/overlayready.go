package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/session"
)

// A comparison has many points, and another axis or average of all of them
// takes longer than a frame may. It is made in the background; until it is
// there the charts stay as they are.

// manner is by what the curves are drawn.
type manner struct {
	asked  session.Axis
	smooth int
}

// lookedAt changes how charts are looked at: at once, but in a comparison the
// axis and the average when they are made.
func (m *Model) lookedAt(do func(*Model)) tea.Cmd {
	if m.here() != atCompare || m.ses == nil {
		do(m)
		return nil
	}
	v, c := &m.charts, &m.comp
	shown := manner{v.Asked, v.Smooth}
	if c.turn == c.turned { // nothing is under way
		c.next = shown
	}
	v.Asked, v.Smooth = c.next.asked, c.next.smooth
	do(m)
	next := manner{v.Asked, v.Smooth}
	if next == c.next {
		v.Asked, v.Smooth = shown.asked, shown.smooth
		return nil
	}
	factor := v.Factor()
	v.Asked, v.Smooth = shown.asked, shown.smooth
	c.next = next
	c.turn++
	gen, turn, curves := c.gen, c.turn, session.Unprepared(m.ses.State.Groups(), next.asked)
	return func() tea.Msg { return readied{gen, turn, next, session.Prepare(curves, factor)} }
}

// takeReady shows what was made, unless something else was asked for since.
func (m *Model) takeReady(msg readied) {
	if !m.comparing(msg.gen) || msg.turn != m.comp.turn {
		return
	}
	for _, p := range msg.all {
		p.Keep()
	}
	m.comp.turned = msg.turn
	m.charts.Asked, m.charts.Smooth = msg.how.asked, msg.how.smooth
}
