// Package text is how text is set on a screen: its width in cells, lines and
// blocks, amounts, the inks of a theme, and ASCII in place of our signs.
package text

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Wide is the number of cells a text takes. Most of a frame is ASCII, SGR and
// the signs we draw with, all one cell each: those are counted here, which is
// ten times faster than looking for clusters of characters.
func Wide(s string) int {
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

// Cut makes a text at most w cells wide.
func Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if len(s) <= w || Wide(s) <= w { // bytes ≥ cells
		return s
	}
	return ansi.Truncate(s, w, "…")
}

// Fit makes a text exactly w cells wide.
func Fit(s string, w int) string {
	s = Cut(s, w)
	if gap := w - Wide(s); gap > 0 {
		return s + strings.Repeat(" ", gap)
	}
	return s
}

// EndOf keeps the end of a text that is too long: where paths differ.
func EndOf(s string, w int) string {
	if over := Wide(s) - w; over > 0 && w > 1 {
		return "…" + ansi.TruncateLeft(s, over+1, "")
	}
	return s
}

// FlushRight sets a text against the right edge of w cells.
func FlushRight(s string, w int) string {
	s = Cut(s, w)
	if gap := w - Wide(s); gap > 0 {
		return strings.Repeat(" ", gap) + s
	}
	return s
}

// Spread puts one text left and one right. The right one is what gives way
// last: it is short and says how things stand.
func Spread(left, right string, w int) string {
	rw := Wide(right)
	if rw == 0 {
		return Cut(left, w)
	}
	if rw+2 >= w {
		return Cut(right, w)
	}
	return Fit(strings.TrimRight(left, " "), w-rw-2) + "  " + right
}

// Clamp keeps n between lo and hi; lo wins.
func Clamp(n, lo, hi int) int { return max(lo, min(n, hi)) }

// Block is a rectangle of text: lines and the width they are meant for.
type Block struct {
	W     int
	Lines []string
}

// Beside sets blocks next to each other with a gap between them.
func Beside(gap int, blocks ...Block) []string {
	rows := 0
	for _, b := range blocks {
		rows = max(rows, len(b.Lines))
	}
	out := make([]string, rows)
	for y := range out {
		var line strings.Builder
		for i, b := range blocks {
			if i > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			cell := ""
			if y < len(b.Lines) {
				cell = b.Lines[y]
			}
			if i == len(blocks)-1 {
				line.WriteString(Cut(cell, b.W))
			} else {
				line.WriteString(Fit(cell, b.W))
			}
		}
		out[y] = line.String()
	}
	return out
}

// Exactly makes a list of lines exactly h long and at most w wide.
func Exactly(lines []string, w, h int) []string {
	out := make([]string, max(h, 0))
	for y := range out {
		if y < len(lines) {
			out[y] = Cut(lines[y], w)
		}
	}
	return out
}

// Indent moves lines to the right.
func Indent(lines []string, n int) []string {
	pad := strings.Repeat(" ", max(n, 0))
	out := make([]string, len(lines))
	for i, l := range lines {
		if l != "" {
			out[i] = pad + l
		}
	}
	return out
}

// Wrap breaks a plain text into lines of at most w cells: between words, and
// never at the hyphens of a command's flags. A longer word is cut.
func Wrap(s string, w int) []string {
	if w < 1 {
		return nil
	}
	var out []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case Wide(line)+1+Wide(word) <= w:
			line += " " + word
		default:
			out, line = append(out, line), word
		}
		for Wide(line) > w {
			head := ansi.Truncate(line, w, "")
			if head == "" {
				return append(out, "") // one character is wider than w
			}
			out, line = append(out, head), line[len(head):]
		}
	}
	return append(out, line)
}

// Window says which n of total rows to show so that the picked one is seen,
// moving as little as possible from where it was.
func Window(top, picked, total, n int) int {
	if picked < top {
		top = picked
	}
	if picked >= top+n {
		top = picked - n + 1
	}
	return Clamp(top, 0, max(total-n, 0))
}

// Over lays a box of lines into the middle of a frame of plain h × w lines.
func Over(frame, box []string, boxW, w int) []string {
	out := append([]string(nil), frame...)
	y0 := max((len(frame)-len(box))/2, 0)
	x0 := max((w-boxW)/2, 0)
	for i, line := range box {
		if y := y0 + i; y < len(out) {
			left := Fit(ansi.Truncate(out[y], x0, ""), x0)
			right := ansi.TruncateLeft(out[y], x0+boxW, "")
			out[y] = left + "\x1b[m" + Fit(line, min(boxW, w)) + "\x1b[m" + right
		}
	}
	return out
}

// Words makes a word of each line.
func Words(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = Word(l)
	}
	return out
}

// Differing cuts off what several texts begin with, where one of them is wider than
// w: how they differ is what they are looked at for.
func Differing(texts []string, w int) []string {
	widest, shared, known, alike := 0, "", 0, true
	for _, t := range texts {
		if t == "-" {
			continue
		}
		if widest = max(widest, Wide(t)); known == 0 {
			shared = t
		}
		alike = alike && t == shared
		known++
		for !strings.HasPrefix(t, shared) {
			_, n := utf8.DecodeLastRuneInString(shared)
			shared = shared[:len(shared)-n]
		}
	}
	if widest <= w || len(shared) < 4 || alike {
		return texts
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		if out[i] = t; t != "-" {
			out[i] = "…" + t[len(shared):]
		}
	}
	return out
}
