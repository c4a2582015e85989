package plot

// Cut leaves the first n points: what a run repeats replaces what came behind
// the place that it was resumed from.
func (s *Series) Cut(n int) {
	if n >= s.n {
		return
	}
	if n <= 0 {
		*s = Series{gaps: s.gaps - s.all.bad}
		return
	}
	bad := s.all.bad
	full := (n + chunk - 1) / chunk
	s.chunks, s.n = s.chunks[:full], n
	s.chunks[full-1] = s.chunks[full-1][:n-(full-1)*chunk]
	below := n
	for k := range s.levels {
		nodes := (below + fan - 1) / fan
		s.levels[k] = s.levels[k][:nodes]
		s.levels[k][nodes-1] = s.stretch(k, nodes-1, below)
		below = nodes
	}
	s.all = s.levels[len(s.levels)-1][0]
	s.gaps -= bad - s.all.bad
	s.last, s.some = point{}, false
	if i, ok := s.find(len(s.levels)-1, 0, func(n node) bool { return n.ymin <= n.ymax }, true); ok {
		s.last, s.some = s.at(i), true
	}
}

// stretch is what a node of a level spans, of which the level below has so many.
func (s *Series) stretch(level, i, below int) node {
	sum := emptyNode
	for j := i * fan; j < min((i+1)*fan, below); j++ {
		if level == 0 {
			sum.add(s.at(j))
		} else {
			sum.merge(s.levels[level-1][j])
		}
	}
	return sum
}

// find is the index of the first point of a node, or the last, that has what all
// nodes above it have.
func (s *Series) find(level, i int, has func(node) bool, newest bool) (at int, ok bool) {
	if !has(s.levels[level][i]) {
		return 0, false
	}
	below := s.n
	if level > 0 {
		below = len(s.levels[level-1])
	}
	from, to := i*fan, min((i+1)*fan, below)
	for k := range to - from {
		j := from + k
		if newest {
			j = to - 1 - k
		}
		if level > 0 {
			if at, ok := s.find(level-1, j, has, newest); ok {
				return at, true
			}
			continue
		}
		leaf := emptyNode
		if leaf.add(s.at(j)); has(leaf) {
			return j, true
		}
	}
	return 0, false
}

// Extremes are the indexes of the first point with the smallest and the first
// with the largest value; ok is false where none is finite.
func (s *Series) Extremes() (least, most int, ok bool) {
	if !s.some {
		return -1, -1, false
	}
	top := len(s.levels) - 1
	least, _ = s.find(top, 0, func(n node) bool { return n.ymin == s.all.ymin }, false)
	most, _ = s.find(top, 0, func(n node) bool { return n.ymax == s.all.ymax }, false)
	return least, most, true
}
