package plot

// band fills the space between the edges of a line with every other dot: the curve
// in front stays to be seen, and so does how wide it is.
func (f *frame) band(i int, l Line) {
	if l.Low == nil || l.High == nil {
		return
	}
	top, _ := f.edges(i, l, l.High)
	_, foot := f.edges(i, l, l.Low)
	pen := uint8(min(i+1, rulePen-1))
	for x := range f.canvas.pw {
		for y := top[x]; y >= 0 && y <= foot[x]; y++ {
			if f.ASCII || (x+y)%2 == 0 || y == top[x] || y == foot[x] {
				f.canvas.dot(x, y, pen)
			}
		}
	}
}

// edges are the topmost and the lowest dot of a series in each column; −1 for none.
// It is drawn as a curve is, beside the chart.
func (f *frame) edges(i int, l Line, s *Series) (top, foot []int) {
	chart, gaps := f.canvas, f.gaps
	defer func() { f.canvas, f.gaps = chart, gaps }()
	f.canvas, f.gaps = newCanvas(f.plotW, f.plotH, f.ASCII), make([]uint8, f.plotW)
	f.curve(i, Line{Series: s, Origin: l.Origin, Axis: l.Axis})
	top, foot = make([]int, f.canvas.pw), make([]int, f.canvas.pw)
	for x := range top {
		top[x], foot[x] = -1, -1
		for y := range f.canvas.ph {
			if !f.canvas.has(x, y) {
				continue
			}
			if top[x] < 0 {
				top[x] = y
			}
			foot[x] = y
		}
	}
	return top, foot
}

// has reports whether a dot was drawn.
func (c *canvas) has(x, y int) bool {
	return c.bits[y/c.sy*c.w+x/c.sx]&dotBits[y%c.sy][x%c.sx] != 0
}
