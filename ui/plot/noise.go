package plot

import "slices"

// noiseLooks is at how many places of a curve its noise is looked at.
const noiseLooks = 32

// Noise is how far the points that share a column lie apart, in a typical one of so
// many columns; 0 where a column has fewer than two. It costs the same for a
// thousand points and for a million.
func (s *Series) Noise(columns int) float64 {
	per := s.n / max(columns, 1)
	if per < 2 || !s.some {
		return 0
	}
	heights := make([]float64, 0, noiseLooks)
	for k := range noiseLooks {
		first := (s.n - per) * k / (noiseLooks - 1)
		if n := s.between(first, first+per); n.ymin <= n.ymax {
			heights = append(heights, n.ymax-n.ymin)
		}
	}
	if len(heights) == 0 {
		return 0
	}
	slices.Sort(heights)
	return heights[len(heights)/2]
}

// between is what the points from one index to before another span.
func (s *Series) between(from, to int) node {
	sum := emptyNode
	for i := from; i < to; {
		level, size := -1, 1
		for level+1 < len(s.levels) && i%(size*fan) == 0 && i+size*fan <= to {
			level, size = level+1, size*fan
		}
		if level < 0 {
			sum.add(s.at(i))
		} else {
			sum.merge(s.levels[level][i/size])
		}
		i += size
	}
	return sum
}

// Typical is a typical distance from zero: the median of some of the values that
// are not zero; 0 where there are none.
func (s *Series) Typical() float64 {
	var seen []float64
	step := max(s.n/64, 1)
	for i := s.n - 1; i >= 0; i -= step {
		if y := s.at(i).y; y > 0 {
			seen = append(seen, y)
		} else if y < 0 {
			seen = append(seen, -y)
		}
	}
	if len(seen) == 0 {
		return 0
	}
	slices.Sort(seen)
	return seen[len(seen)/2]
}
