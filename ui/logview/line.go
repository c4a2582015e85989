package logview

import (
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/sanitize"
)

// tabStop is how far apart tab stops are.
const tabStop = 8

// line is one line made ready for drawing: its text without escapes and tabs,
// and where its own colours change.
type line struct {
	text  string
	runs  []run // in order; before the first the line is unstyled
	ascii bool
	front bool // only the beginning of the line is here

	wrapW  int   // width that starts was made for
	starts []int // byte at which each row starts when wrapped

	hitsOf string // query that hits was made for
	hits   [][2]int
}

// run is a stretch of text from byte at on, opened by an SGR ("" for none).
type run struct {
	at   int
	open string
}

// parse makes a raw line ready. The note of a cut line passes like its text.
func parse(raw []byte, clean bool) *line {
	if clean {
		return &line{text: expandTabs(string(raw)), ascii: true}
	}
	safe := string(sanitize.Append(nil, raw))
	l := &line{ascii: true}
	var b strings.Builder
	var style uv.Style
	for safe != "" {
		text, rest, found := strings.Cut(safe, "\x1b[")
		l.ascii = l.ascii && isASCII(text)
		b.WriteString(text)
		if !found {
			break
		}
		params, after, _ := strings.Cut(rest, "m")
		safe = after
		l.restyle(&style, params, b.Len())
	}
	l.text = b.String()
	if strings.IndexByte(l.text, '\t') >= 0 {
		l.expand()
	}
	return l
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// restyle applies one SGR at a place in the text. Blinking and concealed text
// is shown as it is: a log may not hide anything.
func (l *line) restyle(style *uv.Style, params string, at int) {
	p := ansi.GetParser()
	defer ansi.PutParser(p)
	var state byte
	ansi.DecodeSequence("\x1b["+params+"m", state, p)
	uv.ReadStyle(p.Params(), style)
	style.Attrs &^= uv.AttrBlink | uv.AttrRapidBlink | uv.AttrConceal
	open := ""
	if !style.IsZero() {
		open = style.String()
	}
	n := len(l.runs)
	if n > 0 && l.runs[n-1].at == at {
		n--
		l.runs = l.runs[:n]
	}
	was := ""
	if n > 0 {
		was = l.runs[n-1].open
	}
	if open != was { // else there is no escape on the screen, and no end of a character
		l.runs = append(l.runs, run{at, open})
	}
}

// expandTabs replaces tabs in ASCII text by spaces up to the next stop.
func expandTabs(s string) string {
	if strings.IndexByte(s, '\t') < 0 {
		return s
	}
	l := line{text: s, ascii: true}
	l.expand()
	return l.text
}

// expand replaces the tabs of a line and moves its runs along.
func (l *line) expand() {
	var b strings.Builder
	column, from, next := 0, 0, 0
	for from <= len(l.text) {
		part, _, found := strings.Cut(l.text[from:], "\t")
		for ; next < len(l.runs) && l.runs[next].at <= from+len(part); next++ {
			l.runs[next].at += b.Len() - from
		}
		b.WriteString(part)
		if !found {
			break
		}
		column += ansi.StringWidth(part)
		n := tabStop - column%tabStop
		b.WriteString("        "[:n])
		column += n
		from += len(part) + 1
	}
	l.text = b.String()
}

// cluster is the bytes and cells of what stands at byte i. It never reaches
// over a change of style, because an escape parts characters on the screen.
func (l *line) cluster(i, end int) (size, width int) {
	if l.ascii || l.text[i] < 0x80 && (i+1 >= end || l.text[i+1] < 0x80) {
		return 1, 1
	}
	c, w := ansi.FirstGraphemeCluster(l.text[i:end], ansi.GraphemeWidth)
	return len(c), w
}

// runAt is the index of the run that byte i is in, -1 before the first, and
// where that run ends.
func (l *line) runAt(i int) (at, end int) {
	lo, hi := 0, len(l.runs)
	for lo < hi {
		if mid := (lo + hi) / 2; l.runs[mid].at <= i {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1, l.runEnd(lo - 1)
}

func (l *line) runEnd(at int) int {
	if at+1 < len(l.runs) {
		return l.runs[at+1].at
	}
	return len(l.text)
}

// rows are the bytes at which the rows of the line start when it is wrapped at
// w cells.
func (l *line) rows(w int) []int {
	if l.wrapW == w {
		return l.starts
	}
	l.wrapW, l.starts = w, append(l.starts[:0], 0)
	if l.ascii {
		for i := w; i < len(l.text); i += w {
			l.starts = append(l.starts, i)
		}
		return l.starts
	}
	column := 0
	at, end := l.runAt(0)
	for i := 0; i < len(l.text); {
		for i >= end {
			at++
			end = l.runEnd(at)
		}
		size, width := l.cluster(i, end)
		if column+width > w && i > l.starts[len(l.starts)-1] {
			l.starts = append(l.starts, i)
			column = 0
		}
		column += width
		i += size
	}
	return l.starts
}

// byteAt is the first byte at or after a column, and the column it is in.
func (l *line) byteAt(column int) (i, at int) {
	if l.ascii {
		i = min(column, len(l.text))
		return i, i
	}
	r, end := l.runAt(0)
	for i < len(l.text) && at < column {
		for i >= end {
			r++
			end = l.runEnd(r)
		}
		size, width := l.cluster(i, end)
		i += size
		at += width
	}
	return i, at
}
