// Package money works out what a cluster has cost, what it costs and until when
// its machines are leased, from the events of its life. It asks nobody.
package money

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench/event"
)

// Account is what the events of a cluster's life say of its money, its lease
// and what is left of its machines. It is a pure fold and the only place where
// these are worked out: the screen folds the events that it reads, a list those
// of the store.
type Account struct {
	PerHour float64 // while the machines run, in US dollars
	Parts   []cloud.Cost
	// Ends is when the lifetime of the machines is over, as their record says.
	Ends    time.Time
	Bounds  map[int]event.LeaseChanged // what the nodes said of their leases
	Notices map[int]event.SpotNotice
	Receipt *event.ReceiptMade

	since  time.Time // from when PerHour is paid; zero while nothing is
	before float64   // what was spent until then
	nodes  int
	gone   map[int]time.Time // when a node was proven gone
	jobs   []charge          // those that are paid for one by one; PerHour is none of theirs
}

// The bounds of a lease that nothing but a new lease moves.
const (
	BoundLifetime = "lifetime"
	BoundBudget   = "budget"
)

// Apply folds one event.
func (a *Account) Apply(e event.Event) {
	switch b := e.Body.(type) {
	case event.PlanMade:
		a.planned(b)
	case event.StepStarted:
		if b.Step == event.StepCluster && a.since.IsZero() {
			a.since = e.Time
		}
	case event.ClusterUp:
		if b.Job != "" {
			a.job(e.Time, b)
		} else {
			a.reprice(e.Time, b.PricePerHour, b.Costs)
		}
		a.up(e.Time, b)
	case event.RunEnded:
		a.jobEnded(e.Run, e.Time, b)
	case event.RunBilled:
		a.jobBilled(e.Run, e.Time, b.Cost)
	case event.ClusterStopped:
		a.reprice(e.Time, b.PricePerHour, b.Costs)
		a.Ends, a.Bounds, a.Notices, a.gone = time.Time{}, nil, nil, nil
	case event.LeaseChanged:
		set(&a.Bounds, b.Node, b)
	case event.SpotNotice:
		set(&a.Notices, b.Node, b)
	case event.NodeChanged:
		a.nodeChanged(e.Time, b)
	case event.ReceiptMade:
		a.Receipt = &b
	}
}

// planned begins a new attempt. A price that a plan names is believed until
// the machines are there.
func (a *Account) planned(b event.PlanMade) {
	if a.Receipt != nil && a.Receipt.Proven {
		*a = Account{}
	}
	a.Receipt = nil
	if a.since.IsZero() {
		a.PerHour = b.PricePerHour
	}
}

// up is that the machines are there, or that their lifetime has moved. What
// the nodes said of another bound still holds.
func (a *Account) up(at time.Time, b event.ClusterUp) {
	a.Ends, a.nodes, a.gone = b.Ends, len(b.Nodes), nil
	for n, c := range a.Bounds {
		if c.Bound == BoundLifetime {
			delete(a.Bounds, n)
		}
	}
	for n, c := range a.Notices {
		if !c.At.After(at) {
			delete(a.Notices, n)
		}
	}
}

func (a *Account) nodeChanged(at time.Time, b event.NodeChanged) {
	if b.State != cloud.Gone {
		delete(a.gone, b.Node)
		return
	}
	delete(a.Notices, b.Node) // what was announced has happened
	if _, known := a.gone[b.Node]; !known {
		set(&a.gone, b.Node, at)
	}
}

func set[V any](m *map[int]V, key int, v V) {
	if *m == nil {
		*m = map[int]V{}
	}
	(*m)[key] = v
}

// reprice notes that a price holds from a moment on: what was spent before
// stays as it was.
func (a *Account) reprice(at time.Time, perHour float64, parts []cloud.Cost) {
	if a.since.IsZero() {
		a.since = at
	}
	a.before, a.since = a.until(at), at
	a.PerHour, a.Parts = perHour, parts
}

// Spent is what the cluster has cost up to a moment. A receipt knows better
// than the prices, unless it proves nothing: who could not be asked about the
// machines knows neither whether they go on nor what they have cost.
func (a *Account) Spent(now time.Time) float64 {
	if a.Receipt != nil {
		return a.Owed(*a.Receipt, now)
	}
	sum := a.until(now)
	for _, c := range a.jobs {
		sum += c.cost(now)
	}
	return sum
}

