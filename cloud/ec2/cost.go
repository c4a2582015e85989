package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

// costs are the parts of what machines cost an hour while they run.
func costs(launches []launch) []cloud.Cost {
	var all []cloud.Cost
	var gib int32
	var nodes int
	var disk, address float64
	for _, l := range launches {
		n := len(l.Nodes)
		all = append(all, cloud.Cost{What: l.what(), PerHour: float64(n) * l.Machine.PerHour, Source: priceSource(l.Machine)})
		gib, nodes = gib+int32(n)*l.disks(), nodes+n
		disk += float64(n) * l.perNodeStopped()
		address += float64(n) * l.Address.PerHour
	}
	if nodes == 0 {
		return nil
	}
	all = append(all, diskCost(gib, disk, launches[0]))
	if launches[0].private() || launches[0].Six { // what is not public costs nothing, nor does an address of IPv6
		return all
	}
	return append(all, cloud.Cost{What: many(nodes, "public address", "es"), PerHour: address, Source: priceSource(launches[0].Address)})
}

// many counts things: "1 machine", "2 machines".
func many(n int, what, ending string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %s%s", n, what, ending)
}

func diskCost(gib int32, perHour float64, l launch) cloud.Cost {
	return cloud.Cost{What: units.Binary(int64(gib)<<30) + " of gp3 disk", PerHour: perHour, Source: priceSource(l.Disk)}
}

// stoppedCosts are those while the machines are stopped.
func stoppedCosts(launches []launch) []cloud.Cost {
	var gib int32
	var disk float64
	for _, l := range launches {
		gib += int32(len(l.Nodes)) * l.disks()
		disk += float64(len(l.Nodes)) * l.perNodeStopped()
	}
	if len(launches) == 0 {
		return nil
	}
	return []cloud.Cost{diskCost(gib, disk, launches[0])}
}

// priceSource says where a price is from and of when.
func priceSource(p cloud.Price) string {
	switch {
	case !p.Known():
		return "the price is not known"
	case p.At.IsZero() || strings.HasSuffix(p.Source, p.At.UTC().Format("2006-01-02")):
		return p.Source
	}
	return p.Source + ", " + p.At.UTC().Format("2006-01-02 15:04 UTC")
}

func sum(all []cloud.Cost) (perHour float64) {
	for _, c := range all {
		perHour += c.PerHour
	}
	return perHour
}

// account writes down which node a thing was, how long it lived and what that
// cost.
func (s *sweep) account(r *cloud.Resource, t *trace, entries []cloud.Entry) {
	r.Lived = cloud.Lived(t.made, t.last)
	i := slices.IndexFunc(entries, func(e cloud.Entry) bool { return e.Kind != kindStop && s.made(e, t) })
	if i < 0 {
		return
	}
	e, to := entries[i], s.endOf(t)
	r.Lived = cloud.Lived(orTime(t.made, e.IntentAt), to)
	l, err := launchOf(e)
	if e.Kind != kindInstances || err != nil {
		return
	}
	if slept(entries, e.IntentAt, to) > 0 {
		r.Lived = cloud.Lived(e.IntentAt, to) // AWS tells only when it was started last
	}
	r.Node = nodeName(e, l, t.thing)
	r.Cost = l.cost(r.Lived, slept(entries, e.IntentAt, to))
}

// endOf is when a machine ended. AWS does not always say when one has shut
// itself down: then it is not later than its lease had let it.
func (s *sweep) endOf(t *trace) time.Time {
	to := orTime(t.ended, t.last)
	if t.ended.IsZero() && t.asked.IsZero() && !s.life.Ends.IsZero() && s.life.Ends.Before(to) {
		return s.life.Ends
	}
	return to
}

// cost is what one machine has cost in its life, of which it was stopped for a
// while.
func (l launch) cost(lived, slept time.Duration) float64 {
	return max(0, lived-slept).Hours()*l.perNode() + slept.Hours()*l.perNodeStopped()
}

// slept is for how long a cluster was stopped, between two times.
func slept(entries []cloud.Entry, from, to time.Time) (sum time.Duration) {
	for _, e := range entries {
		if e.Kind != kindStop {
			continue
		}
		start, end := e.IntentAt, to
		if e.ClosedAt != nil && e.ClosedAt.Before(to) {
			end = *e.ClosedAt
		}
		if start.Before(from) {
			start = from
		}
		sum += max(0, end.Sub(start))
	}
	return sum
}

// orTime is the first of two times that is known.
func orTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// nodeName is which node of the cluster an instance is.
func nodeName(e cloud.Entry, l launch, t thing) string {
	n := slices.Index(ids(e), t.id)
	if n < 0 {
		n = t.index
	}
	if n < 0 || n >= len(l.Nodes) {
		return ""
	}
	return fmt.Sprintf("node%d", l.Nodes[n])
}

// ended are the lines of the receipt for what was gone before: of launches that
// made something.
func ended(entries []cloud.Entry) []cloud.Resource {
	var all []cloud.Resource
	for _, e := range entries {
		if e.Open() || e.Kind == kindStop {
			continue
		}
		for n, id := range ids(e) {
			r := cloud.Resource{Kind: kindOf(e), ID: id, State: cloud.Gone, Proof: e.Proof, Lived: cloud.Lived(e.IntentAt, *e.ClosedAt)}
			for part := range strings.SplitSeq(e.Proof, "; ") { // that of an entry names each of its things
				if own, is := strings.CutPrefix(part, id+" "); is {
					r.Proof = own
				}
			}
			if l, err := launchOf(e); err == nil && e.Kind == kindInstances && n < len(l.Nodes) {
				r.Node = fmt.Sprintf("node%d", l.Nodes[n])
				r.Cost = l.cost(r.Lived, slept(entries, e.IntentAt, *e.ClosedAt))
			}
			all = append(all, r)
		}
	}
	return all
}

// total sums a receipt up.
func total(r *cloud.Receipt, began time.Time) {
	for _, res := range r.Resources {
		r.Cost += res.Cost
		r.Lived = max(r.Lived, res.Lived)
	}
	r.Lived = cmp.Or(r.Lived, cloud.Lived(began, time.Now()))
}
