package plot

import "math"

// canvas is a grid of cells with dots in them: 2 by 4 in braille, 1 by 1 in
// ASCII. pens says whose curve was drawn into a cell last.
type canvas struct {
	w, h   int // cells
	pw, ph int // dots
	sx, sy int // dots per cell
	bits   []uint8
	pens   []uint8
	behind []bool // by pen: gives way where another curve is drawn
	marks  []rune // what stands in a cell instead of dots, or 0
}

func newCanvas(w, h int, ascii bool) canvas {
	c := canvas{w: w, h: h, sx: 2, sy: 4}
	if ascii {
		c.sx, c.sy = 1, 1
	}
	c.pw, c.ph = w*c.sx, h*c.sy
	c.bits, c.pens, c.marks = make([]uint8, w*h), make([]uint8, w*h), make([]rune, w*h)
	return c
}

// dotBits are the bits of a braille cell by row and column.
var dotBits = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

func (c *canvas) dot(x, y int, pen uint8) {
	if x < 0 || y < 0 || x >= c.pw || y >= c.ph {
		return
	}
	i := y/c.sy*c.w + x/c.sx
	old := c.pens[i]
	if old != pen && int(old) < len(c.behind) && c.behind[old] {
		c.bits[i], old = 0, 0 // a curve over its own noise stays a thin line
	}
	c.bits[i] |= dotBits[y%c.sy][x%c.sx]
	if old == 0 || x/c.sx%2 == 0 { // a cell has one colour: curves that share cells take turns
		c.pens[i] = pen
	}
}

// line draws from one place to another and returns the number of its dots; what
// lies outside is cut off.
func (c *canvas) line(x0, y0, x1, y1 float64, pen uint8) int {
	x0, y0, x1, y1, ok := clip(x0, y0, x1, y1, float64(c.pw)-0.51, float64(c.ph)-0.51)
	if !ok {
		return 0
	}
	n := int(math.Ceil(max(math.Abs(x1-x0), math.Abs(y1-y0))))
	if n == 0 {
		c.dot(dotAt(x0), dotAt(y0), pen)
		return 1
	}
	dx, dy := (x1-x0)/float64(n), (y1-y0)/float64(n)
	for i := range n + 1 {
		c.dot(dotAt(x0+dx*float64(i)), dotAt(y0+dy*float64(i)), pen)
	}
	return n + 1
}

// clip cuts a line to the rectangle from -0.49 to w and h (Liang and Barsky):
// a neighbour far outside the window must not cost a dot for every step there.
func clip(x0, y0, x1, y1, w, h float64) (a, b, c, d float64, ok bool) {
	const edge = -0.49
	dx, dy := x1-x0, y1-y0
	t0, t1 := 0.0, 1.0
	for _, e := range [4][2]float64{{-dx, x0 - edge}, {dx, w - x0}, {-dy, y0 - edge}, {dy, h - y0}} {
		p, q := e[0], e[1]
		if p == 0 {
			if !(q >= 0) {
				return 0, 0, 0, 0, false
			}
			continue
		}
		if r := q / p; p < 0 {
			t0 = max(t0, r)
		} else {
			t1 = min(t1, r)
		}
	}
	if !(t0 <= t1) {
		return 0, 0, 0, 0, false
	}
	return x0 + t0*dx, y0 + t0*dy, x0 + t1*dx, y0 + t1*dy, true
}
