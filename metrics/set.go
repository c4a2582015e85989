package metrics

import (
	"math"

	"github.com/dlwb/dlwb/metrics/order"
	"github.com/dlwb/dlwb/metrics/stretch"
)

// Axis says by what a value is placed.
type Axis uint8

// The axes, the better the later.
const (
	AxisNone  Axis = iota // by where the run was when it came
	AxisEpoch             // by the epoch beside it
	AxisInner             // by the step within the epoch, counted through the run
	AxisStep              // by the step beside it
)

// String is how an axis is called: step, epoch or ordinal.
func (a Axis) String() string { return [...]string{"ordinal", "epoch", "step", "step"}[a] }

// stored is a point as it lies in memory: 24 bytes.
type stored struct {
	value float64
	step  int64
	epoch float32
	x     Axis
	has   uint8
}

// Y is its value.
func (p stored) Y() float64 { return p.value }

const (
	hasStep = 1 << iota
	hasEpoch
)

// chunk is how many points lie together, so that growing copies nothing.
const chunk = 512

// Series is a metric's name with its points.
type Series struct {
	Name   string
	chunks [][]stored
	n      int
	added  int // points that came at all

	order  order.Order[stored]
	every  int // of so many points one is kept, when there are too many
	window stretch.Window[stored]
	marks  marks
}

// Every is of about how many points one is kept: 1 unless the set has too many.
func (s *Series) Every() int { return max(s.every, 1) }

// Len is the number of points.
func (s *Series) Len() int { return s.n }

func (s *Series) at(i int) *stored { return &s.chunks[i/chunk][i%chunk] }

// Add takes a point where its order has its place.
func (s *Series) Add(p Point) {
	q := stored{value: p.Value, x: p.X}
	if p.Step != nil {
		q.step, q.has = *p.Step, q.has|hasStep
	}
	if p.Epoch != nil {
		q.epoch, q.has = float32(*p.Epoch), q.has|hasEpoch
	}
	s.added++
	x, by := q.place()
	s.order.Add((*ordered)(s), q, x, uint8(by))
}

// place is by what a point is ordered among those of the same axis.
func (p *stored) place() (float64, Axis) {
	switch {
	case p.x >= AxisInner && p.has&hasStep != 0:
		return float64(p.step), p.x
	case p.x == AxisEpoch && p.has&hasEpoch != 0:
		return float64(p.epoch), p.x
	}
	return 0, AxisNone
}

// ordered is a series as its Order sees it.
type ordered Series

func (s *ordered) Len() int { return s.n }

func (s *ordered) Place(i int) (float64, uint8) {
	x, by := (*Series)(s).at(i).place()
	return x, uint8(by)
}

func (s *ordered) Push(p stored) { (*Series)(s).keep(p) }

func (s *ordered) Cut(n int) {
	s.window = stretch.Window[stored]{}
	(*Series)(s).cut(n)
}

func (s *ordered) Insert(low int, p stored) {
	one := (*Series)(s)
	s.window = stretch.Window[stored]{}
	s.marks.insert(low)
	one.push(*one.at(s.n - 1))
	for i := s.n - 2; i > low; i-- {
		*one.at(i) = *one.at(i - 1)
	}
	*one.at(low) = p
}

// Axis chooses by what a series is best placed: a step beside every value, the
// epoch when there is one value in each, the step, the order.
func (s *Series) Axis() Axis {
	all := Axis(AxisStep)
	both := uint8(hasStep | hasEpoch)
	stepped, epoched := 0, 0
	for i := range s.n {
		all = min(all, s.at(i).x)
		both &= s.at(i).has
		if s.at(i).x >= AxisInner {
			stepped++
		} else if s.at(i).x == AxisEpoch {
			epoched++
		}
	}
	switch {
	case s.stepStays(): // the last step of each epoch
		return AxisEpoch
	case all >= AxisInner:
		return all
	case stepped*100 >= s.n*95: // a summary among them
		return AxisStep
	case (all == AxisEpoch || s.n > 2 && epoched == s.n-1 && s.at(epoched).x == AxisNone) && both&hasEpoch != 0 && !s.crowded(): // the last may sum up
		return AxisEpoch
	case both&hasEpoch != 0 && s.rises(func(p *stored) float64 { return float64(p.epoch) }):
		return AxisEpoch
	case both&hasStep != 0 && s.rises(func(p *stored) float64 { return float64(p.step) }):
		return AxisStep
	}
	return AxisNone
}

