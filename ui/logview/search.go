package logview

import (
	"bytes"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlwb/dlwb/sanitize"
)

// scanStep is how many lines one Draw looks through for the count of matches:
// a tenth of a millisecond or so.
const scanStep = 1000

// finder is a literal search with smart case: letters in upper case in the
// query make it exact.
type finder struct {
	query string
	ascii bool   // what is compared holds ASCII only
	lower []byte // nil for an exact search
	upper byte   // the first byte of lower in upper case, where it is a letter
}

func newFinder(query string) finder {
	f := finder{query: query}
	if !strings.ContainsFunc(query, unicode.IsUpper) {
		f.lower = []byte(strings.ToLower(query))
		f.upper = bytes.ToUpper(f.lower[:1])[0]
	}
	f.ascii = isASCII(query) && isASCII(string(f.lower))
	return f
}

// index is where the query first is in p, or -1, and how long it is there.
func (f finder) index(p []byte) (at, n int) {
	if f.lower == nil {
		return bytes.Index(p, []byte(f.query)), len(f.query)
	}
	if !f.ascii {
		return f.indexFold(p)
	}
	for from := 0; from+len(f.lower) <= len(p); from++ {
		i := f.firstByte(p[from : len(p)-len(f.lower)+1])
		if i < 0 {
			return -1, 0
		}
		from += i
		if equalFold(p[from:from+len(f.lower)], f.lower) {
			return from, len(f.lower)
		}
	}
	return -1, 0
}

// firstByte is the first place of the query's first letter in either case.
func (f finder) firstByte(p []byte) int {
	i := bytes.IndexByte(p, f.lower[0])
	if f.upper == f.lower[0] {
		return i
	}
	if i >= 0 {
		p = p[:i]
	}
	if j := bytes.IndexByte(p, f.upper); j >= 0 {
		return j
	}
	return i
}

// equalFold compares with ASCII letters folded; lower is in lower case.
func equalFold(p, lower []byte) bool {
	for i, c := range lower {
		d := p[i]
		if d >= 'A' && d <= 'Z' {
			d += 'a' - 'A'
		}
		if d != c {
			return false
		}
	}
	return true
}

// indexFold compares rune by rune, for queries beyond ASCII.
func (f finder) indexFold(p []byte) (at, n int) {
	for i := 0; i < len(p); {
		if n := foldPrefix(p[i:], f.lower); n > 0 {
			return i, n
		}
		_, size := utf8.DecodeRune(p[i:])
		i += size
	}
	return -1, 0
}

// foldPrefix is how many bytes of p equal lower when folded, 0 for none.
func foldPrefix(p, lower []byte) int {
	n := 0
	for len(lower) > 0 {
		want, k := utf8.DecodeRune(lower)
		got, size := utf8.DecodeRune(p[n:])
		if size == 0 || unicode.ToLower(got) != want {
			return 0
		}
		lower = lower[k:]
		n += size
	}
	return n
}

// matches reports whether line i of the log, as it is shown, has the query.
func (l *Log) matches(i int, f finder) bool {
	p, clean := l.raw(i)
	if clean && !f.ascii && !isASCII(string(f.lower)) {
		return false
	}
	if !clean {
		p = []byte(sanitize.Plain(string(p)))
	}
	at, _ := f.index(p)
	return at >= 0
}

// find are the places of the query in a line's text, for drawing.
func (l *line) find(f finder) [][2]int {
	if l.hitsOf == f.query {
		return l.hits
	}
	l.hitsOf, l.hits = f.query, nil
	p := []byte(l.text)
	for from := 0; from < len(p); {
		at, n := f.index(p[from:])
		if at < 0 {
			break
		}
		l.hits = append(l.hits, [2]int{from + at, from + at + n})
		from += at + n
	}
	return l.hits
}

// search is the state of a search in a view. Lines are absolute numbers,
// counted from the first line the log ever had.
type search struct {
	finder
	on      bool
	current int64   // line of the match last gone to, -1 for none
	found   []int64 // closed lines that match, up to scanned
	scanned int64   // next closed line to look through
}

