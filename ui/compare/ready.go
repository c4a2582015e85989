package compare

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/session"
)

// A comparison has many points, and another axis or average of all of them
// takes longer than a frame may. It is made in the background; until it is
// there the charts stay as they are.

// manner is by what the curves are drawn.
type manner struct {
	asked  session.Axis
	smooth int
	raw    bool
}

func mannerOf(c *chart.View) manner { return manner{c.Asked, c.Smooth, c.Raw} }

// set has charts drawn so.
func (m manner) set(c *chart.View) { c.Asked, c.Smooth, c.Raw = m.asked, m.smooth, m.raw }

// LookedAt changes how charts are looked at: at once, but the axis and the
// average when they are made.
func (v *Comparison) LookedAt(do func()) tea.Cmd {
	c := v.Charts
	shown := mannerOf(c)
	if v.turn == v.turned { // nothing is under way
		v.next = shown
	}
	v.next.set(c)
	do()
	next := mannerOf(c)
	if next == v.next {
		shown.set(c)
		return nil
	}
	factor := c.FactorOf()
	shown.set(c)
	v.next = next
	v.turn++
	gen, turn, curves := v.gen, v.turn, session.Unprepared(c.Of.State.Groups(), next.asked)
	return func() tea.Msg { return Readied{gen, turn, next, session.Prepare(curves, factor)} }
}

// TakeReady shows what was made, unless something else was asked for since.
func (v *Comparison) TakeReady(msg Readied) {
	if !v.shown(msg.gen) || msg.turn != v.turn {
		return
	}
	for _, p := range msg.all {
		p.Keep()
	}
	v.turned = msg.turn
	msg.how.set(v.Charts)
}
