package ui

import (
	"fmt"
	"sort"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench"
)

// machines is what a cluster consists of, where it is paid for.
type machines struct {
	count    int
	instance string  // its type; empty where there is no such thing
	place    string  // zone, or region
	perHour  float64 // while they run, US dollars
	spot     bool
	stopped  bool
}

func (c machines) String() string {
	text := fmt.Sprintf("%d × %s", c.count, c.instance)
	if c.spot {
		text += " spot"
	}
	if c.place != "" {
		text += " in " + c.place
	}
	return text
}

// bill is what a cluster costs, and has cost. A new price holds from its
// moment on: what was spent before stays as it was.
type bill struct {
	perHour float64 // US dollars
	parts   []cloud.Cost
	since   time.Time // from when perHour is paid; zero while nothing is
	before  float64   // what was spent until then
}

// expect notes a price that a plan names: it is believed until the machines
// are there.
func (b *bill) expect(perHour float64) {
	if b.since.IsZero() {
		b.perHour = perHour
	}
}

// begin is when the first machine may cost something.
func (b *bill) begin(at time.Time) {
	if b.since.IsZero() {
		b.since = at
	}
}

func (b *bill) reprice(at time.Time, perHour float64, parts []cloud.Cost) {
	b.begin(at)
	b.before, b.since = b.until(at), at
	b.perHour, b.parts = perHour, parts
}

// until is what was spent up to a moment.
func (b *bill) until(now time.Time) float64 {
	if b.since.IsZero() {
		return 0
	}
	return b.before + b.perHour*max(now.Sub(b.since).Hours(), 0)
}

// lease is when machines end by themselves, and what the provider has
// announced about them.
type lease struct {
	ends    time.Time // the lifetime's end, as far as the cluster's record says
	nodes   map[int]workbench.LeaseChanged
	notices map[int]workbench.SpotNotice
}

func (l *lease) changed(b workbench.LeaseChanged) {
	if l.nodes == nil {
		l.nodes = map[int]workbench.LeaseChanged{}
	}
	l.nodes[b.Node] = b
}

func (l *lease) notice(b workbench.SpotNotice) {
	if l.notices == nil {
		l.notices = map[int]workbench.SpotNotice{}
	}
	l.notices[b.Node] = b
}

// up is that the machines are there, or that their lifetime has moved. What
// the nodes said of another bound still holds.
func (l *lease) up(at, ends time.Time) {
	l.ends = ends
	for n, b := range l.nodes {
		if b.Bound == boundLifetime {
			delete(l.nodes, n)
		}
	}
	for n, b := range l.notices {
		if !b.At.After(at) {
			delete(l.notices, n)
		}
	}
}

// The bounds of a lease that the screen treats in a way of their own.
const (
	boundLifetime = "lifetime"
	boundBudget   = "budget"
)

// bound is what ends machines by itself next.
type bound struct {
	at   time.Time
	why  string // "lifetime", "idle", …
	node int    // the one it ends, where the others go on; -1 for all
}

// next is the bound that is reached first; false when there is none.
func (l *lease) next() (bound, bool) {
	b := bound{l.ends, boundLifetime, -1}
	for _, n := range sortedKeys(l.nodes) {
		if c := l.nodes[n]; !c.Ends.IsZero() && (b.at.IsZero() || c.Ends.Before(b.at)) {
			b = bound{c.Ends, word(c.Bound), n}
		}
	}
	if b.node >= 0 && l.together(b.at) {
		b.node = -1
	}
	return b, !b.at.IsZero()
}

// sameEnd is how far apart nodes may end and still be said to end together.
const sameEnd = 2 * time.Minute

// together reports whether all nodes that were heard of end at about a moment.
func (l *lease) together(at time.Time) bool {
	for _, c := range l.nodes {
		if c.Ends.Sub(at) > sameEnd {
			return false
		}
	}
	return true
}

func sortedKeys[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Ints(keys)
	return keys
}

// boundWords say what a bound means to somebody who has not read the manual.
var boundWords = map[string]string{"bootstrap": "unless it is used"}

// Countdowns turn to a warning, then to an alarm, when so little is left.
const (
	warnLeft  = 30 * time.Minute
	alarmLeft = 5 * time.Minute
)

// countdown says when the machines end by themselves; empty when they don't.
func (m *Model) countdown() string {
	s := m.ses
	b, ok := s.st.lease.next()
	if !ok || s.over() || s.st.phase() == workbench.PhaseStopping {
		return ""
	}
	why := b.why
	if w := boundWords[why]; w != "" {
		why = w
	}
	if b.node >= 0 {
		why += ", " + nodeName(b.node)
	}
	return m.endsText(b.at) + m.styles.Dim.of(" ("+why+")")
}

// endsText counts down to a moment.
func (m *Model) endsText(at time.Time) string {
	switch left := at.Sub(m.now); {
	case left <= 0:
		return m.styles.Bad.of("! overdue " + units.Clock(-left))
	case left < alarmLeft:
		return m.styles.Bad.of("! ends in " + units.Clock(left))
	case left < warnLeft:
		return m.styles.Warn.of("ends in " + units.Clock(left))
	default:
		return m.styles.Dim.of("ends in ") + units.Clock(left)
	}
}
