package metrics

import "math"

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

// stored is a point as it lies in memory: 32 bytes.
type stored struct {
	value float64
	step  int64
	at    int64 // nanoseconds since 1970
	epoch float32
	x     Axis
	has   uint8
}

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
	every  int // of so many points one is kept, when there are too many
	passed int // points that came since the last that was kept
}

// Every is of how many points one is kept: 1 unless the set has too many.
func (s *Series) Every() int { return max(s.every, 1) }

// Len is the number of points.
func (s *Series) Len() int { return s.n }

func (s *Series) at(i int) *stored { return &s.chunks[i/chunk][i%chunk] }

func (s *Series) push(p stored) {
	if s.n == len(s.chunks)*chunk {
		s.chunks = append(s.chunks, nil)
	}
	last := &s.chunks[len(s.chunks)-1]
	if len(s.chunks) > 1 && *last == nil {
		*last = make([]stored, 0, chunk)
	}
	*last = append(*last, p)
	s.n++
}

func (s *Series) cut(n int) {
	s.n = n
	full := (n + chunk - 1) / chunk
	s.chunks = s.chunks[:full]
	if full > 0 {
		s.chunks[full-1] = s.chunks[full-1][:n-(full-1)*chunk]
	}
}

// Add takes a point. A count that falls back to its beginning is a new segment
// and its points follow; one that only falls back is a resumed run, whose points
// come again and replace those there were.
func (s *Series) Add(p Point) {
	q := stored{value: p.Value, at: p.Time.UnixNano(), x: p.X}
	if p.Step != nil {
		q.step, q.has = *p.Step, q.has|hasStep
	}
	if p.Epoch != nil {
		q.epoch, q.has = float32(*p.Epoch), q.has|hasEpoch
	}
	if s.n > 0 && q.x >= AxisInner {
		if last := s.at(s.n - 1); last.x == q.x && q.step < last.step && q.step > s.at(0).step {
			n := s.n
			for n > 0 && s.at(n-1).step >= q.step {
				n--
			}
			s.cut(n)
		}
	}
	if s.passed++; s.passed >= s.Every() {
		s.passed = 0
		s.push(q)
	}
}

// thin keeps every other point.
func (s *Series) thin() {
	kept := 0
	for i := 0; i < s.n; i += 2 {
		*s.at(kept) = *s.at(i)
		kept++
	}
	s.cut(kept)
	s.every = 2 * s.Every()
}

// Axis chooses by what a series is best placed: a step beside every value, the
// epoch when there is one value in each, the step, the order.
func (s *Series) Axis() Axis {
	all := Axis(AxisStep)
	both := uint8(hasStep | hasEpoch)
	stepped := 0
	for i := range s.n {
		all = min(all, s.at(i).x)
		both &= s.at(i).has
		if s.at(i).x >= AxisInner {
			stepped++
		}
	}
	switch {
	case all >= AxisInner:
		return all
	case stepped*100 >= s.n*95: // a summary among them
		return AxisStep
	case all == AxisEpoch && both&hasEpoch != 0:
		return AxisEpoch
	case both&hasEpoch != 0 && s.rises(func(p *stored) float64 { return float64(p.epoch) }):
		return AxisEpoch
	case both&hasStep != 0 && s.rises(func(p *stored) float64 { return float64(p.step) }):
		return AxisStep
	}
	return AxisNone
}

// rises reports whether no two neighbours are at the same place.
func (s *Series) rises(x func(*stored) float64) bool {
	for i := 1; i < s.n; i++ {
		if x(s.at(i)) <= x(s.at(i-1)) {
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
	x := float64(i * s.Every())
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
}

// mostPoints bounds the points of a set: 64 MB of them.
const mostPoints = 2 << 20

// Add takes points of any series. When they get too many, every series keeps
// every other of its points.
func (s *Set) Add(points ...Point) {
	for _, p := range points {
		s.of(p.Name).Add(p)
	}
	if s.added += len(points); s.added > mostPoints {
		s.added = 0
		for _, one := range s.Series {
			s.added += one.n
		}
		if s.added > mostPoints {
			for _, one := range s.Series {
				one.thin()
			}
			s.added /= 2
		}
	}
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
