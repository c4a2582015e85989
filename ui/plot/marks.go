package plot

import (
	"math"
	"sort"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dlwb/dlwb/ui/scale"
)

// rulePen and its neighbours draw what is no curve.
const rulePen = 255

// number writes each curve's number onto it where more than one is drawn:
// colour must not be all that tells them apart.
func (f *frame) number() {
	numbers := f.numbers()
	n := len(numbers)
	if f.ASCII || n < 2 || n > 9 || f.plotW < 24 || f.plotH < 3 {
		return
	}
	for k, i := range numbers {
		f.mark(uint8(i+1), '1'+rune(k), f.plotW*(2*k+1)/(2*n))
	}
}

// mark puts the number of a curve near column x, where the curve is flat: a
// number may not hide a spike.
func (f *frame) mark(pen uint8, number rune, x int) {
	for d := range f.plotW {
		for _, at := range [2]int{x + d, x - d} {
			if at < 0 || at >= f.plotW {
				continue
			}
			if row, rows := f.canvas.column(at, pen); rows == 1 {
				f.canvas.marks[row*f.plotW+at] = number
				return
			}
		}
	}
}

// column is the topmost row that a curve has in a column, and in how many rows
// it is there.
func (c *canvas) column(x int, pen uint8) (row, rows int) {
	for y := c.h - 1; y >= 0; y-- {
		if c.pens[y*c.w+x] == pen {
			row = y
			rows++
		}
	}
	return row, rows
}

// signs puts a diamond on each curve's best point, and crosses below values
// that are not finite.
func (f *frame) signs() {
	for i, l := range f.Series {
		if b := l.Best; b != nil {
			f.sign(i, b.X-l.Origin, b.Y, f.rune('◆', 'B'))
		}
	}
	if f.xAxis == 2 {
		return // the crosses stand on the axis
	}
	foot := (f.plotH - 1) * f.plotW
	for x, g := range f.gaps {
		if g > 0 && f.canvas.bits[foot+x] == 0 && f.canvas.marks[foot+x] == 0 {
			f.canvas.marks[foot+x], f.canvas.pens[foot+x] = f.rune('×', 'x'), g
		}
	}
}

// sign sets a sign into the cell of a point, if that is in the plot.
func (f *frame) sign(i int, x, y float64, sign rune) {
	if x < f.x0 || x > f.x1 || y != y || f.LogY && y <= 0 {
		return
	}
	px, py := dotAt(f.px(x)), dotAt(f.py(y, f.Series[i].Axis))
	if px < 0 || py < 0 || px >= f.canvas.pw || py >= f.canvas.ph {
		return
	}
	at := py/f.canvas.sy*f.plotW + px/f.canvas.sx
	f.canvas.marks[at], f.canvas.pens[at] = sign, uint8(min(i+1, rulePen-1))
}

// rule draws the line at the cursor, and a ring on each curve where it is read.
func (f *frame) rule() {
	if f.Cursor == nil || *f.Cursor < f.x0 || *f.Cursor > f.x1 {
		return
	}
	x := min(max(dotAt(f.px(*f.Cursor)), 0), f.canvas.pw-1) / f.canvas.sx
	for y := range f.plotH {
		if at := y*f.plotW + x; f.canvas.bits[at] == 0 && f.canvas.marks[at] == 0 {
			f.canvas.marks[at], f.canvas.pens[at] = f.rune('│', '|'), rulePen
		}
	}
	for i, l := range f.Series {
		if l.Series == nil || l.Behind {
			continue
		}
		if at, ok := l.Series.Near(*f.Cursor + l.Origin); ok {
			p := l.Series.at(at)
			f.sign(i, p.x-l.Origin, p.y, f.rune('●', 'O'))
		}
	}
}

func (f *frame) rune(unicode, ascii rune) rune {
	if f.ASCII {
		return ascii
	}
	return unicode
}

// end is a curve's value where it leaves the plot at the right.
type end struct {
	line int
	text string
	row  int
}

// labelEnds makes room for the values at the right ends, where there is some.
func (f *frame) labelEnds() {
	if !f.Ends || f.w < 32 || f.plotH < 3 || f.rTicks != nil {
		return
	}
	numbers, width := f.numbers(), 0
	for k, i := range numbers {
		l := f.Series[i]
		y, ok := f.lastIn(l)
		if !ok {
			continue
		}
		text := f.value(y)
		if v, ok := f.lastIn(Line{Series: l.Values, Origin: l.Origin}); ok {
			text = f.value(v)
		}
		if n := len(numbers); n > 1 && n <= 9 {
			text = string('1'+rune(k)) + " " + text
		}
		f.ends = append(f.ends, end{line: i, text: text, row: f.rowOf(y, l.Axis)})
		width = max(width, lipgloss.Width(text))
	}
	if width == 0 || (width+1)*4 > f.w || len(f.ends) > f.plotH {
		f.ends = nil
		return
	}
	f.right = width + 1
	f.apart()
}

// value is a value as the ends and read-outs write it.
func (f *frame) value(y float64) string {
	if f.FormatY != nil {
		return oneLine(f.FormatY(y))
	}
	return scale.Short(y)
}

// lastIn is a line's last finite value that is shown.
func (f *frame) lastIn(l Line) (y float64, ok bool) {
	if l.Series == nil {
		return 0, false
	}
	if x, y, some := l.Series.Last(); some && x-l.Origin <= f.x1 {
		return y, x-l.Origin >= f.x0 && !(f.LogY && y <= 0)
	}
	i, ok := l.Series.Near(f.x1 + l.Origin)
	if !ok {
		return 0, false
	}
	p := l.Series.at(i)
	return p.y, p.y == p.y && p.x-l.Origin >= f.x0 && !(f.LogY && p.y <= 0)
}

// rowOf is the row of a value before there is a canvas.
func (f *frame) rowOf(y float64, axis int) int {
	if f.LogY {
		y = math.Log10(y)
	}
	v := f.values[axis]
	row := share(v.hi-y, v.hi-v.lo) * float64(f.plotH)
	return min(max(int(row), 0), f.plotH-1)
}

// apart moves values that would stand in one row away from each other.
func (f *frame) apart() {
	sort.SliceStable(f.ends, func(i, j int) bool { return f.ends[i].row < f.ends[j].row })
	for i := 1; i < len(f.ends); i++ {
		f.ends[i].row = max(f.ends[i].row, f.ends[i-1].row+1)
	}
	for i, least := len(f.ends)-1, f.plotH-1; i >= 0; i, least = i-1, least-1 {
		f.ends[i].row = min(f.ends[i].row, least)
		least = min(least, f.ends[i].row)
	}
}

// endsByRow writes the cells right of the plot.
func (f *frame) endsByRow(open [][2]string) []string {
	out := make([]string, f.plotH)
	if f.right == 0 {
		return out
	}
	for y := range out {
		out[y] = strings.Repeat(" ", f.right)
	}
	for _, e := range f.ends {
		pad := strings.Repeat(" ", f.right-1-lipgloss.Width(e.text))
		out[e.row] = " " + open[e.line+1][0] + e.text + open[e.line+1][1] + pad
	}
	return out
}
