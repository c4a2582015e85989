package ranks

import (
	"fmt"
	"math"
	"slices"

	"github.com/dlwb/dlwb/ui/session"
)

// Band is one series as several ranks print it: at each step what lies in the middle,
// and how far they are apart.
type Band struct {
	Median, Low, High *session.Curve

	ranks  []*member
	axis   session.Axis
	done   float64 // the place that was compared last
	scale  float64 // how large its values are; it falls as they do
	turn   int     // of the ranks when it was compared last
	differ bool
}

// member is a rank of a band.
type member struct {
	name  string
	log   int
	curve *session.Curve
	next  int     // its first point that was not compared yet
	cuts  int     // how often it was cut when that was counted
	away  float64 // from the middle, over all places, in parts of the values
	lost  bool    // it had no number where others have one
}

const (
	// apart is from which part of their size on values differ: printed digits are
	// rounded.
	apart = 1e-3
	// straggle is how many points a rank may be behind before its place is compared
	// without it.
	straggle = 20
	// fades is how fast the size of a series' values is forgotten from one place to the
	// next: of values that change their sign, those near zero are no smaller.
	fades = 0.9
)

// Of is a series of which the ranks print different values; nil where they agree,
// or only one prints it.
func (r *Ranks) Of(name string) *Band {
	if r == nil {
		return nil
	}
	b, ok := r.bands[name]
	if !ok {
		b = r.band(name)
		r.bands[name] = b
	}
	if b == nil {
		return nil
	}
	if b.turn != r.turn { // asked for often, and changes only when something was read
		if b.stale() {
			*b = *r.band(name)
		}
		b.grow(r.ended, r.behind)
		b.turn = r.turn
	}
	if !b.differ {
		return nil
	}
	return b
}

// band begins to compare a series; nil where less than two ranks print it.
func (r *Ranks) band(name string) *Band {
	labelled := map[int]bool{} // logs in which ranks that are named print it
	for _, v := range r.order {
		labelled[v.log] = labelled[v.log] || v.label >= 0 && v.curves[name] != nil
	}
	own := map[int]bool{} // ranks whose own log prints it without a label
	for _, v := range r.order {
		if v.label < 0 && v.curves[name] != nil && !labelled[v.log] {
			own[v.log] = true
		}
	}
	b := &Band{Median: session.NewCurve(name), Low: session.NewCurve(name), High: session.NewCurve(name), done: math.Inf(-1)}
	for _, v := range r.order {
		c := v.curves[name]
		if c == nil || v.label < 0 && labelled[v.log] || v.label >= 0 && v.label != v.log && own[v.label] { // a launcher says again what the rank's log says
			continue
		}
		b.ranks = append(b.ranks, &member{name: b.named(v), log: v.log, curve: c, cuts: c.Cuts})
	}
	if len(b.ranks) < 2 {
		return nil
	}
	b.axis = session.AxisOf(b.curves(), session.AxisAuto)
	return b
}

// named is the name of a rank, told apart from that of another log's.
func (b *Band) named(v *voice) string {
	if slices.ContainsFunc(b.ranks, func(m *member) bool { return m.name == v.name }) {
		return fmt.Sprintf("%s of log %d", v.name, v.log)
	}
	return v.name
}

func (b *Band) curves() []*session.Curve {
	var all []*session.Curve
	for _, m := range b.ranks {
		all = append(all, m.curve)
	}
	return all
}

// stale reports whether points that were compared are no longer there, or are
// counted by something else now.
func (b *Band) stale() bool {
	for _, m := range b.ranks {
		if m.curve.Cuts != m.cuts {
			return true
		}
	}
	return session.AxisOf(b.curves(), session.AxisAuto) != b.axis
}

// grow compares the places that are new; ended says that no rank prints any more, and
// behind of which logs the end was not read yet. Where only the order tells which
// values belong together, that of a log whose beginning was not read tells nothing.
func (b *Band) grow(ended bool, behind map[int]reading) {
	if b.axis == session.AxisOrder && slices.ContainsFunc(b.ranks, func(m *member) bool { return behind[m.log].jumped }) {
		return
	}
	for {
		place, most, waits, unread := math.Inf(1), 0, false, false
		for _, m := range b.ranks {
			if m.next < m.curve.N {
				place = min(place, m.curve.X(b.axis, m.next))
				most = max(most, m.curve.N-m.next)
			} else {
				waits, unread = true, unread || behind[m.log].unread
			}
		}
		if math.IsInf(place, 1) || unread || waits && !ended && most < straggle {
			return
		}
		b.compare(place)
	}
}

// compare takes the values that the ranks have at a place.
func (b *Band) compare(place float64) {
	var at *member
	index := 0
	var values []float64
	var here []*member
	for _, m := range b.ranks {
		for m.next < m.curve.N && !(m.curve.X(b.axis, m.next) > place) {
			if x := m.curve.X(b.axis, m.next); x == place && place > b.done {
				if at == nil {
					at, index = m, m.next
				}
				if len(here) == 0 || here[len(here)-1] != m {
					here = append(here, m)
					values = append(values, m.curve.Value(m.next))
				}
			}
			m.next++
		}
	}
	if at == nil {
		return // a straggler's place, which was compared without it
	}
	b.done = max(b.done, place)
	finite := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	slices.Sort(finite)
	lo, mid, hi := math.NaN(), math.NaN(), math.NaN()
	if n := len(finite); n > 0 {
		lo, mid, hi = finite[0], (finite[(n-1)/2]+finite[n/2])/2, finite[n-1]
	}
	b.Low.PutLike(at.curve, index, lo)
	b.Median.PutLike(at.curve, index, mid)
	b.High.PutLike(at.curve, index, hi)
	if size := max(math.Abs(lo), math.Abs(hi)); size == size {
		b.scale = max(size, b.scale*fades)
	}
	b.judge(here, values, mid, b.scale, len(finite))
}

// judge adds up how far each rank is from the middle.
func (b *Band) judge(here []*member, values []float64, mid, size float64, finite int) {
	for i, m := range here {
		switch d := math.Abs(values[i] - mid); {
		case finite == 0:
		case math.IsNaN(d) || math.IsInf(d, 0):
			m.lost, b.differ = true, true
		case d > apart*size/2:
			m.away += d / size
			b.differ = true
		}
	}
}

// Count is how many ranks print the series.
func (b *Band) Count() int { return len(b.ranks) }

// Farthest are the names of the ranks and their curves: the one that is farthest from
// the middle first.
func (b *Band) Farthest() (names []string, curves []*session.Curve) {
	all := slices.Clone(b.ranks)
	slices.SortStableFunc(all, func(x, y *member) int {
		switch {
		case x.lost != y.lost && x.lost, x.lost == y.lost && x.away > y.away:
			return -1
		case x.lost != y.lost, x.away < y.away:
			return 1
		}
		return 0
	})
	for _, m := range all {
		names, curves = append(names, m.name), append(curves, m.curve)
	}
	return names, curves
}

// Lost reports whether a rank had no number where others have one.
func (b *Band) Lost() bool {
	return slices.ContainsFunc(b.ranks, func(m *member) bool { return m.lost })
}
