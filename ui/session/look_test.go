package session

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
)

// valued makes a curve of values.
func valued(name string, values ...float64) *Curve {
	c := NewCurve(name)
	for i, v := range values {
		c.Add(metrics.Point{Name: name, Step: new(int64(i)), Ordinal: int64(i), Value: v}, time.Time{})
	}
	return c
}

func TestCurvesOfFarScalesHaveAxesOfTheirOwn(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		of    [][]float64
		axes  []int
		about string
	}{
		{[][]float64{{1, 2}, {900, 800}}, []int{0, 0}, "not yet far"},
		{[][]float64{{1, 1}, {1000, 1000}}, []int{0, 1}, "by a thousand"},
		{[][]float64{{5e4, 5e4}, {2, 2}}, []int{0, 1}, "the first is at the left whichever is larger"},
		{[][]float64{{-0.001, -0.001}, {-70, -71}}, []int{0, 1}, "negative"},
		{[][]float64{{1, 1}, {30, 30}, {1000, 1000}}, []int{0, 0, 1}, "three that two axes hold"},
		{[][]float64{{1, 1}, {1e4, 1e4}, {1e8, 1e8}}, []int{0, 1, 2}, "three that they don't"},
		{[][]float64{{1, 2}, {0, 0}}, []int{0, 0}, "zero has no scale"},
		{[][]float64{{1, 2}, {}}, []int{0, 0}, "nor has nothing"},
		{[][]float64{{1, 2}, {nan, inf, 5e6}}, []int{0, 1}, "what is not finite counts for nothing"},
		{[][]float64{{1e6, 1, 1, 1, 1}, {2, 2, 2}}, []int{0, 0}, "one spike is no scale"},
	} {
		var group []*Curve
		for i, v := range c.of {
			group = append(group, valued(fmt.Sprint("loss", i), v...))
		}
		if got := ValueAxes(group); fmt.Sprint(got) != fmt.Sprint(c.axes) {
			t.Errorf("%s: %v, want %v", c.about, got, c.axes)
		}
	}
}

func TestOnlyASlabIsSmoothedByItself(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	made := func(n int, f func(x float64) float64) (out []float64) {
		for i := range n {
			out = append(out, f(float64(i)/float64(n)))
		}
		return out
	}
	for _, c := range []struct {
		name   string
		values []float64
		smooth bool
	}{
		{"noise", made(5000, func(float64) float64 { return r.NormFloat64() }), true},
		{"noise far from zero", made(5000, func(float64) float64 { return 1e6 + r.NormFloat64() }), true},
		{"tokens/s", made(5000, func(float64) float64 { return 2e4 + 300*r.NormFloat64() }), false}, // drawn from zero up
		{"a falling loss", made(5000, func(x float64) float64 { return 5*math.Exp(-5*x) + 0.05*r.NormFloat64() }), false},
		{"a few points", made(60, func(float64) float64 { return r.NormFloat64() }), false},
		{"a constant", made(5000, func(float64) float64 { return 3 }), false},
		{"a sawtooth of epochs", made(5000, func(x float64) float64 { return math.Mod(x*10, 1) }), false},
		{"nothing finite", made(5000, func(float64) float64 { return math.NaN() }), false},
	} {
		f := valued(c.name, c.values...).Light()
		if (f > 0) != c.smooth || f < 0 || f >= 1 {
			t.Errorf("%s: factor %v", c.name, f)
		}
	}
	short, long := valued("x", made(500, func(float64) float64 { return r.NormFloat64() })...), valued("x", made(200_000, func(float64) float64 { return r.NormFloat64() })...)
	if short.Light() >= long.Light() {
		t.Errorf("more points in a column need more of an average: %v of 500, %v of 200 000", short.Light(), long.Light())
	}
}

func TestWhatIsFoundOfACurveGrowsWithIt(t *testing.T) {
	c := valued("loss", 1, 1, 1)
	other := valued("val/loss", 1, 1)
	if got := ValueAxes([]*Curve{c, other}); got[0] != got[1] {
		t.Fatalf("alike: %v", got)
	}
	for i := range int64(40) {
		c.Add(metrics.Point{Name: "loss", Step: new(i + 3), Ordinal: i + 3, Value: 1e7}, time.Time{})
	}
	if got := ValueAxes([]*Curve{c, other}); got[0] == got[1] {
		t.Errorf("after growth: %v", got)
	}
}