// Owed is what a cluster has cost by a receipt, and what its machines have cost all
// the same where that proves nothing.
func (a *Account) Owed(r event.ReceiptMade, now time.Time) float64 {
	if r.Proven {
		return r.Cost
	}
	return max(r.Cost, a.until(now))
}

// until sums up what each node costs until it ends.
func (a *Account) until(now time.Time) float64 {
	if a.since.IsZero() {
		return 0
	}
	sum := a.before
	for n := range max(a.nodes, 1) {
		sum += a.PerHour / float64(max(a.nodes, 1)) * max(a.end(n, now).Sub(a.since).Hours(), 0)
	}
	return sum
}

// end is until when a node was up, as far as that is known at a moment. One that
// is proven gone was up no longer than its lease let it, whenever somebody looked.
// One that is not may have outlived its lease, and is counted on.
func (a *Account) end(node int, now time.Time) time.Time {
	proven, gone := a.gone[node]
	if !gone {
		return now
	}
	for _, end := range []time.Time{proven, a.limit(node)} {
		if !end.IsZero() && end.Before(now) {
			now = end
		}
	}
	return now
}

// Lived is how long there were machines of a cluster that was begun at a time.
func (a *Account) Lived(began, now time.Time) time.Duration {
	if a.Receipt != nil && (a.Receipt.Proven || a.PerHour == 0) {
		return time.Duration(a.Receipt.Lived * float64(time.Second))
	}
	last := began
	for n := range max(a.nodes, 1) {
		if end := a.end(n, now); end.After(last) {
			last = end
		}
	}
	return last.Sub(began)
}

// limit is when the lease of a node ends it, whatever happens on it; zero for
// never.
func (a *Account) limit(node int) time.Time {
	b := a.Bounds[node]
	if b.Bound != BoundLifetime && b.Bound != BoundBudget || !a.Ends.IsZero() && a.Ends.Before(b.Ends) {
		return a.Ends
	}
	return b.Ends
}

// LatestEnd is when the lease has ended every machine, whatever happens on
// them; zero for never, or where a node has none.
func (a *Account) LatestEnd() (latest time.Time) {
	for n := range max(a.nodes, 1) {
		end := a.limit(n)
		if end.IsZero() {
			return end
		}
		if end.After(latest) {
			latest = end
		}
	}
	return latest
}

// AllGone reports that every machine is proven gone, though nobody tore the
// cluster down.
func (a *Account) AllGone() bool { return a.nodes > 0 && len(a.gone) >= a.nodes }

// Rate is what the machines that are not proven gone cost an hour at a moment.
func (a *Account) Rate(now time.Time) float64 {
	if len(a.jobs) > 0 {
		return a.jobsRate(now)
	}
	if a.nodes == 0 {
		return a.PerHour
	}
	return a.PerHour * float64(max(a.nodes-len(a.gone), 0)) / float64(a.nodes)
}

// Next is the bound that is reached first; false when there is none.
func (a *Account) Next() (event.Bound, bool) {
	b := event.Bound{At: a.Ends, Why: BoundLifetime, Node: -1}
	for n := range a.nodes + len(a.Bounds) {
		if c := a.Bounds[n]; !c.Ends.IsZero() && (b.At.IsZero() || c.Ends.Before(b.At)) {
			b = event.Bound{At: c.Ends, Why: c.Bound, Node: n}
		}
	}
	if b.Node >= 0 && a.together(b.At) {
		b.Node = -1
	}
	return b, !b.At.IsZero()
}

// sameEnd is how far apart nodes may end and still be said to end together.
const sameEnd = 2 * time.Minute

// together reports whether all nodes that were heard of end at about a moment.
func (a *Account) together(at time.Time) bool {
	for _, c := range a.Bounds {
		if c.Ends.Sub(at) > sameEnd {
			return false
		}
	}
	return true
}

// Gone reports whether a node is proven gone.
func (a *Account) Gone(node int) bool {
	_, gone := a.gone[node]
	return gone
}

// Clone is a copy that further events do not change.
func (a *Account) Clone() Account {
	c := *a
	c.Bounds, c.Notices, c.gone = maps.Clone(a.Bounds), maps.Clone(a.Notices), maps.Clone(a.gone)
	c.jobs = slices.Clone(a.jobs)
	return c
}

// Disks is what of a price goes on when the machines are stopped.
func Disks(parts []cloud.Cost) (perHour float64) {
	for _, c := range parts {
		if strings.Contains(strings.ToLower(c.What), "disk") {
			perHour += c.PerHour
		}
	}
	return perHour
}