// Search looks for a literal text and goes to the first line that has it, from
// the top of the screen on, else to the last one before. Letters in upper case
// make it exact. An empty query ends the search. It reports whether anything
// was found.
func (v *View) Search(query string) bool {
	if query == "" {
		v.search = search{}
		return false
	}
	from := v.top
	if v.search.on && v.search.current >= 0 {
		from = v.search.current
	}
	v.search = search{finder: newFinder(query), on: true, current: -1, scanned: v.Log.dropped}
	n, ok := v.hitAfter(from)
	if !ok {
		n, ok = v.hitBefore(from)
	}
	if ok {
		v.reveal(n)
	}
	return ok
}

// Query is what is being searched, "" for nothing.
func (v *View) Query() string { return v.search.query }

// Next goes to the next line with a match, from the end on to the first.
func (v *View) Next() bool {
	return v.jump(func(at int64) (int64, bool) {
		if n, ok := v.hitAfter(at + 1); ok {
			return n, true
		}
		return v.hitAfter(v.Log.dropped)
	}, v.top-1)
}

// Prev goes to the line with a match before, from the first on to the last.
func (v *View) Prev() bool {
	return v.jump(func(at int64) (int64, bool) {
		if n, ok := v.hitBefore(at); ok {
			return n, true
		}
		return v.hitBefore(v.Log.end())
	}, v.top)
}

func (v *View) jump(to func(int64) (int64, bool), start int64) bool {
	if !v.search.on {
		return false
	}
	if v.search.current >= 0 {
		start = v.search.current
	}
	n, ok := to(start)
	if ok {
		v.reveal(n)
	}
	return ok
}

// end is the absolute number after the last line.
func (l *Log) end() int64 { return l.dropped + int64(l.Lines()) }

func (v *View) hit(n int64) bool { return v.Log.matches(int(n-v.Log.dropped), v.search.finder) }

// hitAfter is the first line with a match at n or after. Where the count has
// been, its list answers; beyond it lines are looked through.
func (v *View) hitAfter(n int64) (int64, bool) {
	s := &v.search
	n = max(n, v.Log.dropped)
	if n < s.scanned {
		if i := sort.Search(len(s.found), func(i int) bool { return s.found[i] >= n }); i < len(s.found) {
			return s.found[i], true
		}
		n = s.scanned
	}
	for ; n < v.Log.end(); n++ {
		if v.hit(n) {
			return n, true
		}
	}
	return 0, false
}

// hitBefore is the last line with a match before n.
func (v *View) hitBefore(n int64) (int64, bool) {
	s := &v.search
	for n = min(n, v.Log.end()); n > max(s.scanned, v.Log.dropped); n-- {
		if v.hit(n - 1) {
			return n - 1, true
		}
	}
	i := sort.Search(len(s.found), func(i int) bool { return s.found[i] >= n }) - 1
	if i < 0 || s.found[i] < v.Log.dropped {
		return 0, false
	}
	return s.found[i], true
}

// Scan counts matches in up to limit more lines and reports whether lines are
// left to look through. Draw does a little of it each time; call it from a
// timer to have the count sooner.
func (v *View) Scan(limit int) (more bool) {
	s := &v.search
	if !s.on {
		return false
	}
	end := v.Log.dropped + int64(v.Log.count)
	s.scanned = max(s.scanned, v.Log.dropped)
	for ; s.scanned < end && limit > 0; limit-- {
		if v.hit(s.scanned) {
			s.found = append(s.found, s.scanned)
		}
		s.scanned++
	}
	if i := sort.Search(len(s.found), func(i int) bool { return s.found[i] >= v.Log.dropped }); i > 0 {
		s.found = s.found[i:]
	}
	return s.scanned < end
}

// Matches is how many lines have a match, the number of the present one among
// them (from 1, 0 for none), and whether all lines have been counted.
func (v *View) Matches() (at, total int, all bool) {
	s := &v.search
	if !s.on {
		return 0, 0, true
	}
	total = len(s.found)
	all = s.scanned >= v.Log.dropped+int64(v.Log.count)
	if all && v.Log.opened && v.hit(v.Log.end()-1) {
		total++
	}
	if s.current >= 0 {
		at = sort.Search(len(s.found), func(i int) bool { return s.found[i] >= s.current }) + 1
	}
	return min(at, total), total, all
}
