package follow

import (
	"math"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
)

// What is left is told by what this run was seen to do.
func TestTheTimeLeftIsToldByThePaceOfTheRun(t *testing.T) {
	type said struct {
		at   float64 // seconds after the launch
		line string
		left float64 // seconds, then
	}
	for name, c := range map[string]struct {
		late bool // nobody watched when it began
		said []said
	}{
		"a slow beginning is no step": {said: []said{
			{30, "epoch 1/1 step 1/101 loss 4.1", 0},
			{31, "epoch 1/1 step 11/101 loss 3.9", 9},
			{35, "epoch 1/1 step 51/101 loss 3.1", 5},
			{45, "epoch 1/1 step 101/101 loss 2.1", 0},
		}},
		"resumed": {said: []said{
			{20, "step 5000/10000 loss 2.0", 0},
			{30, "step 5100/10000 loss 2.0", 490},
		}},
		"not told in the first second": {said: []said{
			{2, "step 1/100 loss 4.1", 0},
			{2.5, "step 2/100 loss 4.1", 0},
			{4, "step 3/100 loss 4.0", 97},
		}},
		"back to a checkpoint": {said: []said{
			{10, "step 500/1000 loss 2.0", 0},
			{20, "step 600/1000 loss 1.9", 40},
			{50, "step 400/1000 loss 2.1", 0},
			{60, "step 500/1000 loss 1.9", 50},
		}},
		"whole epochs": {said: []said{
			{60, "epoch 1/3 loss 2.0", 120},
			{120, "epoch 2/3 loss 1.9", 60},
		}},
		"resumed by whole epochs": {said: []said{
			{60, "epoch 50/100 loss 2.0", 0},
			{120, "epoch 51/100 loss 1.9", 49 * 60},
		}},
		"watched late": {late: true, said: []said{
			{100, "step 1/1000 loss 4.0\nstep 2/1000 loss 4.0\nstep 501/1000 loss 2.0", 99.8},
			{150, "step 751/1000 loss 1.0", 49.8},
		}},
		"resumed and watched late": {late: true, said: []said{
			{100, "step 500/1000 loss 2.0\nstep 600/1000 loss 2.0", 400},
		}},
		"it never said how long it will be": {said: []said{
			{10, "step 50 loss 2.0", 0},
			{20, "step 60 loss 2.0", 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			start := now()
			w := &Watch{reader: metrics.NewReader(nil), late: c.late}
			w.run.StartedAt = start
			for _, s := range c.said {
				at := start.Add(time.Duration(s.at * float64(time.Second)))
				w.reader.Feed([]byte(s.line+"\n"), at)
				if got := w.left(w.reader.Progress(), at); math.Abs(got-s.left) > 1e-6 {
					t.Errorf("%q after %v s: %v s left, want %v", s.line, s.at, got, s.left)
				}
			}
		})
	}
}

// Another dlwb that reads the log again knows no times of its lines; the pace
// that was stored does.
func TestThePaceOutlivesTheWatch(t *testing.T) {
	start := now()
	w := &Watch{reader: metrics.NewReader(nil)}
	w.run.StartedAt = start
	first := "step 0/100 loss 4.0\n"
	w.reader.Feed([]byte(first), start)
	w.left(w.reader.Progress(), start.Add(40*time.Second))

	again := &Watch{reader: metrics.NewReader(nil), late: true, run: Run{Pace: w.run.Pace}}
	again.run.StartedAt = start
	again.reader.Feed([]byte(first+"step 50/100 loss 2.0\n"), start)
	if got := again.left(again.reader.Progress(), start.Add(50*time.Second)); math.Abs(got-10) > 1e-6 {
		t.Errorf("%v s left, want 10", got)
	}
}
