package metrics

import (
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/decimal"
	"github.com/dlwb/dlwb/metrics/lexis"
)

// take goes on to where a line says that the run is and adds its values.
func (r *Reader) take(f found, rank int, fromTable bool) {
	if r.bars.pending && r.bars.onlyEnd() && r.bars.epoch.unit == unitEpoch && len(f.counters) == 0 && len(f.values) > 0 {
		r.flushBar() // the epoch above is over: the line is of that, and not of the one before
	}
	first := len(f.counters) > 0 && !r.placed()
	if first && len(r.shapes) > 0 {
		f.counters, f.values = slices.Clone(f.counters), slices.Clone(f.values) // what is read in between uses the same room
		r.shapes.placed(r)
	}
	axis := r.counters.take(f.counters)
	r.counters.begins(f)
	r.place()
	if first {
		r.latest.firstStep, r.latest.firstEpoch = r.step, r.epoch
	}
	r.addHits()
	if fromTable && axis == AxisNone {
		axis = AxisEpoch
	}
	r.counted = r.counted || len(f.counters) > 0
	r.values(f, axis, rank, fromTable)
}

// values adds those of a line where the run is.
func (r *Reader) values(f found, axis Axis, rank int, fromTable bool) {
	inner, epoch := within(f.counters)
	r.beside = inner && axis == AxisStep
	for _, v := range f.values {
		show := v.show
		if s := r.series[show]; v.average && s != nil && s.plain && !fromTable && !strings.Contains(show, "average") { // "Episode 20: reward 5", and "Episode 20: avg reward 7"
			show = r.scanner.names.averaged(show)
		}
		switch {
		case fromTable:
		case v.best != "" && r.isKnown(v.best): // what is best is of that curve
			continue
		case (v.rate || lexis.IsRate(show[strings.IndexByte(show, '/')+1:]) || lexis.IsRate(show)) && axis == AxisEpoch && r.isInner(show): // the speed of an epoch says nothing that its steps did not
			continue
		case axis == AxisEpoch && r.isForBar(f, show):
			continue
		case axis == AxisNone && r.cameTo(show, v.Value): // the total of the last epoch, once more
			continue
		case axis == AxisEpoch && (r.isInner(show) || r.wasOnTheWay(show, v.Value)):
			show = r.scanner.names.ofEpoch(show)
		case axis == AxisStep && epoch && !inner && r.wasInner(show):
			if v.kind < weak {
				continue
			}
			show = r.scanner.names.ofEpoch(show)
		}
		if fromTable && len(f.counters) == 0 && r.counters.hasEpoch && r.again(show) {
			continue
		}
		if base, of := strings.CutPrefix(show, "train/"); of && r.heading.split == "train" && r.hasCurve(base) {
			continue // what the whole run came to
		}
		r.value(show, v, axis, f.shape, rank)
	}
}

// isKnown reports whether a series has values.
func (r *Reader) isKnown(show string) bool {
	s := r.series[show]
	return s != nil && s.ordinal+int64(len(s.held)) > 0
}

// cameTo reports whether the last epoch came to this value, of which the steps have others.
func (r *Reader) cameTo(show string, v float64) bool {
	s := r.series[r.scanner.names.ofEpoch(show)]
	return s != nil && s.ordinal > 0 && sameValue(s.last.Value, v)
}

// hasCurve reports whether a series has points enough for a curve.
func (r *Reader) hasCurve(show string) bool {
	s := r.series[show]
	return s != nil && s.ordinal >= fewestOfCurve
}

// lastWas reports whether a value, as percent with few digits, is what some series came to.
func (r *Reader) lastWas(v float64) bool {
	for _, s := range r.series {
		if last := s.last.Value; s.ordinal+int64(len(s.held)) > 0 && (math.Abs(last-v) < 0.051 || math.Abs(100*last-v) < 0.51) {
			return true
		}
	}
	return r.pass.split != ""
}

// fewestOfCurve are the points that make a curve of a series.
const fewestOfCurve = 2

// within reports whether a line counts steps in an epoch, and epochs.
func within(counters []counter) (inner, epoch bool) {
	for _, c := range counters {
		inner, epoch = inner || c.inEpoch, epoch || c.unit == unitEpoch
	}
	return inner, epoch
}

// wasInner reports whether the lines that brought a series so far counted the
// steps in an epoch beside those of the run, as fairseq's do: one that counts
// only those of the run then tells of the whole epoch.
func (r *Reader) wasInner(show string) bool {
	s := r.series[show]
	return s != nil && s.inner && s.ordinal > 0
}

// isInner reports whether a series has points within epochs: a value that has
// only an epoch is then that of the whole epoch, another series.
func (r *Reader) isInner(show string) bool {
	s := r.series[show]
	return s != nil && s.last.X >= AxisInner && s.ordinal > 0
}

// wasOnTheWay reports whether the bar of a validation showed another value than the one that it came to.
func (r *Reader) wasOnTheWay(show string, v float64) bool {
	s := r.series[show]
	return s != nil && s.bar.ofPass && s.ordinal > 0 && !sameValue(s.last.Value, v) && !decimal.Rounds(s.last.Value, v)
}

// again reports whether a series has a value of this epoch already: what is
// validated once more at the end is no other point.
func (r *Reader) again(show string) bool {
	s := r.series[show]
	return s != nil && s.ordinal+int64(len(s.held)) > 0 && s.last.X == AxisEpoch && samePlace(s.last, r.point(show, 0))
}

func (r *Reader) value(show string, v value, axis Axis, shape uint64, rank int) {
	if show == "" {
		return
	}
	s := r.seriesOf(show)
	if title := r.heading.title; title != "" && s != nil && s.title != title { // below another title stands another thing
		if s.title != "" {
			show = r.scanner.names.owned(title, show)
			s = r.seriesOf(show)
		} else if s.ordinal == 0 && len(s.held) == 0 {
			s.title = title
		}
	}
	if s == nil || s.user {
		return
	}
	s.inner = s.inner || r.beside
	s.plain = s.plain || !v.average
	p := r.point(show, v.Value)
	p.X = axis
	r.add(s, p, v, shape, rank)
}

// point is a value where the run is now.
func (r *Reader) point(name string, value float64) Point {
	return Point{Name: name, Step: r.step, Epoch: r.epoch, Value: value, Time: r.at}
}

// roomOf is for how many lines the room for places is made at once.
const roomOf = 64

// place takes note of where the run is now; nil is what it never said. Points
// keep the pointers: what they point at does not change.
func (r *Reader) place() {
	c := &r.counters
	if c.hasStep && (r.step == nil || *r.step != c.progress.Step) {
		r.step = next(&r.room.steps, c.progress.Step)
	}
	if c.hasEpoch && (r.epoch == nil || *r.epoch != c.progress.Epoch) {
		r.epoch = next(&r.room.epochs, c.progress.Epoch)
	}
}

// next puts a value into room that lies together.
func next[T any](room *[]T, v T) *T {
	if len(*room) == cap(*room) {
		*room = make([]T, 0, roomOf)
	}
	*room = append(*room, v)
	return &(*room)[len(*room)-1]
}

// placedHash is the hash of a line, told apart by the epoch when only that of
// a line before places it.
func (r *Reader) placedHash(line string, counters []counter) uint64 {
	hash := maphash.String(r.seed, line)
	for _, c := range counters {
		if c.unit == unitEpoch || c.global {
			return hash
		}
	}
	if r.above.counts {
		hash += uint64(r.counters.progress.Step)
	}
	return hash + math.Float64bits(r.counters.progress.Epoch)
}
