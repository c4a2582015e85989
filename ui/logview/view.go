package logview

import (
	"fmt"
	"strconv"
	"strings"
)

// View is a window onto a Log. Its position is kept by line, so that it stays
// on what is being read while lines are added and old ones are dropped.
type View struct {
	Log    *Log
	Follow bool   // stay at the end; scrolling up ends it, reaching the end begins it
	Empty  string // what to say while there are no lines

	wrap   bool
	x      int   // first column shown when not wrapping
	top    int64 // absolute number of the line in the first row
	sub    int   // row of that line in the first row, when wrapping
	w, h   int   // as last drawn
	search search
	cache  map[int64]*line
	gen    int   // of the open line in cache
	openAt int64 // its number there
}

// NewView returns a view that follows the end of l.
func NewView(l *Log) *View {
	return &View{Log: l, Follow: true, w: 80, h: 24, cache: map[int64]*line{}}
}

// Wrap reports whether long lines are wrapped.
func (v *View) Wrap() bool { return v.wrap }

// SetWrap turns wrapping of long lines on or off.
func (v *View) SetWrap(on bool) { v.wrap, v.sub, v.x = on, 0, 0 }

// Left and Right move sideways by n columns where lines are not wrapped.
func (v *View) Left(n int) { v.x = max(0, v.x-n) }

// Right moves to the right; see Left.
func (v *View) Right(n int) {
	if !v.wrap {
		v.x = min(v.x+n, v.Log.limits.Line+64)
	}
}

// X is the first column shown.
func (v *View) X() int { return v.x }

// Top goes to the oldest line.
func (v *View) Top() { v.top, v.sub, v.Follow = v.Log.dropped, 0, false }

// End goes to the newest line and follows from there on.
func (v *View) End() { v.Follow = true }

// Page scrolls by n screens, less a row for the eye.
func (v *View) Page(n int) { v.Scroll(n * max(1, v.h-1)) }

// Scroll moves down by n rows, or up where n is negative.
func (v *View) Scroll(n int) {
	v.settle()
	bottom, bottomSub := v.bottom()
	down := n > 0
	v.Follow = v.Follow && n >= 0
	if !v.wrap {
		v.top = max(v.top+int64(n), v.Log.dropped)
	}
	for ; v.wrap && n > 0 && v.before(bottom, bottomSub); n-- {
		if v.sub++; v.sub >= v.rowsOf(v.top) {
			v.top, v.sub = v.top+1, 0
		}
	}
	for ; v.wrap && n < 0 && (v.top > v.Log.dropped || v.sub > 0); n++ {
		if v.sub--; v.sub < 0 {
			v.top--
			v.sub = v.rowsOf(v.top) - 1
		}
	}
	v.Follow = v.Follow || down && !v.before(bottom, bottomSub)
}

func (v *View) before(line int64, sub int) bool {
	return v.top < line || v.top == line && v.sub < sub
}

// bottom is the position at which the last row of the log is the last one
// shown.
func (v *View) bottom() (line int64, sub int) {
	end := v.Log.end()
	if !v.wrap {
		return max(v.Log.dropped, end-int64(v.h)), 0
	}
	left := v.h
	for line = end; line > v.Log.dropped; {
		line--
		n := v.rowsOf(line)
		if n >= left {
			return line, n - left
		}
		left -= n
	}
	return v.Log.dropped, 0
}

// settle moves the position to where it may be: not before the oldest line,
// not beyond the last full screen, and at the end when following.
func (v *View) settle() {
	if v.top < v.Log.dropped {
		v.top, v.sub = v.Log.dropped, 0
	}
	line, sub := v.bottom()
	if v.Follow || !v.before(line, sub) {
		v.top, v.sub = line, sub
	}
	if v.sub > 0 && v.top < v.Log.end() {
		v.sub = min(v.sub, v.rowsOf(v.top)-1)
	}
}

