package ui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// wide is the number of cells a text takes. Most of a frame is ASCII, SGR and
// the signs we draw with, all one cell each: those are counted here, which is
// ten times faster than looking for clusters of characters.
func wide(s string) int {
	n := 0
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c >= 0x20 && c < 0x7f:
			n, i = n+1, i+1
		case c == 0x1b:
			end := sgr(s[i:])
			if end == 0 {
				return ansi.StringWidth(s)
			}
			i += end
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if !oneCell(r) {
				return ansi.StringWidth(s)
			}
			n, i = n+1, i+size
		}
	}
	return n
}

// sgr is the length of the SGR sequence that s begins with; 0 for none.
func sgr(s string) int {
	if len(s) < 3 || s[1] != '[' {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case (c < '0' || c > '9') && c != ';' && c != ':':
			return 0
		}
	}
	return 0
}

// oneCell holds for the signs we draw with: boxes, blocks, shapes, braille and
// a few more. Whatever could join with its neighbours is not among them.
func oneCell(r rune) bool {
	return r >= 0x2500 && r <= 0x259f || r >= 0x2800 && r <= 0x28ff || strings.ContainsRune("·°…›×↓↑–—✓✗●○◐◌", r)
}

// cut makes a text at most w cells wide.
func cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if len(s) <= w || wide(s) <= w { // bytes ≥ cells
		return s
	}
	return ansi.Truncate(s, w, "…")
}

// fit makes a text exactly w cells wide.
func fit(s string, w int) string {
	s = cut(s, w)
	if gap := w - wide(s); gap > 0 {
		return s + strings.Repeat(" ", gap)
	}
	return s
}

// endOf keeps the end of a text that is too long: where paths differ.
func endOf(s string, w int) string {
	if over := wide(s) - w; over > 0 && w > 1 {
		return "…" + ansi.TruncateLeft(s, over+1, "")
	}
	return s
}

// flushRight sets a text against the right edge of w cells.
func flushRight(s string, w int) string {
	s = cut(s, w)
	if gap := w - wide(s); gap > 0 {
		return strings.Repeat(" ", gap) + s
	}
	return s
}

// spread puts one text left and one right. The right one is what gives way
// last: it is short and says how things stand.
func spread(left, right string, w int) string {
	rw := wide(right)
	if rw == 0 {
		return cut(left, w)
	}
	if rw+2 >= w {
		return cut(right, w)
	}
	return fit(strings.TrimRight(left, " "), w-rw-2) + "  " + right
}

// clamp keeps n between lo and hi; lo wins.
func clamp(n, lo, hi int) int { return max(lo, min(n, hi)) }

// block is a rectangle of text: lines and the width they are meant for.
type block struct {
	w     int
	lines []string
}

// beside sets blocks next to each other with a gap between them.
func beside(gap int, blocks ...block) []string {
	rows := 0
	for _, b := range blocks {
		rows = max(rows, len(b.lines))
	}
	out := make([]string, rows)
	for y := range out {
		var line strings.Builder
		for i, b := range blocks {
			if i > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			cell := ""
			if y < len(b.lines) {
				cell = b.lines[y]
			}
			if i == len(blocks)-1 {
				line.WriteString(cut(cell, b.w))
			} else {
				line.WriteString(fit(cell, b.w))
			}
		}
		out[y] = line.String()
	}
	return out
}

// exactly makes a list of lines exactly h long and at most w wide.
func exactly(lines []string, w, h int) []string {
	out := make([]string, max(h, 0))
	for y := range out {
		if y < len(lines) {
			out[y] = cut(lines[y], w)
		}
	}
	return out
}

// indent moves lines to the right.
func indent(lines []string, n int) []string {
	pad := strings.Repeat(" ", max(n, 0))
	out := make([]string, len(lines))
	for i, l := range lines {
		if l != "" {
			out[i] = pad + l
		}
	}
	return out
}

// wrap breaks a plain text into lines of at most w cells: between words, and
// never at the hyphens of a command's flags. A longer word is cut.
func wrap(s string, w int) []string {
	if w < 1 {
		return nil
	}
	var out []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case wide(line)+1+wide(word) <= w:
			line += " " + word
		default:
			out, line = append(out, line), word
		}
		for wide(line) > w {
			head := ansi.Truncate(line, w, "")
			if head == "" {
				return append(out, "") // one character is wider than w
			}
			out, line = append(out, head), line[len(head):]
		}
	}
	return append(out, line)
}

// window says which n of total rows to show so that the picked one is seen,
// moving as little as possible from where it was.
func window(top, picked, total, n int) int {
	if picked < top {
		top = picked
	}
	if picked >= top+n {
		top = picked - n + 1
	}
	return clamp(top, 0, max(total-n, 0))
}

// over lays a box of lines into the middle of a frame of plain h × w lines.
func over(frame, box []string, boxW, w int) []string {
	out := append([]string(nil), frame...)
	y0 := max((len(frame)-len(box))/2, 0)
	x0 := max((w-boxW)/2, 0)
	for i, line := range box {
		if y := y0 + i; y < len(out) {
			left := fit(ansi.Truncate(out[y], x0, ""), x0)
			right := ansi.TruncateLeft(out[y], x0+boxW, "")
			out[y] = left + "\x1b[m" + fit(line, min(boxW, w)) + "\x1b[m" + right
		}
	}
	return out
}
