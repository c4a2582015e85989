package nodes

import (
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// scales say what is drawn as idle and what as full.
var scales = [session.Quantities]struct {
	name, unit string
	lo, hi     float64
}{
	{"utilisation", "%", 0, 100},
	{"memory", "%", 0, 100},
	{"temperature", "°C", 30, 90},
	{"power", "% of its limit", 0, 100},
}

// Heat is how the heatmap is looked at.
type Heat struct {
	shows  session.Quantity
	pace   int  // which of the paces, counted from 1; 0 is what suits the width
	detail bool // a row for each GPU, whatever room there is
	top    int
}

// heatSpan is how many seconds are at least shown until somebody says otherwise.
const heatSpan = 120

// paceFor is how many seconds a column stands for.
func (v *Heat) paceFor(columns int) float64 {
	if v.pace > 0 {
		return paces[v.pace-1]
	}
	for _, p := range paces {
		if p*float64(columns) >= heatSpan {
			return p
		}
	}
	return paces[len(paces)-1]
}

// paces are the seconds that one column stands for.
var paces = []float64{1, 2, 5, 10, 20, 30, 60}

// Next shows the next quantity.
func (v *Heat) Next() { v.shows = (v.shows + 1) % session.Quantities }

// ToggleDetail gives each GPU a row, or goes back to all nodes on one screen.
func (v *Heat) ToggleDetail() { v.detail, v.top = !v.detail, 0 }

// Coarser lets a column stand for more time, or for less.
func (v *Heat) Coarser(d int) {
	if v.pace == 0 {
		v.pace = 3
	}
	v.pace = text.Clamp(v.pace+d, 1, len(paces))
}

// Move scrolls by nodes' rows.
func (v *Heat) Move(d int) { v.top = max(v.top+text.Clamp(d, -1<<20, 1<<20), 0) }