// reveal makes line n the current match and scrolls only when it is not seen.
func (v *View) reveal(n int64) {
	v.search.current = n
	v.settle()
	v.Follow = false
	hits := v.line(n).find(v.search.finder)
	at := 0
	if len(hits) > 0 {
		at = hits[0][0]
	}
	if v.wrap {
		v.revealRow(n, at)
		return
	}
	if n < v.top || n >= v.top+int64(v.h) {
		v.top = max(v.Log.dropped, n-int64(v.h/3))
	}
	if column := v.columnOf(n, at); column < v.x || column >= v.x+v.w-len(v.search.query) {
		v.x = 0
		if column >= v.w-len(v.search.query) {
			v.x = max(0, column-v.w/3)
		}
	}
}

// revealRow scrolls so that byte at of line n is on the screen, when wrapping.
func (v *View) revealRow(n int64, at int) {
	row := 0
	for i, start := range v.line(n).rows(v.w) {
		if start <= at {
			row = i
		}
	}
	y := row - v.sub // the screen row of the match, if the lines between are few
	for m := v.top; m < n && y < v.h; m++ {
		y += v.rowsOf(m)
	}
	if n >= v.top && y >= 0 && y < v.h {
		return
	}
	v.top, v.sub = n, row
	for range v.h / 3 {
		if v.sub--; v.sub < 0 {
			if v.top == v.Log.dropped {
				v.sub = 0
				return
			}
			v.top--
			v.sub = v.rowsOf(v.top) - 1
		}
	}
}

// columnOf is the column at which byte at of line n stands.
func (v *View) columnOf(n int64, at int) int {
	l := v.line(n)
	if l.ascii {
		return at
	}
	column := 0
	r, end := l.runAt(0)
	for i := 0; i < at; {
		for i >= end {
			r++
			end = l.runEnd(r)
		}
		size, width := l.cluster(i, end)
		i += size
		column += width
	}
	return column
}

func (v *View) rowsOf(n int64) int { return len(v.line(n).rows(max(1, v.w))) }

// line is line n made ready for drawing. What was drawn lately is kept: the
// next frame mostly shows the same.
func (v *View) line(n int64) *line {
	if l := v.cached(n); l != nil && !l.front {
		return l
	}
	return v.keep(n, parse(v.Log.raw(int(n-v.Log.dropped))))
}

// front is line n as far as its first cells need: a screen of the longest
// lines must not cost what all of them hold.
func (v *View) front(n int64, cells int) *line {
	const spare = 8 // the place of the cut may look different
	l := v.cached(n)
	if l == nil {
		raw, clean := v.Log.raw(int(n - v.Log.dropped))
		size := 1024 + 8*cells
		if len(raw) <= size {
			return v.line(n)
		}
		l = parse(raw[:size], clean)
		l.front = true
		v.keep(n, l)
	}
	if _, width := l.byteAt(cells + spare); l.front && width < cells+spare {
		return v.line(n)
	}
	return l
}

func (v *View) cached(n int64) *line {
	if v.gen != v.Log.gen {
		delete(v.cache, v.openAt)
		v.gen = v.Log.gen
	}
	return v.cache[n]
}

func (v *View) keep(n int64, l *line) *line {
	if len(v.cache) > 4*v.h+64 {
		clear(v.cache)
	}
	if n >= v.Log.dropped+int64(v.Log.count) {
		v.openAt = n
	}
	v.cache[n] = l
	return l
}

// Status says in one plain line where the view is and what the search found.
func (v *View) Status() string {
	if v.Log.Lines() == 0 {
		return "no lines"
	}
	v.settle()
	last := min(v.top+int64(v.h), v.Log.end())
	parts := []string{fmt.Sprintf("%s of %s", thousands(last), plural(v.Log.end(), "line", "lines"))}
	if v.Log.dropped > 0 {
		parts = append(parts, "the oldest "+thousands(v.Log.dropped)+" dropped")
	}
	if v.x > 0 {
		parts = append(parts, "from column "+strconv.Itoa(v.x+1))
	}
	if v.Follow {
		parts = append(parts, "following")
	}
	if v.search.on {
		parts = append(parts, v.matchText())
	}
	return strings.Join(parts, ", ")
}

func (v *View) matchText() string {
	at, total, all := v.Matches()
	switch {
	case !all:
		return "counting matches: " + thousands(int64(total)) + " so far"
	case total == 0:
		return "no match"
	case at == 0:
		return plural(int64(total), "match", "matches")
	}
	return "match " + thousands(int64(at)) + " of " + thousands(int64(total))
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// thousands writes n with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
