package cells

import (
	"fmt"
	"image/color"

	"github.com/charmbracelet/x/ansi"
)

// Theme is the terminal that a picture is of.
type Theme struct {
	Title    string // of the window; without one there is no title bar
	Fg, Bg   color.RGBA
	Bar      color.RGBA     // the title bar
	BarText  color.RGBA     // its text
	Palette  [16]color.RGBA // the ANSI colours
	Margin   int            // around the screen, in the units of a cell's 9 by 18
	Rounding int            // radius of the window's corners
}

// Dark and Light are terminals with the two common backgrounds. Their palettes
// are readable on them, each colour with a contrast of at least 4.5 to 1 save
// the one that is nearest to the background.
var (
	Dark = Theme{
		Fg: rgb(0xd8dee9), Bg: rgb(0x14161b), Bar: rgb(0x23262e), BarText: rgb(0xa5adba),
		Palette: palette(0x3b4048, 0xf7768e, 0x8fce7f, 0xe0af68, 0x7aa2f7, 0xc79bf0, 0x5fc9d8, 0xc8ccd4,
			0x7f8694, 0xff9aa8, 0xb4e6a5, 0xf5cf8f, 0xa3bffc, 0xdcbcfb, 0x93e0ea, 0xf4f6fa),
		Margin: 14, Rounding: 8,
	}
	Light = Theme{
		Fg: rgb(0x24292f), Bg: rgb(0xfbfbfa), Bar: rgb(0xe6e7e9), BarText: rgb(0x57606a),
		Palette: palette(0x24292f, 0xb4232f, 0x1a6e33, 0x825400, 0x0a53b8, 0x7a36b1, 0x0b6672, 0x6a737d,
			0x57606a, 0xcf222e, 0x1a7f37, 0x9a6700, 0x0969da, 0x8250df, 0x1b7c83, 0xd0d7de),
		Margin: 14, Rounding: 8,
	}
)

func rgb(v uint32) color.RGBA {
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}

func palette(v ...uint32) (p [16]color.RGBA) {
	for i := range p {
		p[i] = rgb(v[i])
	}
	return p
}

// resolve is what c looks like in this theme; nil is the given default. The
// first 16 colours are the theme's own, the others are the same everywhere.
func (t *Theme) resolve(c color.Color, byDefault color.RGBA) color.RGBA {
	switch c := c.(type) {
	case nil:
		return byDefault
	case ansi.BasicColor:
		return t.Palette[c&15]
	case ansi.IndexedColor:
		if c < 16 {
			return t.Palette[c]
		}
	}
	r, g, b, _ := c.RGBA()
	return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff}
}

// colours are what a cell is drawn with, reverse and faint applied.
func (t *Theme) colours(c Cell) (fg, bg color.RGBA) {
	fg, bg = t.resolve(c.Fg, t.Fg), t.resolve(c.Bg, t.Bg)
	if c.Reverse {
		fg, bg = bg, fg
	}
	if c.Faint {
		fg = mix(fg, bg, 0.45)
	}
	return fg, bg
}

// mix is a with the given share of b.
func mix(a, b color.RGBA, share float64) color.RGBA {
	part := func(x, y uint8) uint8 { return uint8(float64(x)*(1-share) + float64(y)*share + 0.5) }
	return color.RGBA{part(a.R, b.R), part(a.G, b.G), part(a.B, b.B), 0xff}
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
