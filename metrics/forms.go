package metrics

import (
	"unsafe"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/screen"
	"github.com/dlwb/dlwb/metrics/skeleton"
)

// forms remember by the skeleton of a line, which is the line without its
// digits, where its numbers stand and what they mean: the second line of a kind
// costs a fraction of the first.
type forms struct {
	byHash [1 << 9]*form
	line   skeleton.Skeleton
	spare  found // reused
}

type form struct {
	hash     uint64
	from     int  // how far the message is behind the labels of its source
	cut      int  // what stands behind it
	bare     bool // nothing says who printed it
	scored   bool // a name of a metric and a number alone: so may the next line be
	found    found
	counters []skeleton.Spot
	totals   []skeleton.Spot
	values   []skeleton.Spot
	means    []skeleton.Spot
}

// learn remembers what was found in a line. rest is the line without the labels
// of its source, and its message begins at from; bare says that there are none, and scored that
// the line is a name of a metric and a number alone.
func (r *forms) learn(hash uint64, line, rest string, from int, bare, scored bool, f found) {
	offset := int(uintptr(unsafe.Pointer(unsafe.StringData(rest))) - uintptr(unsafe.Pointer(unsafe.StringData(line))))
	if len(f.values) == 0 || f.pass.total > 0 || f.sentence || r.line.N > skeleton.Most || len(line) >= screen.MaxLine || offset < 0 || offset+len(rest) > len(line) {
		return
	}
	m := &form{hash: hash, from: from, cut: len(line) - offset - len(rest), bare: rest == line && bare, scored: scored, found: found{shape: f.shape, split: f.split}}
	m.found.counters = append(m.found.counters, f.counters...)
	m.found.values = append(m.found.values, f.values...)
	ok := true
	add := func(to *[]skeleton.Spot, at int, constant bool) {
		s, found := skeleton.Nowhere, true
		if !constant {
			s, found = r.line.SpotOf(at + offset)
		}
		ok = ok && found
		*to = append(*to, s)
	}
	for _, c := range f.counters {
		ok = ok && c.times == 0
		add(&m.counters, c.at, false)
		add(&m.totals, c.totalAt, c.total == 0)
	}
	for _, v := range f.values {
		ok = ok && v.Start >= 0 && !skeleton.LongDigits(v.show)
		add(&m.values, v.Start, notNumber(v.Value))
		add(&m.means, v.meanAt, !v.hasMean || notNumber(v.mean))
	}
	if ok {
		r.byHash[hash%uint64(len(r.byHash))] = m
	}
}

func notNumber(v float64) bool { return v-v != 0 }

// number reads the number at a spot of a line.
func (r *forms) number(line string, s skeleton.Spot) (figure, bool) {
	return lexis.Number(line, r.line.At(s))
}

// cook reads a line by its form; false when its numbers do not fit.
func (r *forms) cook(m *form, line string) (found, bool) {
	f := &r.spare
	f.shape, f.split = m.found.shape, m.found.split
	f.counters = append(f.counters[:0], m.found.counters...)
	f.values = append(f.values[:0], m.found.values...)
	for i := range f.counters {
		c := &f.counters[i]
		n, ok := r.number(line, m.counters[i])
		if !ok || n.Value != float64(int64(n.Value)) && c.unit != unitEpoch {
			return *f, false
		}
		c.n = n.Value
		if m.totals[i] != skeleton.Nowhere {
			if n, ok = r.number(line, m.totals[i]); !ok || n.Value < c.n {
				return *f, false
			}
			c.total = n.Value
		}
	}
	for i := range f.values {
		v := &f.values[i]
		if m.values[i] != skeleton.Nowhere {
			n, ok := r.number(line, m.values[i])
			if !ok || n.Real != v.Real || !lexis.StandsAlone(line, n.Next) && !v.list {
				return *f, false
			}
			v.figure = n
		}
		if m.means[i] != skeleton.Nowhere {
			n, ok := r.number(line, m.means[i])
			if !ok {
				return *f, false
			}
			v.mean = n.Value
		}
	}
	return *f, true
}

// replay reads a line whose kind is known.
func (r *Reader) replay(line string, hash uint64) bool {
	m := r.forms.byHash[hash%uint64(len(r.forms.byHash))]
	if m == nil || m.hash != hash {
		return false
	}
	rest, rank, tentative := line, unlabelled, false
	if !m.bare || r.sources.Colour != 0 {
		rest, rank, tentative = r.sources.Peel(line)
	}
	offset := len(line) - len(rest) - m.cut
	if tentative || offset < 0 || r.pass.split != "" {
		return false
	}
	f, ok := r.forms.cook(m, line)
	if !ok {
		return false
	}
	for i := range f.values {
		f.values[i].Next -= offset
	}
	r.rule, r.nextNear = "words and numbers", m.scored
	return r.understood(line, rest, m.from, f, rank)
}
