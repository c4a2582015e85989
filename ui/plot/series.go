// Package plot draws charts, sparklines and bars with characters.
//
// A chart of a million points costs what its width costs: a Series keeps a
// pyramid of smallest and largest values, and drawing reads the coarsest level
// that fills a column. Nothing is averaged away, so a spike never vanishes.
// No colour is decided here; styles come from the caller.
package plot

import "math"

const (
	// fan is how many nodes of the pyramid one node above covers. 8 costs 6
	// bytes a point beside the 16 of the point itself.
	fan = 8
	// chunk is how many points lie in one piece of memory: a growing series
	// never copies what it holds.
	chunk = 4096
	// budget bounds one walk through a series whose x goes to and fro, where
	// the pyramid can't help.
	budget = 100_000
)

type point struct{ x, y float64 }

// node is what a stretch of points spans. ypos is the smallest y above zero,
// for logarithmic axes; bad is how many of them are not finite. Without finite
// points ymin > ymax.
type node struct {
	xmin, xmax, ymin, ymax, ypos float64
	bad                          int
}

var emptyNode = node{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1), math.Inf(1), 0}

func (n *node) add(p point) {
	n.xmin, n.xmax = min(n.xmin, p.x), max(n.xmax, p.x)
	if p.y != p.y {
		n.bad++
		return
	}
	n.ymin, n.ymax = min(n.ymin, p.y), max(n.ymax, p.y)
	if p.y > 0 {
		n.ypos = min(n.ypos, p.y)
	}
}

func (n *node) merge(o node) {
	n.xmin, n.xmax = min(n.xmin, o.xmin), max(n.xmax, o.xmax)
	n.ymin, n.ymax = min(n.ymin, o.ymin), max(n.ymax, o.ymax)
	n.ypos = min(n.ypos, o.ypos)
	n.bad += o.bad
}

// Series is the points of one curve in the order they were added. The zero
// Series is empty and ready. x should grow; a run that went back to a
// checkpoint may step back, and the curve then does the same.
type Series struct {
	chunks [][]point
	levels [][]node // levels[k] has one node for each fan^(k+1) points
	n      int
	gaps   int
	all    node
	last   point
	some   bool
}

// Add appends one point. A value that is not finite makes a gap in the curve
// and is counted.
func (s *Series) Add(x, y float64) {
	if !finite(x) {
		s.gaps++
		return
	}
	if !finite(y) {
		s.gaps++
		y = math.NaN()
	}
	p := point{x, y}
	if s.n == 0 {
		s.all = emptyNode
	}
	if s.n%chunk == 0 {
		size := chunk
		if s.n == 0 {
			size = 16 // most series are short
		}
		s.chunks = append(s.chunks, make([]point, 0, size))
	}
	c := len(s.chunks) - 1
	s.chunks[c] = append(s.chunks[c], p)
	s.index(p)
	s.all.add(p)
	if y == y {
		s.last, s.some = p, true
	}
}

// index enters p, the newest point, into every level of the pyramid.
func (s *Series) index(p point) {
	if len(s.levels) == 0 {
		s.levels = append(s.levels, nil)
	}
	at := s.n
	s.n++
	for k := range s.levels {
		if at /= fan; at == len(s.levels[k]) {
			s.levels[k] = append(roomy(s.levels[k]), emptyNode)
		}
		s.levels[k][at].add(p)
	}
	if top := s.levels[len(s.levels)-1]; len(top) > 1 {
		above := emptyNode
		for _, n := range top {
			above.merge(n)
		}
		s.levels = append(s.levels, []node{above})
	}
}

// roomy makes room for one more node, and for not many besides: append alone
// would leave up to a quarter of a long level empty.
func roomy(level []node) []node {
	if len(level) < cap(level) {
		return level
	}
	more := make([]node, len(level), len(level)+len(level)/16+fan)
	copy(more, level)
	return more
}

// Len is the number of points, gaps included where their x was finite.
func (s *Series) Len() int { return s.n }

// Gaps is how many values were not finite (NaN or infinite).
func (s *Series) Gaps() int { return s.gaps }

// Last is the newest finite point; ok is false when there is none.
func (s *Series) Last() (x, y float64, ok bool) { return s.last.x, s.last.y, s.some }

// Range is the smallest and largest finite value; ok is false when there is
// none.
func (s *Series) Range() (lo, hi float64, ok bool) { return s.all.ymin, s.all.ymax, s.some }

// Span is the smallest and largest x; ok is false when there is none.
func (s *Series) Span() (lo, hi float64, ok bool) { return s.all.xmin, s.all.xmax, s.n > 0 }

// At is one of the points, counted from 0 in the order they were added; y is
// NaN for a gap.
func (s *Series) At(i int) (x, y float64) {
	p := s.at(i)
	return p.x, p.y
}

func (s *Series) at(i int) point { return s.chunks[i/chunk][i%chunk] }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// walker visits a series from left to right, each stretch at the coarsest
// level at which whole answers true. Stretches come in order and leave out
// nothing; first is the index of the stretch's first point.
type walker struct {
	s     *Series
	whole func(n node) bool
	visit func(n node, first int)
	left  int
}

func (s *Series) walk(whole func(node) bool, visit func(node, int)) {
	if s.n == 0 {
		return
	}
	w := walker{s, whole, visit, budget}
	w.down(len(s.levels)-1, 0)
}

func (w *walker) down(level, i int) {
	n := w.s.levels[level][i]
	first := i
	for range level + 1 {
		first *= fan
	}
	w.left--
	if w.left < 0 || w.whole(n) {
		w.visit(n, first)
		return
	}
	if level == 0 {
		for j := first; j < min(first+fan, w.s.n); j++ {
			leaf := emptyNode
			leaf.add(w.s.at(j))
			w.visit(leaf, j)
		}
		return
	}
	for j := i * fan; j < min((i+1)*fan, len(w.s.levels[level-1])); j++ {
		w.down(level-1, j)
	}
}

// within is what the points with x between lo and hi span.
func (s *Series) within(lo, hi float64) node {
	sum := emptyNode
	s.walk(func(n node) bool {
		return n.xmax < lo || n.xmin > hi || n.xmin >= lo && n.xmax <= hi
	}, func(n node, _ int) {
		if n.xmax >= lo && n.xmin <= hi {
			sum.merge(n)
		}
	})
	return sum
}
