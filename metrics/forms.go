package metrics

import (
	"math/bits"
	"unsafe"

	"github.com/dlwb/dlwb/metrics/screen"
)

// forms remember by the skeleton of a line, which is the line without its
// digits, where its numbers stand and what they mean: the second line of a kind
// costs a fraction of the first.
type forms struct {
	byHash [1 << 9]*form
	runs   [mostRuns]uint16 // where the digits of the present line begin
	n      int
	spare  found // reused
}

// mostRuns bounds the numbers of a line that has a form.
const mostRuns = 96

type form struct {
	hash     uint64
	from     int  // how far the message is behind the labels of its source
	cut      int  // what stands behind it
	bare     bool // nothing says who printed it
	found    found
	counters []spot
	totals   []spot
	values   []spot
	means    []spot
}

// spot is where a number begins: so far before the first digit of a run.
type spot struct{ run, before int16 }

// nowhereAt is the spot of what is always the same, such as nan.
var nowhereAt = spot{run: -1}

// skeleton is the hash of a line with its numbers left out, and notes where
// they begin. Lines with the same skeleton say the same, with other numbers. It
// looks at eight bytes at a time: every line of a run comes through here.
func (r *forms) skeleton(line string) uint64 {
	hash := uint64(14695981039346656037)
	r.n = 0
	inName, from := false, 0 // whether the last digits may be part of a name, and where they ended
	for i := 0; i < len(line); {
		word := eight(line, i)
		n := min(bits.TrailingZeros64(^others(word)&highBits)/8, len(line)-i)
		if i += n; n == 8 {
			hash = mix(hash, word)
			continue
		}
		word = word&(1<<(8*n)-1) | uint64(n)<<56
		if i == len(line) {
			hash = mix(hash, word)
			break
		}
		end := i + digitsAt(line, i)
		joined := i > from && nameBytes[line[i-1]] == joins
		inName = afterName(line[from:i], inName)
		if from = end; inName && !(joined && end > i+2) {
			hash = mix(hash, word) // the digits of acc@1, top-5 and layer_2 are part of a name
			for ; i < end; i++ {
				hash = mix(hash, uint64(line[i]))
			}
			continue
		}
		if r.n < mostRuns {
			r.runs[r.n] = uint16(i)
		}
		r.n++
		hash = mix(hash, word|'0'<<56)
		i = end
	}
	hash = mix(hash, hash>>32)
	return hash ^ hash>>32 | 1
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x80 * lowBits
)

// eight are the eight bytes at i, or as many as there are, the first the lowest.
func eight(line string, i int) (word uint64) {
	if i+8 <= len(line) {
		s := line[i : i+8]
		return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	}
	for k := len(line) - 1; k >= i; k-- {
		word = word<<8 | uint64(line[k])
	}
	return word
}

// others has the highest bit of each byte of a word set that is no digit.
func others(word uint64) uint64 {
	word ^= '0' * lowBits // digits become 0 to 9
	return (word&^highBits + (0x80-10)*lowBits) | word
}

// digitsAt is how many digits stand at i, where there is one.
func digitsAt(line string, i int) int {
	if n := bits.TrailingZeros64(others(eight(line, i))&highBits) / 8; n < 8 {
		return n
	}
	return digits(line, i) - i
}

func mix(hash, word uint64) uint64 {
	return bits.RotateLeft64((hash^word)*0x9e3779b97f4a7c15, 29)
}

// afterName reports whether digits behind a text are part of a name, when they
// would have been before it.
func afterName(text string, inName bool) bool {
	for i := len(text) - 1; i >= 0; i-- {
		if kind := nameBytes[text[i]]; kind != joins {
			return kind == begins
		}
	}
	return inName
}

// What a byte says about digits behind it.
const (
	ends   = iota // they are a number
	begins        // they are part of a name
	joins         // as before it
)

var nameBytes = func() (t [256]uint8) {
	for c := range t {
		switch b := byte(c); {
		case isLetter(b) || b == '@':
			t[c] = begins
		case b == '-' || b == '.' || b == '/':
			t[c] = joins
		}
	}
	return t
}()

// spotOf is the spot of a number that begins at i.
func (r *forms) spotOf(i int) (spot, bool) {
	for run := range r.n {
		if at := int(r.runs[run]); at >= i {
			return spot{int16(run), int16(at - i)}, at-i <= 2
		}
	}
	return spot{}, false
}

// learn remembers what was found in a line. rest is the line without the labels
// of its source, and its message begins at from; bare says that there are none.
func (r *forms) learn(hash uint64, line, rest string, from int, bare bool, f found) {
	offset := int(uintptr(unsafe.Pointer(unsafe.StringData(rest))) - uintptr(unsafe.Pointer(unsafe.StringData(line))))
	if len(f.values) == 0 || f.pass.total > 0 || r.n > mostRuns || len(line) >= screen.MaxLine || offset < 0 || offset+len(rest) > len(line) {
		return
	}
	m := &form{hash: hash, from: from, cut: len(line) - offset - len(rest), bare: rest == line && bare, found: found{shape: f.shape, split: f.split}}
	m.found.counters = append(m.found.counters, f.counters...)
	m.found.values = append(m.found.values, f.values...)
	ok := true
	add := func(to *[]spot, at int, constant bool) {
		s, found := nowhereAt, true
		if !constant {
			s, found = r.spotOf(at + offset)
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
		ok = ok && v.start >= 0 && !longDigits(v.show)
		add(&m.values, v.start, notNumber(v.value))
		add(&m.means, v.meanAt, !v.hasMean || notNumber(v.mean))
	}
	if ok {
		r.byHash[hash%uint64(len(r.byHash))] = m
	}
}

// longDigits reports whether a name has a number inside that the skeleton may
// have left out.
func longDigits(name string) bool {
	for i := 0; i < len(name); i++ {
		if end := digits(name, i); end > i+2 {
			return true
		}
	}
	return false
}

func notNumber(v float64) bool { return v-v != 0 }

// number reads the number at a spot of a line.
func (r *forms) number(line string, s spot) (figure, bool) {
	return number(line, int(r.runs[s.run])-int(s.before))
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
		if !ok || n.value != float64(int64(n.value)) && c.unit != unitEpoch {
			return *f, false
		}
		c.n = n.value
		if m.totals[i] != nowhereAt {
			if n, ok = r.number(line, m.totals[i]); !ok || n.value < c.n {
				return *f, false
			}
			c.total = n.value
		}
	}
	for i := range f.values {
		v := &f.values[i]
		if m.values[i] != nowhereAt {
			n, ok := r.number(line, m.values[i])
			if !ok || n.real != v.real || !standsAlone(line, n.next) && !v.list {
				return *f, false
			}
			v.figure = n
		}
		if m.means[i] != nowhereAt {
			n, ok := r.number(line, m.means[i])
			if !ok {
				return *f, false
			}
			v.mean = n.value
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
	if !m.bare || r.sources.colour != 0 {
		rest, rank, tentative = r.sources.peel(line)
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
		f.values[i].next -= offset
	}
	r.rule = "words and numbers"
	return r.understood(line, rest, m.from, f, rank)
}
