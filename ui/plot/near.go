package plot

import "math"

// Near is the index of the point whose x is nearest, of several the newest; ok
// is false when there are no points. Gaps count as points: a read-out at a gap
// has to say so.
func (s *Series) Near(x float64) (i int, ok bool) {
	if s.n == 0 || math.IsNaN(x) {
		return 0, false
	}
	f := finder{s: s, x: x, best: math.Inf(1), left: budget}
	f.down(len(s.levels)-1, 0)
	return f.at, true
}

// finder looks for the nearest point, newest stretches first, and leaves out
// those that can't hold a nearer one.
type finder struct {
	s       *Series
	x, best float64
	at      int
	left    int
}

func (f *finder) down(level, i int) {
	n := f.s.levels[level][i]
	if away(f.x, n.xmin, n.xmax) >= f.best {
		return
	}
	if f.left--; f.left < 0 {
		return
	}
	if level == 0 {
		for j := min((i+1)*fan, f.s.n) - 1; j >= i*fan; j-- {
			if d := math.Abs(f.s.at(j).x - f.x); d < f.best {
				f.at, f.best = j, d
			}
		}
		return
	}
	for _, j := range f.order(level-1, i) {
		f.down(level-1, j)
	}
}

// order lists the nodes below one, that which x lies in or nearest to first.
func (f *finder) order(level, above int) []int {
	lo, hi := above*fan, min((above+1)*fan, len(f.s.levels[level]))
	out := make([]int, 0, fan)
	for j := hi - 1; j >= lo; j-- {
		at := len(out)
		for at > 0 && f.away(level, out[at-1]) > f.away(level, j) {
			at--
		}
		out = append(out, 0)
		copy(out[at+1:], out[at:])
		out[at] = j
	}
	return out
}

func (f *finder) away(level, i int) float64 {
	n := f.s.levels[level][i]
	return away(f.x, n.xmin, n.xmax)
}

// away is how far x lies outside a range.
func away(x, lo, hi float64) float64 { return max(lo-x, x-hi, 0) }
