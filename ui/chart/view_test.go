package chart

import (
	"testing"
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
