package plot

import (
	"flag"
	"math"
	"runtime"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

var look = flag.Bool("look", false, "print charts, to look at")

// sizes fails unless s is exactly h rows of exactly w cells.
func sizes(t interface{ Fatalf(string, ...any) }, s string, w, h int) {
	rows := strings.Split(s, "\n")
	if len(rows) != h {
		t.Fatalf("%d rows, want %d:\n%s", len(rows), h, s)
	}
	for _, r := range rows {
		if got := ansi.StringWidth(r); got != w {
			t.Fatalf("a row of %d cells, want %d: %q", got, w, r)
		}
	}
}

func lines(series ...*Series) []Line {
	out := make([]Line, len(series))
	for i, s := range series {
		out[i] = Line{Name: []string{"train", "val", "test"}[i%3], Series: s, Style: lipgloss.NewStyle().Bold(i == 0)}
	}
	return out
}

func of(ys ...float64) *Series {
	s := new(Series)
	for i, y := range ys {
		s.Add(float64(i), y)
	}
	return s
}

func losses(n int) (train, val *Series) {
	train, val = new(Series), new(Series)
	for i := range n {
		x := float64(i)
		train.Add(x, 4.5*math.Exp(-x/600)+1.2+0.2*math.Sin(x*1.7)*math.Exp(-x/2000))
		if i%200 == 0 {
			val.Add(x, 4.6*math.Exp(-x/650)+1.4)
		}
	}
	return train, val
}

// dots are the plot's dots as rows of 0 and 1.
func dots(chart string) (rows []string) {
	for row := range strings.SplitSeq(ansi.Strip(chart), "\n") {
		for y := range 4 {
			var b strings.Builder
			for _, r := range row {
				for x := range 2 {
					if r >= 0x2800 && r <= 0x28ff && byte(r-0x2800)&dotBits[y][x] != 0 {
						b.WriteByte('1')
					} else {
						b.WriteByte('0')
					}
				}
			}
			rows = append(rows, b.String())
		}
	}
	return rows
}

func TestAChartLooksAsItShould(t *testing.T) {
	s := of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	c := Chart{Title: "acc", XLabel: "epoch", Series: lines(s)}
	want := strings.TrimPrefix(`
acc  ━ train 10 (min 0, max 10)         
10┤                                ⣀⡠⠔⠒⠉
  │                          ⢀⣀⠤⠒⠊⠉     
  │                     ⣀⡠⠴⠒⠉⠁          
 5┤                ⣀⡠⠴⠊⠉                
  │          ⢀⣀⠤⠖⠊⠉                     
  │     ⣀⡠⠤⠒⠉⠁                          
 0┤⣀⠤⠔⠊⠉                                
  └┬─────────────────┬─────────────────┬
   0                 5         10  epoch`, "\n")
	got := ansi.Strip(c.Draw(40, 10))
	if *look {
		t.Log("\n" + got)
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	c.ASCII = true
	for _, r := range c.Draw(40, 10) {
		if r > 0x7e {
			t.Fatalf("%q in an ASCII chart", r)
		}
	}
}

func TestASpikeNeverVanishes(t *testing.T) {
	for at, n := range map[int]int{0: 10_000, 1: 10_000, 4095: 10_000, 4096: 10_000, 9998: 10_000, 9999: 10_000, 123_457: 1_000_000} {
		s := new(Series)
		for i := range n {
			y := 0.0
			if i == at {
				y = 100
			}
			s.Add(float64(i), y)
		}
		c := Chart{Series: lines(s), NoLegend: true}
		rows := dots(c.Draw(80, 20))
		if !strings.Contains(rows[0], "1") {
			t.Errorf("the spike at point %d is not at the top:\n%s", at, c.Draw(80, 20))
		}
	}
}

// TestThePyramidShowsWhatThePointsShow draws with and without the pyramid.
func TestThePyramidShowsWhatThePointsShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := new(Series)
		var ps []point
		x := 0.0
		for range rapid.IntRange(1, 400).Draw(t, "n") {
			x += rapid.SampledFrom([]float64{0, 1, 1, 1, 2, 50, -30}).Draw(t, "dx")
			y := rapid.SampledFrom([]float64{1, 2, 3, -1, 0, 10, math.NaN(), math.Inf(1)}).Draw(t, "y")
			s.Add(x, y)
			ps = append(ps, point{x, y})
		}
		lo := rapid.Float64Range(-50, 500).Draw(t, "lo")
		hi := lo + rapid.Float64Range(0.1, 500).Draw(t, "span")
		want := emptyNode
		for _, p := range ps {
			if p.x >= lo && p.x <= hi {
				if !finite(p.y) {
					p.y = math.NaN()
				}
				want.add(p)
			}
		}
		if got := s.within(lo, hi); got != want {
			t.Fatalf("within %v to %v: %+v, want %+v", lo, hi, got, want)
		}
		c := Chart{Series: lines(s), XMin: lo, XMax: hi, NoLegend: true}
		f, g := c.frame(40, 10), c.frame(40, 10)
		if f == nil {
			return
		}
		g.canvas = newCanvas(g.plotW, g.plotH, false)
		for i, p := range ps {
			if i > 0 {
				k := stroke{frame: g, pen: 1, top: 1, budget: joinBudget}
				k.join(s.at(i-1), s.at(i))
			}
			if finite(p.y) && p.x >= lo && p.x <= hi {
				g.canvas.line(g.px(p.x), g.py(p.y, 0), g.px(p.x), g.py(p.y, 0), 1)
			}
		}
		for i := range g.canvas.bits {
			if missing := g.canvas.bits[i] &^ f.canvas.bits[i]; missing != 0 {
				t.Fatalf("dots %b of cell %d are missing", missing, i)
			}
		}
	})
}

