// Package order keeps the points of a series in order, as they come from a run
// that may be resumed and whose lines may come late.
package order

// Line is points that an Order keeps.
type Line[P any] interface {
	// Len is how many points there are.
	Len() int
	// Place is by what a point is ordered, and which axis that is of; 0 is of
	// points without a place.
	Place(i int) (x float64, by uint8)
	// Cut leaves the first n points.
	Cut(n int)
	// Push puts a point behind the last one.
	Push(p P)
	// Insert puts a point before the one with an index.
	Insert(i int, p P)
}

// Order is the rule by which a series takes points that fall back. A count that
// falls back to its beginning is a new segment, and its points follow. One that
// only falls back is a resumed run when the next point goes on from there: they
// replace what they repeat. A single one that falls back came late: it is put
// where it belongs, and replaces nothing; where there is a point already, it
// says nothing. What is read, shown, listed and exported goes by this one rule.
type Order[P any] struct {
	From  int // where the present segment begins; who drops points moves it
	fell  bool
	late  P       // the point that fell back last, until the next shows why
	lateX float64 // where it is
	moved int     // points that made room for late ones
}

// mostMoved bounds how many points are moved to make room for late ones: behind
// that, what comes late is left out. A run that always tells old news would
// take for ever.
const mostMoved = 1 << 26

// Add takes a point.
func (o *Order[P]) Add(l Line[P], p P, x float64, by uint8) {
	n := l.Len()
	if n == 0 || by == 0 {
		l.Push(p)
		return
	}
	last, of := l.Place(n - 1)
	if of == by && o.fell && x > o.lateX && x <= last { // it goes on from where it fell back to
		l.Cut(o.find(l, o.lateX))
		l.Push(o.late)
		last = o.lateX
	}
	o.fell = false
	switch {
	case of != by || x >= last:
		l.Push(p)
	case x <= o.begins(l):
		l.Cut(n) // nothing: but what follows is not one stretch with what there was
		o.From = n
		l.Push(p)
	default:
		o.fell, o.late, o.lateX = true, p, x
		o.insert(l, p, x)
	}
}

// begins is where the present segment does, or the first where that is later.
func (o *Order[P]) begins(l Line[P]) float64 {
	first, _ := l.Place(0)
	again, _ := l.Place(o.From)
	return max(first, again)
}

// find is the index of the first point of the present segment that is not
// before an x.
func (o *Order[P]) find(l Line[P], x float64) int {
	low, high := o.From, l.Len()
	for low < high {
		middle := (low + high) / 2
		if at, _ := l.Place(middle); at < x {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// insert puts a late point between those around it.
func (o *Order[P]) insert(l Line[P], p P, x float64) {
	low := o.find(l, x)
	if at, _ := l.Place(low); at == x || o.moved > mostMoved {
		return
	}
	o.moved += l.Len() - low
	l.Insert(low, p)
}
