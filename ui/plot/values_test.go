package plot

import (
	"math"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
)

// wave is n points between two values, which begin at a phase.
func wave(n int, lo, hi, phase float64) *Series {
	s := &Series{}
	for i := range n {
		s.Add(float64(i), lo+(hi-lo)*(0.5+0.5*math.Sin(float64(i)/9+phase)))
	}
	return s
}

// rowsOf are the rows in which a pen drew.
func rowsOf(f *frame, pen uint8) (n int) {
	for y := range f.plotH {
		for x := range f.plotW {
			if i := y*f.plotW + x; f.canvas.pens[i] == pen && f.canvas.bits[i] != 0 {
				n++
				break
			}
		}
	}
	return n
}

func TestNoCurveIsSquashedByAnotherScale(t *testing.T) {
	for _, size := range [][2]int{{80, 14}, {46, 8}, {200, 30}, {30, 6}} {
		for _, n := range []int{2, 3, 5} {
			c := Chart{NoLegend: true, Ends: true}
			for i := range n {
				m := math.Pow(1e4, float64(i))
				c.Series = append(c.Series, Line{Name: "x", Series: wave(200, 0.2*m, 0.9*m, float64(i)), Axis: i})
			}
			f := c.frame(size[0], size[1])
			for i := range n {
				if got := rowsOf(f, uint8(i+1)); got < f.plotH*3/4 {
					t.Errorf("%d curves at %v: curve %d is in %d of %d rows", n, size, i+1, got, f.plotH)
				}
			}
			for y, row := range strings.Split(c.Draw(size[0], size[1]), "\n") {
				if w := lipgloss.Width(row); w != size[0] {
					t.Errorf("%d curves at %v: row %d is %d wide", n, size, y, w)
				}
			}
		}
	}
}

func TestTheSecondAxisHasItsNumbersAtTheRight(t *testing.T) {
	c := Chart{NoLegend: true, Ends: true, Series: []Line{{Series: wave(100, 0.1, 0.9, 0)}, {Series: wave(100, 20_000, 60_000, 0), Axis: 1}}}
	got := c.Draw(80, 12)
	for _, want := range []string{"0.6┤", "├40k"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if c.ASCII = true; !strings.Contains(c.Draw(80, 12), "+40k") {
		t.Errorf("ASCII:\n%s", c.Draw(80, 12))
	}
	if a, ok := c.Area(80, 12); !ok || a.Left+a.W >= 80 {
		t.Errorf("the plot lies at %+v", a)
	}
}

func TestOneAxisMayHaveNothingInView(t *testing.T) {
	early, late := &Series{}, &Series{}
	for i := range 50 {
		early.Add(float64(i), 1)
		late.Add(float64(i+1000), 1e6)
	}
	c := Chart{XMin: 1000, XMax: 1050, Series: []Line{{Series: early}, {Series: late, Axis: 1}}, NoLegend: true}
	if got := c.Draw(60, 8); strings.Contains(got, "nothing") || !strings.ContainsFunc(got, func(r rune) bool { return r > 0x2800 && r < 0x2900 }) {
		t.Errorf("zoomed to where one curve is:\n%s", got)
	}
}

func TestABandLiesBehindItsCurve(t *testing.T) {
	lo, mid, hi := &Series{}, &Series{}, &Series{}
	for i := range 40 {
		y := 1.0
		if i >= 20 {
			y = 5
		}
		lo.Add(float64(i), 10-y)
		mid.Add(float64(i), 10)
		hi.Add(float64(i), 10+y)
	}
	for _, ascii := range []bool{false, true} {
		c := Chart{NoLegend: true, ASCII: ascii, Series: []Line{{Behind: true, Low: lo, High: hi}, {Name: "loss", Series: mid}}}
		f := c.frame(60, 16)
		if band, curve := rowsOf(f, 1), rowsOf(f, 2); band < f.plotH-2 || curve > 2 {
			t.Errorf("ascii %v: the band is in %d rows of %d, the curve in %d\n%s", ascii, band, f.plotH, curve, c.Draw(60, 16))
		}
		left, right := 0, 0
		for y := range f.plotH {
			for x, n := range map[int]*int{f.plotW / 4: &left, f.plotW * 3 / 4: &right} {
				if f.canvas.bits[y*f.plotW+x] != 0 {
					*n++
				}
			}
		}
		if left*3 > right {
			t.Errorf("ascii %v: %d rows high where the edges are near, %d where they are far", ascii, left, right)
		}
	}
}

func TestTheEndTellsTheValueAndNotItsAverage(t *testing.T) {
	raw := wave(100, 0, 1, 0)
	raw.Add(100, 0.777)
	c := Chart{NoLegend: true, Ends: true, Series: []Line{{Series: NewSmoothed(raw, 0.9).Series(), Values: raw}}}
	if got := c.Draw(60, 10); !strings.Contains(got, "0.777") {
		t.Errorf("no 0.777 in\n%s", got)
	}
}
