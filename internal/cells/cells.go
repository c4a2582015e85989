// Package cells turns what a View returns into a grid of cells, and a grid
// into a picture. Blocks, boxes and braille become shapes, so that no font can
// put them out of line.
package cells

import (
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// Cell is one place of the screen. The second half of a wide character has
// Width 0 and no text.
type Cell struct {
	Text   string
	Width  int
	Fg, Bg color.Color // nil for the terminal's own

	Bold, Faint, Italic, Underline, Strike, Reverse bool
}

// Grid is a screen of W by H cells.
type Grid struct {
	W, H  int
	cells []Cell
}

// Parse lays view out on a screen of w by h. What does not fit is cut off, as
// a terminal without wrapping would.
func Parse(view string, w, h int) *Grid {
	w, h = max(w, 1), max(h, 1)
	screen := uv.NewScreenBuffer(w, h)
	screen.Method = ansi.GraphemeWidth
	uv.NewStyledString(view).Draw(screen, screen.Bounds())
	g := &Grid{W: w, H: h, cells: make([]Cell, w*h)}
	for y := range h {
		for x := range w {
			g.cells[y*w+x] = fromScreen(screen.CellAt(x, y))
		}
	}
	return g
}

func fromScreen(c *uv.Cell) Cell {
	if c == nil {
		return Cell{Text: " ", Width: 1}
	}
	has := func(attr uint8) bool { return c.Style.Attrs&attr != 0 }
	return Cell{
		Text: c.Content, Width: c.Width,
		Fg: c.Style.Fg, Bg: c.Style.Bg,
		Bold: has(uv.AttrBold), Faint: has(uv.AttrFaint), Italic: has(uv.AttrItalic),
		Strike: has(uv.AttrStrikethrough), Reverse: has(uv.AttrReverse),
		Underline: c.Style.Underline != uv.UnderlineNone,
	}
}

// At is the cell in column x of row y, both from 0.
func (g *Grid) At(x, y int) Cell { return g.cells[y*g.W+x] }

// Row is the text of row y, its blanks at the end included.
func (g *Grid) Row(y int) string {
	var b strings.Builder
	for x := range g.W {
		b.WriteString(g.At(x, y).Text)
	}
	return b.String()
}

// Text is the whole screen as plain text without blanks at line ends: what
// tests compare and people read.
func (g *Grid) Text() string {
	rows := make([]string, g.H)
	for y := range rows {
		rows[y] = strings.TrimRight(g.Row(y), " ")
	}
	return strings.Join(rows, "\n")
}
