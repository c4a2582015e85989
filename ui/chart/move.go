package chart

import (
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

const (
	// ZoomBy is how much a key or a notch of the wheel zooms.
	ZoomBy = 1.5
	// PanBy is the share of its width that a key moves the window by.
	PanBy = 0.25
)

// pickedAxis is by what the picked chart counts its x.
func (v *View) pickedAxis() (session.Axis, bool) {
	g := v.PickedGroup()
	if g == nil {
		return session.AxisAuto, false
	}
	return session.AxisOf(g, v.Asked), true
}

// Zoom changes the width of what is shown: around the cursor where it is seen,
// at the right edge where the newest is followed, else around the middle.
func (v *View) Zoom(by float64) {
	a, ok := v.pickedAxis()
	from, to, lo, hi, some := v.Window(a)
	if !ok || !some {
		return
	}
	at := (from + to) / 2
	switch c := v.cursor; {
	case c.on && !c.hover && c.axis == a && c.x >= from && c.x <= to:
		at = c.x
	case !v.windows[a].held:
		at = to
	}
	v.windows[a] = v.windows[a].zoomed(lo, hi, at, by)
}

// Pan moves the window by a share of its width.
func (v *View) Pan(by float64) {
	a, ok := v.pickedAxis()
	_, _, lo, hi, some := v.Window(a)
	if ok && some {
		w := &v.windows[a]
		*w = w.panned(lo, hi, by)
	}
}

// ShowAll shows all that there is of every axis.
func (v *View) ShowAll() { v.windows = [session.Axes]extent{} }

// FollowNewest moves the windows along with the newest points.
func (v *View) FollowNewest() {
	for a := range v.windows {
		v.windows[a].held = false
	}
}

// Anew shows all of another run: what was read and zoomed into was of the last.
func (v *View) Anew() {
	v.ShowAll()
	v.cursor = cursor{}
}

// Smoother goes on in the factors of the average; below the least there is none.
func (v *View) Smoother(d int) {
	v.Raw = v.Smooth+d <= 0
	v.Smooth = text.Clamp(v.Smooth+d, 0, len(Factors)-1)
}

// ToggleRaw draws the values alone, or with the light average again that they are
// drawn with where they would be a slab.
func (v *View) ToggleRaw() { v.Raw, v.Smooth = !v.Raw || v.Smooth > 0, 0 }

// ToggleLog makes the value axis logarithmic, or linear again.
func (v *View) ToggleLog() { v.logY = !v.logY }

// NextAxis goes on to the next axis that some curve has.
func (v *View) NextAxis() {
	for {
		v.Asked = (v.Asked + 1) % session.AxisOrder
		if v.Asked == session.AxisAuto || v.Of.State.AnyHas(v.Asked) {
			return
		}
	}
}

// Turn picks the chart that is so many further on; it goes round.
func (v *View) Turn(d int) { v.Picked = pick(v.Picked+d, max(len(v.Shown()), 1)) }

// MoveIn picks a chart of a grid of w × h cells: by rows, or by whole pages.
func (v *View) MoveIn(w, h, d int) {
	n := len(v.Shown())
	if n == 0 {
		return
	}
	across, down := grid(n, w, h)
	if d == 1 || d == -1 {
		v.Picked = text.Clamp(v.Picked+d*across, 0, n-1)
		return
	}
	v.Picked = text.Clamp((v.Picked/(across*down)+d/max(d, -d))*across*down, 0, n-1)
}

// SetFilter shows the charts whose names hold words.
func (v *View) SetFilter(words string) { v.Filter, v.Picked = words, 0 }

// Back takes back one thing that esc takes back before it leaves the screen: the
// cursor, and in a grid the whole screen for one chart, the filter.
func (v *View) Back(grid bool) bool {
	switch {
	case v.cursor.on && !v.cursor.hover:
		v.cursor = cursor{}
	case grid && v.Full:
		v.Full = false
	case grid && v.Filter != "":
		v.SetFilter("")
	default:
		v.cursor = cursor{}
		return false
	}
	return true
}
