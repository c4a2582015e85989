package metrics

import (
	"slices"
	"time"

	"github.com/dlwb/dlwb/metrics/behind"
)

// late is a line of values whose place may be told behind it.
type late struct {
	found found
	rank  int
	title string
	step  *int64 // where the run was
	epoch *float64
	at    time.Time
	of    *shape // that holds it as well
}

// latePlaces are where the lines were that said where the run is, the last and the one before.
type latePlaces struct {
	unit        unit
	n           float64
	step, stepB *int64
	epoch, epoB *float64
	stops       bool   // no place follows the last: "Early stopping at epoch 28"
	firstStep   *int64 // the first place
	firstEpoch  *float64
}

// isLate takes a line into the order of the stream: it is kept until its place is told, or tells those of
// lines that were kept. It reports whether nothing is left to do with it.
func (r *Reader) isLate(f found, rank int, message string) bool {
	o := &r.order
	switch {
	case o.Settled():
		if len(f.counters) == 0 && len(f.values) > 0 {
			r.tellFirst(f.shape, r.step, r.epoch)
		}
		return false
	case len(f.counters) > 0:
		return r.placesLate(f, rank, message)
	case r.phase.split != "" && o.IsFramed():
		r.tellLate(o.Release())
		return false
	case r.latest.unit == noUnit && r.placed():
		r.tellLate(o.Settle())
		return false
	}
	waits, told := o.Waits(lateLine(late{f.kept(), rank, r.heading.title, r.step, r.epoch, r.at, nil}))
	r.tellLate(told)
	return waits
}

func lateLine(l late) behind.Line[late] {
	of := behind.Validation
	for _, v := range l.found.values {
		switch Split(v.show) {
		case "":
			of = max(of, behind.Unsaid)
		case "train":
			of = behind.Training
		}
	}
	return behind.Line[late]{Shape: l.found.shape, Of: of, What: l}
}

// placesLate takes a line that says where the run is.
func (r *Reader) placesLate(f found, rank int, message string) bool {
	c, p := f.counters[0], &r.latest
	first := p.unit == noUnit
	if first && r.placed() || !first && c.unit == p.unit && c.n < p.n && !r.order.Known() { // a run that goes on from a checkpoint has the same order
		r.tellLate(r.order.Settle())
		return false
	} else if !first && (c.unit != p.unit || c.n == p.n) {
		if c.unit == p.unit && behind.Of(message) == behind.Ends {
			r.tellLate(r.order.Closes())
		}
		return false
	}
	f = f.kept()
	var early []behind.Line[late]
	if first {
		early = r.shapes.early(r)
	}
	doubt := p.n <= 1 && behind.Bare(message) || // "loss 2.3", "Epoch 1", "loss 1.9": before the training, and in its first epoch
		slices.ContainsFunc(f.values, func(v value) bool { return v.kind != measure }) // "epoch 3 done, 120 samples/s" has none
	says := behind.Of(message)
	if r.order.IsFramed() && message[len(message)-1] == ':' { // "Evaluation at epoch 3:" stands in it
		says = behind.Nothing
	}
	told := r.order.Place(says, doubt, early...)
	p.stops = behind.Stops(message)
	p.unit, p.n, p.stepB, p.epoB = c.unit, c.n, r.step, r.epoch
	r.tellLate(behind.Told[late]{Then: told.Then, Now: told.Now})
	r.take(f, rank, false)
	p.step, p.epoch = r.step, r.epoch
	r.tellLate(behind.Told[late]{Now: told.Next})
	return true
}

// early are the lines that came once before anything said where the run is.
func (s shapes) early(r *Reader) (all []behind.Line[late]) {
	for _, one := range s {
		if len(one.held) == 1 && !one.judged {
			l := one.held[0]
			all = append(all, lateLine(late{l.read(r), l.rank, l.title, nil, nil, r.at, one}))
		}
	}
	return all
}

// tellFirst adds what came once before anything said where the run is, when its like has come again at a place: of
// the first place, unless that has values of its own, or of the epoch before where its like is of the first.
func (r *Reader) tellFirst(hash uint64, step *int64, epoch *float64) {
	p, one := &r.latest, r.shapes.of(hash, false)
	if one == nil || one.first == nil || len(one.held) != 1 || one.judged {
		return
	}
	one.judged, one.held = true, nil
	told := func(v value) bool { return r.series[v.show] != nil && r.series[v.show].ordinal > 0 }
	if (p.firstStep != step || p.firstEpoch != epoch) && !slices.ContainsFunc(one.first.found.values, told) {
		first := p.firstEpoch
		if first != nil && epoch != nil && *first == *epoch {
			first = new(*first - 1)
		}
		r.tellAt(*one.first, p.firstStep, first)
	}
}

// tellLate adds the values of lines that wait no longer.
func (r *Reader) tellLate(told behind.Told[late]) {
	for _, l := range told.Then {
		if l.of == nil { // else its shape knows what to do with it
			r.tellFirst(l.found.shape, l.step, l.epoch)
			r.tellAt(l, l.step, l.epoch)
		}
	}
	for _, l := range told.Now {
		if l.of != nil {
			l.of.judged, l.of.held = true, nil
		}
		r.tellAt(l, r.step, r.epoch)
	}
}

// endLate tells what waits when the stream is over: of a place that was told of no more.
func (r *Reader) endLate() {
	told := r.order.End()
	told.Now = slices.DeleteFunc(told.Now, func(l late) bool { return l.of != nil })
	r.tellLate(behind.Told[late]{Then: told.Then, Now: told.Now})
	step, epoch := r.latest.step, r.latest.epoch
	if !r.latest.stops {
		step, epoch = after(r.latest.stepB, step), after(r.latest.epoB, epoch)
	}
	for _, l := range told.Next {
		r.tellAt(l, step, epoch)
	}
}

// after is the place that follows two others.
func after[T int64 | float64](before, last *T) *T {
	if before == nil || last == nil {
		return last
	}
	return new(2**last - *before)
}

// tellAt adds the values of a line where they belong.
func (r *Reader) tellAt(l late, step *int64, epoch *float64) {
	defer func(step *int64, epoch *float64, at time.Time, title string) {
		r.step, r.epoch, r.at, r.heading.title = step, epoch, at, title
	}(r.step, r.epoch, r.at, r.heading.title)
	r.step, r.epoch, r.at, r.heading.title = step, epoch, l.at, l.title
	r.values(l.found, AxisNone, l.rank, false)
}
