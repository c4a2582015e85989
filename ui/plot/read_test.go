package plot

import (
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func TestTheNearestPointIsFoundWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := new(Series)
		x := 0.0
		for range rapid.IntRange(1, 600).Draw(t, "n") {
			x += rapid.SampledFrom([]float64{0, 1, 1, 2, 40, -25}).Draw(t, "dx")
			s.Add(x, 1)
		}
		want := rapid.Float64Range(-100, 1500).Draw(t, "x")
		least := math.Inf(1)
		for i := range s.Len() {
			x, _ := s.At(i)
			least = min(least, math.Abs(x-want))
		}
		i, ok := s.Near(want)
		if got, _ := s.At(i); !ok || math.Abs(got-want) != least {
			t.Fatalf("%v is %v away from %v, the nearest is %v away", got, math.Abs(got-want), want, least)
		}
	})
	if _, ok := new(Series).Near(3); ok {
		t.Error("a point of nothing")
	}
}

func TestSmoothingIsThatOfTensorBoard(t *testing.T) {
	// TensorBoard's own rule, written out: the average over what came, each
	// weighed by the factor to the power of its age.
	ys := []float64{4, 2, math.NaN(), 3, 1, 1}
	s := of(ys...)
	sm := NewSmoothed(s, 0.6)
	for i, y := range ys {
		_, got := sm.Series().At(i)
		want := math.NaN()
		if y == y {
			sum, weight, w := 0.0, 0.0, 1.0
			for j := i; j >= 0; j-- {
				if ys[j] == ys[j] {
					sum, weight, w = sum+w*ys[j], weight+w, w*0.6
				}
			}
			want = sum / weight
		}
		if math.Abs(got-want) > 1e-12 || (got == got) != (want == want) {
			t.Errorf("point %d: %v, want %v", i, got, want)
		}
	}
	s.Add(6, 9)
	if sm.Series().Len() != 7 || !sm.Of(s, 0.6) || sm.Of(s, 0.7) || (*Smoothed)(nil).Of(s, 0) {
		t.Error("it does not grow with its series, or does not know itself")
	}
}

func TestGapsAreMarkedAtTheAxis(t *testing.T) {
	s := of(1, 2, 1, math.NaN(), math.Inf(1), 2, 1, 2)
	c := Chart{Series: lines(s), NoLegend: true}
	rows := strings.Split(ansi.Strip(c.Draw(40, 10)), "\n")
	axis := rows[len(rows)-2]
	if strings.Count(axis, "×") != 2 {
		t.Errorf("the axis is %q", axis)
	}
	if low := ansi.Strip(c.Draw(40, 5)); strings.Count(low, "×") != 2 {
		t.Errorf("without an axis:\n%s", low)
	}
	c.ASCII = true
	for _, r := range c.Draw(40, 10) {
		if r > 0x7e {
			t.Fatalf("%q in an ASCII chart", r)
		}
	}
}

func TestTheCursorReadsEveryCurveAtItsNearestPoint(t *testing.T) {
	at := 4.4
	c := Chart{Series: lines(of(0, 1, 2, 3, 4, 5, 6, 7, 8), of(8, 8, 8, 8, 8, 8, 8, 8, 8)), NoLegend: true, Cursor: &at}
	out := ansi.Strip(c.Draw(60, 12))
	if strings.Count(out, "●") != 2 {
		t.Errorf("not a ring on each curve:\n%s", out)
	}
	a, ok := c.Area(60, 12)
	if !ok {
		t.Fatal("no area")
	}
	for x := a.Left; x < a.Left+a.W; x++ {
		at = a.At(x)
		for _, row := range strings.Split(ansi.Strip(c.Draw(60, 12)), "\n")[a.Top : a.Top+a.H] {
			if r := []rune(row)[x]; r == ' ' {
				t.Fatalf("column %d is not under the cursor of x %v:\n%s", x, at, ansi.Strip(c.Draw(60, 12)))
			}
		}
	}
}

func TestTheLastValuesStandAtTheEndsApart(t *testing.T) {
	c := Chart{Series: lines(of(3, 2, 1.01), of(3, 2, 1.02), of(3, 3, 3)), NoLegend: true, Ends: true}
	rows := strings.Split(ansi.Strip(c.Draw(60, 12)), "\n")
	for _, want := range []string{"1 1.01", "2 1.02", "3 3"} {
		n := 0
		for _, r := range rows {
			if strings.Contains(strings.TrimRight(r, " ")+"$", want+"$") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q stands at the end of %d rows:\n%s", want, n, strings.Join(rows, "\n"))
		}
	}
}

func TestRunsLieOverEachOtherFromTheirOwnBeginning(t *testing.T) {
	a, b := new(Series), new(Series)
	for i := range 50 {
		a.Add(float64(i), float64(i))
		b.Add(1e6+float64(i), float64(i))
	}
	one := Chart{Series: []Line{{Name: "a", Series: a}}, NoLegend: true}
	two := Chart{Series: []Line{{Name: "b", Series: b, Origin: 1e6}}, NoLegend: true}
	if one.Draw(50, 12) != two.Draw(50, 12) {
		t.Errorf("they differ:\n%s\n%s", one.Draw(50, 12), two.Draw(50, 12))
	}
	one.XMin, one.XMax, two.XMin, two.XMax = 10, 20, 10, 20
	if one.Draw(50, 12) != two.Draw(50, 12) {
		t.Errorf("zoomed they differ:\n%s\n%s", one.Draw(50, 12), two.Draw(50, 12))
	}
}

func TestTheBestPointIsMarked(t *testing.T) {
	s := of(3, 1, 2, 2)
	c := Chart{Series: []Line{{Name: "loss", Series: s, Best: &Mark{X: 1, Y: 1}}}, NoLegend: true}
	if out := ansi.Strip(c.Draw(40, 8)); strings.Count(out, "◆") != 1 {
		t.Errorf("no mark:\n%s", out)
	}
	c.XMin, c.XMax = 2, 3
	if out := ansi.Strip(c.Draw(40, 8)); strings.Contains(out, "◆") {
		t.Errorf("a mark outside of what is shown:\n%s", out)
	}
}

func TestEverySizeIsExactWithAllThatCanBeDrawn(t *testing.T) {
	train, val := losses(500)
	at, best := 120.0, &Mark{X: 480, Y: 1.3}
	train.Add(500, math.NaN())
	c := &Chart{Title: "loss", XLabel: "step", Cursor: &at, Ends: true, Seconds: true,
		Series: []Line{{Name: "raw", Series: train, Behind: true}, {Name: "loss", Series: NewSmoothed(train, 0.9).Series(), Best: best},
			{Name: "val", Series: val, Origin: 20}}}
	for w := 1; w <= 70; w++ {
		for h := 1; h <= 20; h++ {
			sizes(t, c.Draw(w, h), w, h)
			if a, ok := c.Area(w, h); ok && (a.W < 1 || a.H < 1 || a.Left+a.W > w || a.Top+a.H > h) {
				t.Fatalf("%dx%d: %+v", w, h, a)
			}
		}
	}
	if *look {
		t.Log("\n" + ansi.Strip(c.Draw(100, 20)))
	}
}
