package cells

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"
	"unicode/utf8"
)

const (
	// fontSize makes a character of the common monospace fonts, 0.602 em wide,
	// exactly one cell wide.
	fontSize = 14.95
	baseline = 13.6 // of text below the upper edge of its cell
	barH     = 32.0 // of the title bar
	fonts    = "'DejaVu Sans Mono','JetBrains Mono',Menlo,Consolas,monospace"
)

// SVG draws view on a screen of w by h cells as an SVG file.
func SVG(view string, w, h int, theme Theme) []byte {
	return Parse(view, w, h).SVG(theme)
}

// SVG draws the grid as an SVG file. The file needs no font for boxes, blocks
// and braille, and names common ones for the rest.
func (g *Grid) SVG(theme Theme) []byte {
	p := painter{Theme: theme, shapes: map[string]*bytes.Buffer{}}
	p.left, p.top = float64(theme.Margin), float64(theme.Margin)
	width, height := float64(g.W)*cellW+2*p.left, float64(g.H)*cellH+2*p.top
	if theme.Title != "" {
		p.top += barH - p.top/2
		height += barH - float64(theme.Margin)/2
	}
	fmt.Fprintf(&p.out, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s">`+"\n",
		num(width), num(height))
	fmt.Fprintf(&p.out, `<rect width="%s" height="%s" rx="%d" fill="%s"/>`+"\n",
		num(width), num(height), theme.Rounding, hex(theme.Bg))
	p.bar(width)
	for y := range g.H {
		p.backgrounds(g, y)
	}
	p.paths() // before any character, also one of the same colour
	for y := range g.H {
		p.row(g, y)
	}
	p.flush()
	p.out.WriteString("</svg>\n")
	return p.out.Bytes()
}

// painter collects the picture: backgrounds first, then shapes by colour, then
// text.
type painter struct {
	Theme
	left, top float64
	out       bytes.Buffer
	shapes    map[string]*bytes.Buffer // path data by the attributes of its path
	order     []string                 // of shapes, as first used
	text      bytes.Buffer
}

// bar draws the title bar with its three buttons.
func (p *painter) bar(width float64) {
	if p.Title == "" {
		return
	}
	r := float64(p.Rounding)
	fmt.Fprintf(&p.out, `<path fill="%s" d="M0 %s v-%s a%s %s 0 0 1 %s -%s h%s a%s %s 0 0 1 %s %s v%s z"/>`+"\n", hex(p.Bar),
		num(barH), num(barH-r), num(r), num(r), num(r), num(r), num(width-2*r), num(r), num(r), num(r), num(r), num(barH-r))
	for i, fill := range []string{"#ed6a5e", "#f4bf4f", "#61c554"} {
		fmt.Fprintf(&p.out, `<circle cx="%d" cy="%s" r="5.5" fill="%s"/>`+"\n", 20+19*i, num(barH/2), fill)
	}
	fmt.Fprintf(&p.out, `<text x="%s" y="%s" text-anchor="middle" font-family="%s" font-size="13" fill="%s">%s</text>`+"\n",
		num(width/2), num(barH/2+4.5), fonts, hex(p.BarText), escape(p.Title))
}

// backgrounds draws the coloured backgrounds of a row, each run as one.
func (p *painter) backgrounds(g *Grid, y int) {
	for x := 0; x < g.W; {
		_, bg := p.colours(g.At(x, y))
		n := 1
		for x+n < g.W {
			c := g.At(x+n, y)
			if _, next := p.colours(c); next != bg && c.Width > 0 {
				break
			}
			n++
		}
		if bg != p.Bg {
			p.add(`shape-rendering="crispEdges" `+fill(bg, 1),
				rect(p.x(x), p.y(y), float64(n)*cellW, cellH))
		}
		x += n
	}
}

func (p *painter) x(column int) float64 { return p.left + float64(column)*cellW }
func (p *painter) y(row int) float64    { return p.top + float64(row)*cellH }