func TestGapsAreCountedAndNotBridged(t *testing.T) {
	s := of(1, 1, math.NaN(), math.Inf(1), 1, 1)
	s.Add(math.NaN(), 5)
	if s.Gaps() != 3 || s.Len() != 6 {
		t.Errorf("%d gaps, %d points", s.Gaps(), s.Len())
	}
	c := Chart{Series: lines(s)}
	out := c.Draw(61, 10)
	if !strings.Contains(out, "3 not finite") {
		t.Errorf("the legend is silent on gaps:\n%s", out)
	}
	c.NoLegend = true
	rows := dots(c.Draw(61, 10))
	curve := ""
	for _, r := range rows {
		if strings.Contains(r, "1") {
			curve = strings.Trim(r, "0")
		}
	}
	if !strings.Contains(curve, "0000000000") {
		t.Errorf("the gap is bridged: %s", curve)
	}
	if _, y, ok := s.Last(); !ok || y != 1 {
		t.Errorf("last is %v, %v", y, ok)
	}
}

func TestTheLegendIsAsLongAsFits(t *testing.T) {
	c := Chart{Title: "loss", Series: lines(of(4, 1, 2), of(5, 3))}
	for w, want := range map[int]string{
		70: "loss  1 train 2 (min 1, max 4)  2 val 3 (min 3, max 5)",
		45: "loss  1 train 2 (1…4)  2 val 3 (3…5)",
		30: "loss  1 train 2  2 val 3",
		12: "loss  1 tra…",
	} {
		got, _, _ := strings.Cut(ansi.Strip(c.Draw(w, 5)), "\n")
		if strings.TrimRight(got, " ") != want {
			t.Errorf("%d cells: %q, want %q", w, got, want)
		}
	}
}

