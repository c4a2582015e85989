package metrics

import (
	"fmt"
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
			for i := s.order.From + 1; i < s.n; i++ {
				if s.at(i).step < s.at(i-1).step {
					t.Fatalf("round %d: %v gives %s", round, in, steps(&s))
				}
			}
		}
	}
}

func TestABarThatRepeatsTheLastEpochTellsEachValueOnce(t *testing.T) {
	text := ""
	for epoch := range 3 {
		for n := 1; n <= 8; n++ {
			acc := ""
			if epoch > 0 || n == 8 {
				acc = fmt.Sprintf(", train_acc=0.%d00", 4+epoch+n/8)
			}
			text += fmt.Sprintf("\rEpoch %d: %d%%|███| %d/8 [00:01<00:01, 5.00it/s%s]", epoch, n*12, n, acc)
		}
		text += "\n"
	}
	if got, want := drawnOf(t, []byte(text)), "train/acc epoch 0:0.5 1:0.6 2:0.7\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWhatAScriptPrintsOfItselfIsNoPoint(t *testing.T) {
	text := "import torch\nval_loss = 0\nfor step in range(100):\n    train_loss += 0.1\n========\nstep:0/1000 val_loss:2.5 train_time:0ms\nstep:100/1000 val_loss:1.5 train_time:9ms\n"
	if got, want := drawnOf(t, []byte(text)), "val/loss step 0:2.5 100:1.5\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Where no word says what counts, the number does that goes up by the same each
// time; one that never moves is a setting, and one that only goes up a count.
func TestWhatCountsIsFoundByHowItMoves(t *testing.T) {
	for name, c := range map[string]struct {
		line func(i int) string
		want string
	}{
		"of a total": {func(i int) string { return fmt.Sprintf("(%d/4) - D: %.1f, G: %.1f", i, 1.5/float64(i), 2-1/float64(i)) }, "D step 1:1.5 2:0.8 3:0.5 4:0.4\nG step 1:1 2:1.5 3:1.7 4:1.8\n"},
		"before its word": {func(i int) string {
			return fmt.Sprintf("2024-05-01 12:30:0%d %d epoch, EER %.2f%%", i, i, 9/float64(i))
		}, "EER epoch 1:9 2:4.5 3:3 4:2.25\n"},
		"in a bracket": {func(i int) string {
			return fmt.Sprintf("[%d, %5d] loss: %.1f", 1+(i-1)/3, 100*(1+(i-1)%3), 6/float64(i))
		}, "loss step 100:6 200:3 300:2 400:1.5\n"},
		"behind a blank": {func(i int) string {
			return fmt.Sprintf("iter %d (epoch 0): ctc %.1f att %.1f cer %.2f", i, 6/float64(i), 3/float64(i), .5/float64(i))
		}, "att step 1:3 2:1.5 3:1 4:0.8\ncer step 1:0.5 2:0.25 3:0.17 4:0.12\nctc step 1:6 2:3 3:2 4:1.5\n"},
		"a setting":        {func(i int) string { return fmt.Sprintf("iter %d alpha=0.5 seen=%d", i, 64*i) }, ""},
		"a count of words": {func(i int) string { return fmt.Sprintf("merge %d/300: had %d occurrences", i, 5000-3*i) }, ""},
	} {
		text := ""
		for i := 1; i <= 4; i++ {
			text += c.line(i) + "\n"
		}
		t.Run(name, func(t *testing.T) { compareLines(t, drawnOf(t, []byte(text)), c.want) })
	}
}