func fill(c color.RGBA, opacity float64) string {
	if opacity < 1 {
		return fmt.Sprintf(`fill="%s" fill-opacity="%s"`, hex(c), num(opacity))
	}
	return fmt.Sprintf(`fill="%s"`, hex(c))
}

func (p *painter) add(attributes, path string) {
	b := p.shapes[attributes]
	if b == nil {
		b = new(bytes.Buffer)
		p.shapes[attributes] = b
		p.order = append(p.order, attributes)
	}
	b.WriteString(path)
}

// row draws the characters of a row: shapes one by one, words of the same look
// in one go.
func (p *painter) row(g *Grid, y int) {
	for x := 0; x < g.W; {
		c := g.At(x, y)
		r, size := utf8.DecodeRuneInString(c.Text)
		fg, _ := p.colours(c)
		p.lines(c, x, y, fg)
		if path, opacity, ok := shape(r, p.x(x), p.y(y)); ok && size == len(c.Text) {
			attributes := fill(fg, opacity)
			if r < 0x2800 && (r < 0x256d || r > 0x2573) {
				attributes = `shape-rendering="crispEdges" ` + attributes
			}
			p.add(attributes, path)
			x++
			continue
		}
		n := 1
		if isWord(c) {
			for x+n < g.W && isWord(g.At(x+n, y)) && sameLook(c, g.At(x+n, y)) {
				p.lines(g.At(x+n, y), x+n, y, fg)
				n++
			}
		}
		p.word(g, x, y, n, fg)
		x += n
	}
}

// isWord reports whether a cell may be set together with its neighbours: only
// ASCII surely has the width of its cell in every font.
func isWord(c Cell) bool { return len(c.Text) == 1 && c.Text > " " && c.Text < "\x7f" }

func sameLook(a, b Cell) bool {
	a.Text, b.Text = "", ""
	return a == b
}

// word sets the text of n cells from column x on.
func (p *painter) word(g *Grid, x, y, n int, fg color.RGBA) {
	var text strings.Builder
	for i := range n {
		text.WriteString(g.At(x+i, y).Text)
	}
	c := g.At(x, y)
	if strings.TrimSpace(text.String()) == "" {
		return
	}
	look := ""
	if c.Bold {
		look += ` font-weight="bold"`
	}
	if c.Italic {
		look += ` font-style="italic"`
	}
	fmt.Fprintf(&p.text, `<text x="%s" y="%s" textLength="%s" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`+"\n",
		num(p.x(x)), num(p.y(y)+baseline), num(float64(max(n, c.Width))*cellW), hex(fg), look, escape(text.String()))
}

// lines draws what runs under or through a cell.
func (p *painter) lines(c Cell, x, y int, fg color.RGBA) {
	width := float64(c.Width) * cellW
	if c.Underline {
		p.add(`shape-rendering="crispEdges" `+fill(fg, 1), rect(p.x(x), p.y(y)+15.5, width, 1))
	}
	if c.Strike {
		p.add(`shape-rendering="crispEdges" `+fill(fg, 1), rect(p.x(x), p.y(y)+9, width, 1))
	}
}

// paths writes the shapes collected so far.
func (p *painter) paths() {
	for _, attributes := range p.order {
		fmt.Fprintf(&p.out, `<path %s d="%s"/>`+"\n", attributes, p.shapes[attributes])
	}
	clear(p.shapes)
	p.order = p.order[:0]
}

// flush writes shapes and text behind what is already there.
func (p *painter) flush() {
	p.paths()
	fmt.Fprintf(&p.out, `<g font-family="%s" font-size="%s" xml:space="preserve">`+"\n", fonts, num(fontSize))
	p.out.Write(p.text.Bytes())
	p.out.WriteString("</g>\n")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escape makes text safe within XML; characters that XML does not allow go.
func escape(s string) string {
	return escaper.Replace(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd")))
}
