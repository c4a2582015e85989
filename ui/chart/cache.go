package chart

import (
	"github.com/dlwb/dlwb/ui/session"
)

// Kept are charts as they were drawn last, by their place among those that are
// shown: of what does not change by itself, such as finished runs.
type Kept map[int]drawnChart

// drawnChart is a chart as it was drawn last, and how it was looked at.
type drawnChart struct {
	view    View
	w, h, n int // its size, and how many curves there were
	dark    bool
	group   *session.Curve // its first, which tells it from another at that place
	rows    []string
}

// keptRows is a chart that is drawn anew only when something about it is
// another.
func (p Page) keptRows(s Spot, w int) []string {
	view := *p.View
	view.drag, view.Picked, view.top, view.Full, view.Filter = drag{}, 0, 0, false, ""
	key := drawnChart{view: view, w: w, h: s.H, n: len(p.Of.State.Curves), dark: p.Styles.Dark}
	d, ok := p.Kept[s.Index]
	if !ok || d.view != key.view || d.w != key.w || d.h != key.h || d.n != key.n || d.dark != key.dark || d.group != s.group[0] {
		key.rows, key.group = p.one(s.group, w, s.H, false), s.group[0]
		p.Kept[s.Index], d = key, key
	}
	return d.rows
}
