package metrics

import (
	"math"
	"sort"
	"strings"

	"github.com/dlwb/dlwb/metrics/decimal"
	"github.com/dlwb/dlwb/metrics/label"
	"github.com/dlwb/dlwb/metrics/lexis"
)

// Bounds of the points that a series holds back.
const (
	mostWaiting = 4
	mostRecent  = 24 // values among which the one is that a summary tells again
	barFrames   = 6  // frames of a bar by which it is judged how often a value is new
)

// series is what is remembered of one series while reading.
type series struct {
	name    string
	ordinal int64
	user    bool // comes from the user's expression alone
	sure    bool // it is a metric, not a number that looks like one
	named   bool // its name, its column or its key said so
	came    int  // how often, until it was sure
	waits   bool // for a lower rank, which would count instead
	rank    int  // whose values count
	held    []Point
	shape   uint64 // of the line of the held points
	other   uint64 // of the lines between them, where they alternate
	last    Point
	recent  []float64 // values that were shown last, of series that only epochs place
	bar     barred
	plain   bool      // not all of its values were called averages
	title   string    // above its first value
	inner   bool      // its lines count steps in an epoch beside those of the run
	beside  besideBar // of which epoch it is beside a bar that counts epochs
	drawn   bool      // it is a rate that the bar of each epoch shows
	colour  label.Colour
}

// seriesOf finds or begins a series; nil when there are too many.
func (r *Reader) seriesOf(name string) *series {
	s := r.series[name]
	if s == nil && len(r.series) < mostSeries {
		s = &series{name: name, rank: unlabelled}
		r.series[name] = s
	}
	return s
}

