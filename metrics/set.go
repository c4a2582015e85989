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
	added  int // points that came at all

	from   int // where the present segment begins: a count that began anew begins one
	back   int // behind a point that fell back, until the next shows why; 0: none did
	misses int // points that fell far back

	every  int // of so many points one is kept, when there are too many
	window window
}

// window is the newest stretch of a series that is thinned: of it the least,
// the greatest and the last point are kept, at the end of those that stay.
type window struct {
	count       int // points that it has had
	least, most stored
	last        stored
	where       [2]int // which of its points the least and the greatest are
	kept        int    // points at the end of the series that are the window's
}

// Every is of about how many points one is kept: 1 unless the set has too many.
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

// place is by what points of one axis are ordered; false when the point has no
// place of its own.
func (p *stored) place() (float64, bool) {
	switch {
	case p.x >= AxisInner:
		return float64(p.step), true
	case p.x == AxisEpoch:
		return float64(p.epoch), true
	}
	return 0, false
}

// Add takes a point. A count that falls back to its beginning is a new segment
// and its points follow. One that only falls back is a resumed run when it goes
// on from there: its points replace what they repeat. A single point that falls
// back came late, and is put where it belongs.
func (s *Series) Add(p Point) {
	q := stored{value: p.Value, at: p.Time.UnixNano(), x: p.X}
	if p.Step != nil {
		q.step, q.has = *p.Step, q.has|hasStep
	}
	if p.Epoch != nil {
		q.epoch, q.has = float32(*p.Epoch), q.has|hasEpoch
	}
	s.added++
	if s.order(q) {
		return
	}
	s.keep(q)
}

// order takes a point that falls back behind the last one; false for any other,
// which goes to the end.
func (s *Series) order(q stored) bool {
	x, placed := q.place()
	if s.n == 0 || !placed {
		return false
	}
	last, ok := s.at(s.n - 1).place()
	if !ok || s.at(s.n-1).x != q.x {
		s.back = 0
		return false
	}
	if s.back > 0 {
		before, _ := s.at(s.back - 1).place()
		if x > before && x <= last { // it goes on from where it fell back to
			s.cut(s.back)
			s.back, s.window = 0, window{}
			return false
		}
		s.back = 0
	}
	if x >= last {
		return false
	}
	first, _ := s.at(0).place()
	if again, _ := s.at(s.from).place(); x <= max(first, again) {
		s.from = s.n
		return false
	}
	s.late(q, x)
	return true
}

// farBack is how far back a late point is put where it belongs however many
// there are; of those that are later, so many are.
const (
	farBack  = 4096
	mostLate = 256
)

// late puts a point between those around it, or in the place of one at the
// same x.
func (s *Series) late(q stored, x float64) {
	low, high := s.from, s.n
	for low < high {
		middle := (low + high) / 2
		if at, _ := s.at(middle).place(); at < x {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if s.n-low > farBack {
		if s.misses++; s.misses > mostLate {
			return
		}
	}
	s.window = window{}
	s.back = low + 1
	if at, _ := s.at(low).place(); at == x {
		*s.at(low) = q
		return
	}
	s.push(*s.at(s.n - 1))
	for i := s.n - 2; i > low; i-- {
		*s.at(i) = *s.at(i - 1)
	}
	*s.at(low) = q
}

// keep takes a point to the end: all of them, or those of the newest stretch
// that say most.
func (s *Series) keep(q stored) {
	if s.Every() == 1 {
		s.push(q)
		return
	}
	w := &s.window
	s.cut(s.n - w.kept)
	w.add(q)
	w.kept = 0
	full := w.count >= 2*s.every
	for _, p := range w.points(true) {
		s.push(p)
		w.kept++
	}
	if full { // but its last point stays only until the next comes
		*w = window{kept: w.kept - len(w.points(false))}
	}
}

func (w *window) add(q stored) {
	if w.count == 0 || q.value < w.least.value || notNumber(w.least.value) {
		w.least, w.where[0] = q, w.count
	}
	if w.count == 0 || q.value > w.most.value || notNumber(w.most.value) {
		w.most, w.where[1] = q, w.count
	}
	w.last = q
	w.count++
}

// points are the least and the greatest point in the order in which they came
// and, where the newest counts too, that.
func (w *window) points(newest bool) []stored {
	first, second := w.least, w.most
	if w.where[0] > w.where[1] {
		first, second = second, first
	}
	kept := []stored{first}
	if w.where[0] != w.where[1] {
		kept = append(kept, second)
	}
	if newest && max(w.where[0], w.where[1]) != w.count-1 {
		kept = append(kept, w.last)
	}
	return kept
}

// thin keeps of each four points the least and the greatest, and the ends.
func (s *Series) thin() {
	s.every = 2 * s.Every()
	s.window, s.back = window{}, 0
	kept, from := 0, 0
	for i := 0; i < s.n; i += 4 {
		var w window
		for j := i; j < min(i+4, s.n); j++ {
			w.add(*s.at(j))
		}
		if i <= s.from {
			from = kept
		}
		first, last := *s.at(0), *s.at(s.n - 1)
		points := w.points(false)
		if i == 0 && points[0] != first {
			points = append([]stored{first}, points...)
		}
		if i+4 >= s.n && points[len(points)-1] != last {
			points = append(points, last)
		}
		for _, p := range points[:min(len(points), s.n-kept)] {
			*s.at(kept) = p
			kept++
		}
	}
	s.from = from
	s.cut(kept)
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
}

// mostPoints bounds the points of a set: 64 MB of them.
const mostPoints = 2 << 20

// fewPoints are those of a series that is not thinned for what others have.
const fewPoints = mostPoints / mostSeries

// Add takes points of any series. When they get too many, the longest series
// are thinned; of each the ends, the least and the greatest value stay.
func (s *Set) Add(points ...Point) {
	for _, p := range points {
		s.of(p.Name).Add(p)
	}
	if s.added += len(points); s.added > mostPoints {
		s.added = s.points()
		for s.added > mostPoints*3/4 && s.thin() {
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

// thin halves the longest series, and those that are nearly as long.
func (s *Set) thin() bool {
	longest := 0
	for _, one := range s.Series {
		longest = max(longest, one.n)
	}
	for _, one := range s.Series {
		if one.n > max(longest/2, fewPoints) {
			one.thin()
		}
	}
	return longest > fewPoints
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
