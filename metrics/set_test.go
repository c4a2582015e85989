package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
)

func stepped(name string, step int64, value float64) Point {
	return Point{Name: name, Step: &step, Value: value, X: AxisStep}
}

func TestAResumedRunReplacesItsPointsAndANewOneDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		in   []int64
		want string
	}{
		"resumed":               {[]int64{0, 10, 20, 30, 15, 25}, "0 10 15 25"},
		"resumed at a step":     {[]int64{0, 10, 20, 30, 10, 20, 30, 40}, "0 10 20 30 40"},
		"restarted":             {[]int64{0, 10, 20, 0, 10}, "0 10 20 0 10"},
		"restarted and resumed": {[]int64{0, 10, 20, 0, 10, 20, 30, 15, 20}, "0 10 20 0 10 15 20"},
		"one late":              {[]int64{0, 10, 30, 40, 20, 50}, "0 10 20 30 40 50"},
		"one late at the end":   {[]int64{0, 10, 30, 40, 20}, "0 10 20 30 40"},
		"one again":             {[]int64{0, 10, 20, 30, 20, 40}, "0 10 20 30 40"},
		"several late":          {[]int64{0, 10, 40, 30, 50, 20, 60}, "0 10 20 30 40 50 60"},
	} {
		var s Series
		for _, step := range c.in {
			s.Add(stepped("", step, 0))
		}
		if got := steps(&s); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestEpochsThatComeAgainReplaceThoseTheyRepeat(t *testing.T) {
	var s Series
	for _, epoch := range []float64{1, 2, 3, 4, 2.5, 3.5, 4.5} {
		s.Add(Point{Epoch: &epoch, X: AxisEpoch})
	}
	if got := steps(&s); got != "1 2 2.5 3.5 4.5" {
		t.Errorf("got %s", got)
	}
}

// A short series beside long ones keeps all of its points, and of a long one
// the ends and the extremes are what they were.
func TestThinningKeepsWhatCounts(t *testing.T) {
	var s Set
	r := rand.New(rand.NewPCG(1, 2))
	long := []string{"loss", "lr"}
	type ends struct{ first, last, least, most float64 }
	want := map[string]*ends{}
	add := func(name string, step int64, v float64) {
		e := want[name]
		if e == nil {
			e = &ends{v, v, v, v}
			want[name] = e
		}
		e.last, e.least, e.most = v, math.Min(e.least, v), math.Max(e.most, v)
		s.Add(stepped(name, step, v))
	}
	for i := range int64(2 * mostPoints) {
		add(long[i%2], i, r.NormFloat64())
		if i%(mostPoints/15) == 7 {
			add("val/loss", i, r.Float64())
		}
	}
	total := 0
	for _, one := range s.Series {
		total += one.Len()
		got := ends{one.at(0).value, one.at(one.n - 1).value, math.Inf(1), math.Inf(-1)}
		for i := range one.n {
			got.least, got.most = math.Min(got.least, one.at(i).value), math.Max(got.most, one.at(i).value)
			if i > 0 && one.at(i).step <= one.at(i-1).step {
				t.Fatalf("%s: step %d behind step %d", one.Name, one.at(i).step, one.at(i-1).step)
			}
		}
		if got != *want[one.Name] {
			t.Errorf("%s: first, last, least, most are %v, want %v", one.Name, got, *want[one.Name])
		}
	}
	if v := s.Series[2]; v.Len() < 30 || v.Every() != 1 {
		t.Errorf("%s has %d points, one of %d", v.Name, v.Len(), v.Every())
	}
	if total > mostPoints || total < mostPoints/4 {
		t.Errorf("%d points are kept", total)
	}
}

func TestPointsWithoutAPlaceAreNumberedThroughAlsoWhenTheyAreThinned(t *testing.T) {
	var s Set
	for i := range mostPoints + 2000 {
		s.Add(Point{Name: "reward", Value: float64(i % 100)})
	}
	one := s.Series[0]
	if x := one.Point(one.n-1, AxisNone)[0]; one.Every() != 2 || x != mostPoints+1999 {
		t.Errorf("one of %d, and the last has x = %v", one.Every(), x)
	}
}

// Whatever comes in whatever order, a segment rises.
func TestASeriesRises(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 200 {
		var s Series
		var in []int64
		for at := int64(100); len(in) < 60; at += 10 {
			step := at
			if r.IntN(6) == 0 {
				step = 101 + r.Int64N(at)
			}
			if r.IntN(20) == 0 {
				at = 110 + r.Int64N(at-100+1)
			}
			in = append(in, step)
			s.Add(stepped("", step, 0))
			for i := s.from + 1; i < s.n; i++ {
				if s.at(i).step < s.at(i-1).step {
					t.Fatalf("round %d: %v gives %s", round, in, steps(&s))
				}
			}
		}
	}
}