// ordered are the series that hold points back, by name, so that the same
// bytes give the same points in the same order.
func (r *Reader) ordered() []*series {
	var all []*series
	for _, s := range r.series {
		if len(s.held) > 0 {
			all = append(all, s)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	return all
}

// add takes a value into its series. The first point of a name that says
// nothing is held back until a line of the same shape brings it again: settings
// and summaries are printed once.
func (r *Reader) add(s *series, p Point, v value, shape uint64, rank int) {
	if !r.counts(s, rank) || r.another(s) {
		return
	}
	if s.repeats(p, shape) || s.stale(p, shape) {
		if rank == unlabelled && s.colour != 0 && r.sources.Colour != 0 && s.colour != r.sources.Colour && !sameValue(p.Value, s.last.Value) {
			r.hosts.mine, r.hosts.others = s.colour, r.sources.Colour
		}
		return
	}
	s.colour = r.sources.Colour
	if !s.sure {
		s.came++
	}
	switch {
	case s.sure:
	case v.best != "" || v.recurs: // it is told once when all is over, or at each place
		s.sure = len(s.held) > 0 && !samePlace(s.last, p)
		s.named = s.sure
	case v.sure || !v.doubt && r.hasTwin(s.name):
		s.sure, s.named = true, v.sure
	case len(s.held) > 0 && (s.shape == shape || s.other == shape):
		s.sure = s.proves(p, v) && !(v.bare && r.knowsNames())
	default:
		if v.doubt || !s.goesOn(p) {
			r.drop(s)
		}
	}
	if shape != s.shape {
		s.other = s.shape
	}
	s.last, s.shape = p, shape
	if !s.sure || s.waits && len(s.held) < mostWaiting {
		r.hold(s, p)
		return
	}
	s.waits = false
	r.release(s)
	r.emit(s, p)
}

// knowsNames reports whether any series has a name that was proven: a number without one is of something else then.
func (r *Reader) knowsNames() bool {
	for _, s := range r.series {
		if s.sure {
			return true
		}
	}
	return false
}

// hasTwin reports whether the name of a series of some data is that of a metric of other data.
func (r *Reader) hasTwin(name string) bool {
	split := Split(name)
	if split == "" {
		return false
	}
	for _, of := range [...]string{"", "train/", "val/", "eval/", "test/"} {
		if s := r.series[of+strings.TrimPrefix(name, split+"/")]; s != nil && s.sure && s.name != name {
			return true
		}
	}
	return false
}

// goesOn reports whether a point stands behind those that are held, by the same axis:
// then a line of another shape, with one name more, tells of the same.
func (s *series) goesOn(p Point) bool {
	if len(s.held) == 0 {
		return false
	}
	x, by := p.Place()
	last, was := s.held[len(s.held)-1].Place()
	return by == was && by > AxisEpoch && x > last
}

// hosts are the colours of the host that counts and of the other, where two are told apart by that alone.
type hosts struct{ mine, others label.Colour }

// another reports whether the present line is by its colour alone another host's
// than that whose values are shown: SageMaker's notebooks tell hosts apart so. That
// there are two shows when one place has two values in two colours.
func (r *Reader) another(s *series) bool {
	here, mine, others := r.sources.Colour, r.hosts.mine, r.hosts.others
	return others != 0 && (s.colour == mine && here == others || s.colour == others && here == mine)
}

// needs is how many points of one shape prove a name that says nothing: more
// where only a blank stands between the two.
const (
	needs      = 2
	needsBlank = 3
	needsBare  = 5
	mostUnsure = 64 // points of a name that proves nothing are held
)

// proves reports whether the points that are held and one more move as the
// values of a metric do: not as a count, which goes up by the same each time,
// and not as a setting, which does not move.
func (s *series) proves(p Point, v value) bool {
	if n := len(s.held) + 1; n < needs || v.doubt && n < needsBlank || v.bare && n < needsBare {
		return false
	}
	still, counts, falls := true, true, false
	last := p.Value
	stride := p.Value - s.held[len(s.held)-1].Value
	for i := len(s.held) - 1; i >= 0; i-- {
		h := s.held[i].Value
		still, falls = still && sameValue(h, last), falls || last < h
		counts = counts && h == math.Trunc(h) && last-h == stride && stride > 0
		last = h
	}
	if v.kind == unknown && !falls && lexis.IsTimestamp(p.Value) && lexis.IsTimestamp(s.held[0].Value) { // no clock goes back
		return false
	}
	return !still && !(counts && p.Value == math.Trunc(p.Value) && !v.Real)
}

// counts reports whether what a rank prints counts: the lowest does, never a
// mixture. A rank that is not the lowest waits for one that is.
func (r *Reader) counts(s *series, rank int) bool {
	switch {
	case rank == unlabelled || rank == s.rank:
		return true
	case s.rank == unlabelled:
		s.rank, s.waits = rank, rank != 0 && rank != namedRank && s.ordinal == 0
		return true
	case rank > s.rank:
		return false
	}
	s.rank, s.waits = rank, false
	r.drop(s)
	return true
}

// repeats reports whether a point says again what the last one said: another
// rank at the same step, or the same value once more without a place of its own.
func (s *series) repeats(p Point, shape uint64) bool {
	if s.ordinal == 0 && len(s.held) == 0 || !samePlace(s.last, p) {
		return false
	}
	switch {
	case p.X == AxisNone && s.last.X == AxisEpoch && shape != s.shape && (sameValue(p.Value, s.last.Value) || s.summed(p.Value)):
		return true // "Validation epoch 2: loss 0.6", and behind it "val_loss: 0.6"
	case p.X == AxisStep || p.X == AxisInner:
		return s.last.X == p.X
	case p.X == AxisEpoch && s.last.X == AxisEpoch:
		if shape == s.shape { // an epoch is often rounded: lines that differ in something else are not the same
			return false
		}
		return sameValue(p.Value, s.last.Value) || p.Epoch != nil && *p.Epoch != math.Trunc(*p.Epoch)
	}
	return s.last.X >= AxisInner && p.Value == s.last.Value || shape != s.shape && (p.X == AxisEpoch && sameValue(p.Value, s.last.Value) || decimal.RoundsTo(p.Value, s.last.Value)) || decimal.IsPercentOf(p.Value, s.last.Value)
}

// stale reports whether a line of the training tells a value of the validation again, of which another line told: "step
// 20: val loss 0.4512", and then "step 21 | loss 0.5 | val: 0.4512".
func (s *series) stale(p Point, shape uint64) bool {
	return s.named && shape != s.shape && p.Value == s.last.Value && ofPass(s.name) && !decimal.Coarse(p.Value)
}

func samePlace(a, b Point) bool {
	if (a.Step == nil) != (b.Step == nil) || (a.Epoch == nil) != (b.Epoch == nil) {
		return false
	}
	return (a.Step == nil || *a.Step == *b.Step) && (a.Epoch == nil || *a.Epoch == *b.Epoch)
}

func sameValue(a, b float64) bool { return a == b || a != a && b != b }

// summed reports whether a value without a place is one of those that were shown, as
// the best of a trial is that is told when it is over: the same digits or fewer.
func (s *series) summed(v float64) bool {
	for _, old := range s.recent {
		if sameValue(v, old) && !decimal.Coarse(v) || decimal.RoundsTo(v, old) {
			return true
		}
	}
	return false
}

// release lets go of the points that were held back.
func (r *Reader) release(s *series) {
	if len(s.held) == 0 {
		return
	}
	for _, p := range s.held {
		r.emit(s, p)
	}
	r.drop(s)
}

// drop forgets the points that were held back.
func (r *Reader) drop(s *series) {
	if len(s.held) > 0 {
		s.held = nil
		r.held--
	}
}

func (r *Reader) emit(s *series, p Point) {
	p.Ordinal = s.ordinal
	s.ordinal++
	if p.X == AxisEpoch {
		s.recent = append(s.recent[max(0, len(s.recent)-mostRecent+1):], p.Value)
	}
	r.out = append(r.out, p)
}

func (r *Reader) hold(s *series, p Point) {
	if len(s.held) == 0 {
		r.forget()
		r.held++
	}
	if len(s.held) >= mostUnsure { // what proves nothing for so long is of the newest, when it does
		s.held = s.held[:copy(s.held, s.held[mostUnsure/2:])]
	}
	s.held = append(s.held, p)
	r.series[s.name] = s
}

// forget drops the names that have not proved themselves when they get too
// many; they may begin anew.
func (r *Reader) forget() {
	if r.held < mostHeld {
		return
	}
	for name, s := range r.series {
		if !s.sure {
			delete(r.series, name)
		}
	}
	r.held = 0
}
