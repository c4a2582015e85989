package compare

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

// LookedAt changes how charts are looked at: at once, but the axis and the
// average when they are made.
func (v *Comparison) LookedAt(do func()) tea.Cmd {
	c := v.Charts
	shown := manner{c.Asked, c.Smooth}
	if v.turn == v.turned { // nothing is under way
		v.next = shown
	}
	c.Asked, c.Smooth = v.next.asked, v.next.smooth
	do()
	next := manner{c.Asked, c.Smooth}
	if next == v.next {
		c.Asked, c.Smooth = shown.asked, shown.smooth
		return nil
	}
	factor := c.Factor()
	c.Asked, c.Smooth = shown.asked, shown.smooth
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
	v.Charts.Asked, v.Charts.Smooth = msg.how.asked, msg.how.smooth
}