// stepStays reports whether each point has the step of the one before, in another epoch: then
// the step does not say where a point is.
func (s *Series) stepStays() bool {
	for i := 1; i < s.n; i++ {
		if a, b := s.at(i-1), s.at(i); a.has&b.has != hasStep|hasEpoch || a.step != b.step || a.epoch == b.epoch {
			return false
		}
	}
	return s.n > 1
}

// crowded reports whether whole epochs have two values each or more: then the order tells more.
func (s *Series) crowded() bool {
	epochs := 0
	for i := range s.n {
		if e := s.at(i).epoch; e != float32(math.Trunc(float64(e))) {
			return false
		} else if i == 0 || e != s.at(i-1).epoch {
			epochs++
		}
	}
	return s.n > 2 && s.n >= 2*epochs
}

// rises reports whether no two neighbours are at the same place, but for the last of several, which may
// sum up.
func (s *Series) rises(x func(*stored) float64) bool {
	for i := 1; i < s.n; i++ {
		a, b := x(s.at(i-1)), x(s.at(i))
		if b <= a && !(a == b && i > 1 && i == s.n-1) {
			return false
		}
	}
	return true
}

// XY are the points by an axis.
func (s *Series) XY(a Axis) [][2]float64 {
	xy := make([][2]float64, s.n)
	for i := range xy {
		xy[i] = s.Point(i, a)
	}
	return xy
}

// Point is one of the points by an axis.
func (s *Series) Point(i int, a Axis) [2]float64 {
	p := s.at(i)
	x := float64(i)
	if s.n < s.added && s.n > 1 { // numbers of points that are kept no longer are skipped evenly
		x = math.Round(x * float64(s.added-1) / float64(s.n-1))
	}
	switch a {
	case AxisEpoch:
		x = shortest(p.epoch)
	case AxisInner, AxisStep:
		if x = float64(p.step); p.has&hasStep == 0 && i > 0 {
			x = float64(s.at(i - 1).step)
		}
	}
	return [2]float64{x, p.value}
}

// shortest is the number that was printed, which float32 rounded.
func shortest(f float32) float64 {
	const places = 1e6
	return math.Round(float64(f)*places) / places
}

// Set is a set of series, in the order in which they came.
type Set struct {
	Series []*Series
	byName map[string]*Series
	added  int
	most   int // points that it holds; 0: mostPoints
}

// mostPoints bounds the points of a set: 48 MB of them.
const mostPoints = 2 << 20

// Add takes points of any series. When they get too many, the longest series
// are thinned; of each the ends, the least and the greatest value stay.
func (s *Set) Add(points ...Point) {
	for _, p := range points {
		s.of(p.Name).Add(p)
	}
	most := s.most
	if most == 0 {
		most = mostPoints
	}
	if s.added += len(points); s.added > most {
		s.added = s.points()
		for s.added > most*3/4 && s.thin(most/mostSeries) {
			s.added = s.points()
		}
	}
}

func (s *Set) points() (n int) {
	for _, one := range s.Series {
		n += one.n
	}
	return n
}

// thin halves the longest series, and those that are nearly as long. Those of
// few points are not thinned for what others have.
func (s *Set) thin(few int) bool {
	longest := 0
	for _, one := range s.Series {
		longest = max(longest, one.n)
	}
	for _, one := range s.Series {
		if one.n > max(longest/2, few) {
			one.thin()
		}
	}
	return longest > few
}

func (s *Set) of(name string) *Series {
	one := s.byName[name]
	if one == nil {
		if s.byName == nil {
			s.byName = map[string]*Series{}
		}
		one = &Series{Name: name}
		s.byName[name] = one
		s.Series = append(s.Series, one)
	}
	return one
}
