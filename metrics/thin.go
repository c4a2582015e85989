package metrics

import (
	"math"

	"github.com/dlwb/dlwb/metrics/stretch"
)

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
	s.marks.cut(n)
	full := (n + chunk - 1) / chunk
	s.chunks = s.chunks[:full]
	if full > 0 {
		s.chunks[full-1] = s.chunks[full-1][:n-(full-1)*chunk]
	}
}

// keep takes a point to the end: all of them, or those of the newest stretch
// that say most.
func (s *Series) keep(q stored) {
	if s.Every() == 1 {
		s.push(q)
		return
	}
	w := &s.window
	begins := s.n == s.order.From // a segment; where one does is needed to tell what falls back in it
	record := begins || s.marks.record(s, q.value) && len(s.marks.lows)+len(s.marks.highs) < mostMarks
	s.cut(s.n - w.Stays)
	w.Add(q, record)
	for _, p := range w.Kept {
		s.marks.note(s, p.P.value)
		s.push(p.P)
	}
	w.Stays = len(w.Kept)
	if w.Count >= 2*s.every { // but its last point stays only until the next comes
		w.Prune(false)
		*w = stretch.Window[stored]{Stays: w.Stays - len(w.Kept), Kept: w.Kept[:0]}
	}
}

// marks are the points of a series that is thinned which are less, or greater,
// than all before them. They stay: what a resume leaves of the series then has
// its least and its greatest value, wherever it cuts.
type marks struct{ lows, highs []int }

// mostMarks bounds the marks of a series. Of one that only falls all points are
// such; of more, some are kept.
const mostMarks = 4096

// record reports whether a value is less, or greater, than all before it.
func (m *marks) record(s *Series, v float64) bool {
	low, high := m.beats(s, v)
	return low || high
}

func (m *marks) beats(s *Series, v float64) (low, high bool) {
	if notNumber(v) {
		return false, false
	}
	if len(m.lows) == 0 || len(m.highs) == 0 {
		return true, true
	}
	return v < s.at(m.lows[len(m.lows)-1]).value, v > s.at(m.highs[len(m.highs)-1]).value
}

// note marks the value of a point that is about to be put at the end.
func (m *marks) note(s *Series, v float64) {
	low, high := m.beats(s, v)
	if low {
		m.lows = append(m.lows, s.n)
	}
	if high {
		m.highs = append(m.highs, s.n)
	}
}

// cut leaves the marks of the first n points.
func (m *marks) cut(n int) {
	for len(m.lows) > 0 && m.lows[len(m.lows)-1] >= n {
		m.lows = m.lows[:len(m.lows)-1]
	}
	for len(m.highs) > 0 && m.highs[len(m.highs)-1] >= n {
		m.highs = m.highs[:len(m.highs)-1]
	}
}

// insert moves the marks behind a point that is put between others.
func (m *marks) insert(at int) {
	for _, all := range [][]int{m.lows, m.highs} {
		for i := len(all) - 1; i >= 0 && all[i] >= at; i-- {
			all[i]++
		}
	}
}

// thin keeps of each four points those that say most, and the ends.
func (s *Series) thin() {
	all := s.records()
	stride := max(1, (all+min(mostMarks/2, s.n/8))/max(1, min(mostMarks/2, s.n/8)))
	s.every, s.window, s.marks = 2*s.Every(), stretch.Window[stored]{}, marks{}
	kept, from, records, low, high := 0, 0, 0, math.Inf(1), math.Inf(-1)
	for i, end := 0, 0; i < s.n; i = end {
		if end = min(i+4, s.n); i < s.order.From {
			end = min(end, s.order.From) // two segments are not one stretch
		} else if i == s.order.From {
			from = kept
		}
		var w stretch.Window[stored]
		for j := i; j < end; j++ {
			q := *s.at(j)
			record := !notNumber(q.value) && (q.value < low || q.value > high)
			if record {
				low, high = min(low, q.value), max(high, q.value)
				records++
			}
			w.Add(q, j == 0 || j == s.order.From || record && records%stride == 0)
		}
		w.Prune(end == s.n)
		for _, p := range w.Kept {
			*s.at(kept) = p.P
			kept++
		}
	}
	s.order.From = from
	s.cut(kept)
	s.mark()
}

// records is how many points of a series are less, or greater, than all before.
func (s *Series) records() (n int) {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range s.n {
		if v := s.at(i).value; !notNumber(v) && (v < low || v > high) {
			low, high = min(low, v), max(high, v)
			n++
		}
	}
	return n
}

// mark finds the marks of a series anew.
func (s *Series) mark() {
	n := s.n
	for s.n = 0; s.n < n; s.n++ {
		s.marks.note(s, s.at(s.n).value)
	}
}
