package chart

import (
	"math"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/session"
)

func TestWindowsStayInsideAndFollowTheNewest(t *testing.T) {
	v := extent{}.zoomed(0, 100, 100, 0.5)
	if v != (extent{on: true, lo: 50, hi: 100}) {
		t.Errorf("zoomed at the right edge: %+v", v)
	}
	if from, to := v.within(0, 200); from != 150 || to != 200 {
		t.Errorf("it shows %v to %v when there is more", from, to)
	}
	v = v.panned(0, 100, -10)
	if v != (extent{on: true, lo: 0, hi: 50, held: true}) {
		t.Errorf("moved far to the left: %+v", v)
	}
	if from, to := v.within(0, 200); from != 0 || to != 50 {
		t.Errorf("a window that is held shows %v to %v", from, to)
	}
	if v = v.panned(0, 100, 10); v.held {
		t.Errorf("moved far to the right: %+v", v)
	}
	if v = v.zoomed(0, 100, 60, 8); v.on {
		t.Errorf("zoomed out of all: %+v", v)
	}
	for range 200 { // as deep as one likes, and never empty
		v = v.zoomed(0, 100, 30, 0.5)
	}
	if from, to := v.within(0, 100); !(to > from) || from > 30 || to < 30 {
		t.Errorf("zoomed in: %v to %v", from, to)
	}
}

func TestTheBestOfAllRunsIsNamed(t *testing.T) {
	group := func(name string, values ...float64) (all []*session.Curve) {
		for i, v := range values {
			c := session.NewCurve(name)
			c.Run = i + 1
			for k := range int64(3) {
				c.Add(metrics.Point{Step: &k, Value: v}, time.Time{})
			}
			all = append(all, c)
		}
		return append(all, session.NewCurve(name)) // and one without values
	}
	nan := math.NaN()
	for _, c := range []struct {
		group []*session.Curve
		want  int
	}{{group("loss", 3, 1, 2), 2}, {group("acc", 3, 1, 4), 3}, {group("acc", nan, 1, 0.5), 2}, {group("loss", 2, 2), 1}} {
		if got := BestOf(c.group).Run; got != c.want {
			t.Errorf("%s: run %d, want %d", c.group[0].Name, got, c.want)
		}
	}
}