func TestNothingToDrawIsSaid(t *testing.T) {
	for want, c := range map[string]*Chart{
		"no points yet":                 {},
		"waiting for step 1":            {Empty: "waiting for step 1", Series: lines(new(Series))},
		"2 values came, none is finite": {Series: lines(of(math.NaN(), math.Inf(-1)))},
		"no value above zero":           {LogY: true, Series: lines(of(0, -1))},
		"nothing in this part":          {XMin: 50, XMax: 60, Series: lines(of(1, 2))},
	} {
		out := c.Draw(40, 5)
		sizes(t, out, 40, 5)
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestEverySizeIsExact(t *testing.T) {
	train, val := losses(500)
	charts := map[string]*Chart{
		"empty":   {Title: "loss", Empty: "nothing 中文 yet"},
		"one":     {Title: "loss", XLabel: "step", Series: lines(of(1))},
		"two":     {Title: "loss", XLabel: "step", Series: lines(train, val)},
		"log":     {LogY: true, Series: lines(train, val)},
		"ascii":   {Title: "loss", ASCII: true, Series: lines(train, val)},
		"zoomed":  {XMin: 100, XMax: 101, Series: lines(train, val)},
		"hostile": {Title: "a\nb\x1b[2J", XLabel: "\n", Series: []Line{{Name: "中\n文\x1b]0;x\x07", Series: train}}, FormatX: func(float64) string { return "中\n" }},
		"huge":    {Series: lines(of(-math.MaxFloat64, math.MaxFloat64, 0, 5e-324))},
		"tiny":    {Series: lines(of(5e-324, 1e-323))},
		"level":   {Series: lines(of(7, 7, 7))},
		"far":     {Series: lines(of(1e15, 1e15+1))},
		"fixed":   {YMin: 0, YMax: 100, Series: lines(of(-50, 500))},
	}
	for name, c := range charts {
		for w := 1; w <= 60; w++ {
			for h := 1; h <= 30; h++ {
				out := c.Draw(w, h)
				sizes(t, out, w, h)
				if t.Failed() {
					t.Fatalf("%s at %dx%d", name, w, h)
				}
			}
		}
		if c.Draw(0, 5) != "" || c.Draw(5, -1) != "" {
			t.Errorf("%s: something in no room", name)
		}
	}
}

func TestAnyValuesAreDrawn(t *testing.T) {
	value := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-10, 10), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -1e308, 5e-324}))
	rapid.Check(t, func(t *rapid.T) {
		s, u := new(Series), new(Series)
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			s.Add(value.Draw(t, "x"), value.Draw(t, "y"))
			u.Add(float64(u.Len()), value.Draw(t, "z"))
		}
		c := Chart{Title: "t", Series: lines(s, u), LogY: rapid.Bool().Draw(t, "log"), ASCII: rapid.Bool().Draw(t, "ascii"),
			XMin: value.Draw(t, "xmin"), XMax: value.Draw(t, "xmax"), YMin: value.Draw(t, "ymin"), YMax: value.Draw(t, "ymax")}
		w, h := rapid.IntRange(1, 60).Draw(t, "w"), rapid.IntRange(1, 30).Draw(t, "h")
		sizes(t, c.Draw(w, h), w, h)
	})
}

func TestAPointTakesAtMost32Bytes(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := new(Series)
	const n = 1_000_000
	for i := range n {
		s.Add(float64(i), 1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := float64(after.HeapAlloc-before.HeapAlloc) / n; got > 32 {
		t.Errorf("%.1f bytes a point", got)
	}
	runtime.KeepAlive(s)
}

func million(x func(int) float64) *Series {
	s := new(Series)
	for i := range 1_000_000 {
		s.Add(x(i), math.Sin(float64(i)/1e5)+math.Sin(float64(i)*12.9898)*0.3)
	}
	return s
}

func BenchmarkAdd(b *testing.B) {
	s := new(Series)
	for i := range b.N {
		s.Add(float64(i), float64(i%1000))
	}
}

func BenchmarkDraw(b *testing.B) {
	train, val := losses(3000)
	restarts := million(func(i int) float64 { return float64(i % 200_000) })
	random := million(func(i int) float64 { return float64(i * 7919 % 1_000_003) })
	ordered := million(func(i int) float64 { return float64(i) })
	for name, c := range map[string]Chart{
		"3000":           {Series: lines(train, val)},
		"million":        {Series: lines(ordered)},
		"million twice":  {Series: lines(ordered, ordered)},
		"million zoomed": {Series: lines(ordered), XMin: 500_000, XMax: 600_000},
		"restarted":      {Series: lines(restarts)},
		"random":         {Series: lines(random)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c.Draw(160, 48)
			}
		})
	}
}
