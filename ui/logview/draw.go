package logview

import (
	"sort"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Styles are the looks of a view. Colours and attributes count, not padding.
type Styles struct {
	Text    lipgloss.Style // text without colours of its own
	Match   lipgloss.Style // what the search found
	Current lipgloss.Style // the same in the line last gone to
	Note    lipgloss.Style // the marks at cut edges and the empty text
}

// pens are styles as what opens and what closes them.
type pens struct{ text, match, current, note [2]string }

func pen(s lipgloss.Style) [2]string {
	open, shut, _ := strings.Cut(s.Inline(true).Render("x"), "x")
	return [2]string{open, shut}
}

// Draw returns exactly h rows of exactly w cells.
func (v *View) Draw(w, h int, st Styles) string {
	if w <= 0 || h <= 0 {
		return ""
	}
	v.w, v.h = w, h
	v.Scan(scanStep)
	v.settle()
	p := pens{pen(st.Text), pen(st.Match), pen(st.Current), pen(st.Note)}
	rows := make([]string, 0, h)
	var b strings.Builder
	for n, sub := v.top, v.sub; n < v.Log.end() && len(rows) < h; n, sub = n+1, 0 {
		if !v.wrap {
			rows = append(rows, v.unwrapped(&b, n, v.front(n, v.x+w), p))
			continue
		}
		l := v.line(n)
		starts := l.rows(w)
		for ; sub < len(starts) && len(rows) < h; sub++ {
			end := len(l.text)
			if sub+1 < len(starts) {
				end = starts[sub+1]
			}
			b.Reset()
			used := v.segment(&b, n, l, starts[sub], end, w, p)
			b.WriteString(spaces(w - used))
			rows = append(rows, b.String())
		}
	}
	if len(rows) == 0 && v.Empty != "" {
		text := ansi.Truncate(v.Empty, w, "")
		rows = append(rows, p.note[0]+text+p.note[1]+spaces(w-ansi.StringWidth(text)))
	}
	for len(rows) < h {
		rows = append(rows, spaces(w))
	}
	return strings.Join(rows, "\n")
}

// unwrapped is a line from column v.x on, with marks where it goes on beyond
// the edges.
func (v *View) unwrapped(b *strings.Builder, n int64, l *line, p pens) string {
	b.Reset()
	left, right := 0, 0 // cells taken by marks
	if v.x > 0 && l.text != "" && v.w > 2 {
		b.WriteString(p.note[0] + "‹" + p.note[1])
		left = 1
	}
	if end, stop := l.byteAt(v.x + v.w); v.w > 2 && (end < len(l.text) || stop > v.x+v.w) {
		right = 1
	}
	from, column := l.byteAt(v.x + left)
	used := left
	if from < len(l.text) {
		// The first character may stand half behind the left edge.
		used = min(column-v.x, v.w-right)
		b.WriteString(spaces(used - left))
	}
	used += v.segment(b, n, l, from, len(l.text), v.w-right-used, p)
	b.WriteString(spaces(v.w - right - used))
	if right > 0 {
		b.WriteString(p.note[0] + "›" + p.note[1])
	}
	return b.String()
}

// segment writes bytes from to end of a line, at most room cells, with the
// line's own colours and with matches shown. It returns the cells it used.
func (v *View) segment(b *strings.Builder, n int64, l *line, from, end, room int, p pens) int {
	var hits [][2]int
	found := p.match
	if v.search.on {
		hits = l.find(v.search.finder)
		hits = hits[sort.Search(len(hits), func(i int) bool { return hits[i][1] > from }):]
		if n == v.search.current {
			found = p.current
		}
	}
	used, shut := 0, ""
	now := [2]string{"", "-"} // no pen is like this: the first is always written
	r, runEnd := l.runAt(from)
	for i := from; i < end; {
		parted := false
		for i >= runEnd {
			r++
			runEnd = l.runEnd(r)
			parted = true
		}
		size, width := l.cluster(i, min(runEnd, end))
		if used+width > room {
			break
		}
		for len(hits) > 0 && hits[0][1] <= i {
			hits = hits[1:]
		}
		want := p.text
		switch {
		case len(hits) > 0 && hits[0][0] < i+size:
			want = found
		case r >= 0 && l.runs[r].open != "":
			want = [2]string{l.runs[r].open, "\x1b[m"}
		}
		switch {
		case want != now:
			b.WriteString(shut + want[0])
			now, shut = want, want[1]
		case parted: // what was found may reach over a change of style, a character not
			b.WriteString("\x1b[m" + want[0])
		}
		b.WriteString(l.text[i : i+size])
		used += width
		i += size
	}
	b.WriteString(shut)
	return used
}

const blanks = "                                                                                                                                                                "

func spaces(n int) string {
	if n <= 0 {
		return ""
	}
	if n <= len(blanks) {
		return blanks[:n]
	}
	return strings.Repeat(" ", n)
}
