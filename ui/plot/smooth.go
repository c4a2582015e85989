package plot

import "math"

// Smoothed is a series and its exponential moving average, which grows with
// it. The average is debiased as in TensorBoard: it begins at the first value
// instead of at zero. A gap stays a gap, and what comes behind it goes on from
// before it.
type Smoothed struct {
	from   *Series
	factor float64
	out    Series
	taken  int // points of from that are in out
	last   float64
	debias float64 // factor to the power of the values so far
}

// NewSmoothed begins an average; factor is the weight of what was before, from
// 0 (the values themselves) to below 1.
func NewSmoothed(from *Series, factor float64) *Smoothed {
	return &Smoothed{from: from, factor: min(max(factor, 0), 0.9999), debias: 1}
}

// Of reports whether it is the average of a series with a factor.
func (s *Smoothed) Of(from *Series, factor float64) bool {
	return s != nil && s.from == from && s.factor == min(max(factor, 0), 0.9999)
}

// Series is the average up to the newest point.
func (s *Smoothed) Series() *Series {
	for ; s.taken < s.from.Len(); s.taken++ {
		x, y := s.from.At(s.taken)
		if math.IsNaN(y) {
			s.out.Add(x, y)
			continue
		}
		s.last = s.last*s.factor + (1-s.factor)*y
		s.debias *= s.factor
		s.out.Add(x, s.last/(1-s.debias))
	}
	return &s.out
}
