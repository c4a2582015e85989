package ui

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
)

// curveOf makes a curve of points with some of step, epoch and time.
func curveOf(name string, n int, step, epoch func(i int) (float64, bool), timed bool) *curve {
	c := newCurve(name)
	from := time.Unix(1000, 0)
	for i := range n {
		p := metrics.Point{Name: name, Ordinal: int64(i), Value: 1 / float64(i+1)}
		if s, ok := step(i); ok {
			p.Step = new(int64(s))
		}
		if e, ok := epoch(i); ok {
			p.Epoch = &e
		}
		if timed {
			p.Time = from.Add(time.Duration(i) * time.Second)
		}
		c.add(p, from)
	}
	return c
}

func none(int) (float64, bool)     { return 0, false }
func tens(i int) (float64, bool)   { return float64(10 * i), true }
func whole(i int) (float64, bool)  { return float64(i), true }
func within(i int) (float64, bool) { return float64(i / 10), true }

func TestTheAxisIsThatWhichAllCurvesOfAChartHave(t *testing.T) {
	stepped, epochs := curveOf("loss", 20, tens, within, true), curveOf("val/loss", 5, none, whole, true)
	bare, timed := curveOf("a", 5, none, none, false), curveOf("b", 5, none, none, true)
	for _, c := range []struct {
		group []*curve
		asked axis
		want  axis
	}{
		{[]*curve{stepped}, axisAuto, axisStep},
		{[]*curve{epochs}, axisAuto, axisEpoch},
		{[]*curve{stepped, epochs}, axisAuto, axisTime}, // ten values to an epoch: they would lie over each other
		{[]*curve{stepped, epochs}, axisEpoch, axisEpoch},
		{[]*curve{stepped, epochs}, axisStep, axisTime}, // not all have it
		{[]*curve{bare}, axisAuto, axisOrder},
		{[]*curve{bare}, axisTime, axisOrder},
		{[]*curve{timed}, axisTime, axisTime},
		{[]*curve{bare, timed}, axisAuto, axisOrder},
	} {
		if got := axisOf(c.group, c.asked); got != c.want {
			t.Errorf("%s and %d more, asked for %s: %s, want %s", c.group[0].name, len(c.group)-1, c.asked, got, c.want)
		}
	}
	if x := stepped.x(axisTime, 7); x != 7 {
		t.Errorf("the 8th value came after %v s", x)
	}
	if s := epochs.by(axisEpoch); s.Len() != 5 {
		t.Errorf("%d points by epoch", s.Len())
	}
	epochs.add(metrics.Point{Epoch: new(5.0), Value: 2, Time: time.Unix(2000, 0)}, time.Unix(1000, 0))
	if x, y := epochs.by(axisEpoch).At(5); x != 5 || y != 2 {
		t.Errorf("a new point is at %v, %v", x, y)
	}
}

func TestTheBestValueIsThatOfTheWayThatIsBetter(t *testing.T) {
	c := newCurve("val/loss")
	for _, v := range []float64{math.NaN(), 3, 1, math.Inf(-1), 2} {
		c.add(metrics.Point{Value: v}, time.Time{})
	}
	if i, ok := c.best(); !ok || c.value(i) != 1 {
		t.Errorf("the best is %v, %v", c.value(i), ok)
	}
}

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

func TestAPointOfACurveTakesAtMost32Bytes(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := newCurve("loss")
	const n = 500_000
	from := time.Unix(1000, 0)
	var step int64
	var epoch float64
	for i := range n {
		step, epoch = int64(i), float64(i)/1000
		c.add(metrics.Point{Step: &step, Epoch: &epoch, Value: 1, Time: from.Add(time.Duration(i) * time.Millisecond)}, from)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n; got > 32 {
		t.Errorf("%.1f bytes a point", got)
	}
	runtime.KeepAlive(c)
}

func TestGroupsPutOneThingOfSeveralSplitsTogether(t *testing.T) {
	s := newState("c")
	for _, name := range []string{"lr", "train/acc", "tokens/s", "train/loss", "val/acc", "val/loss"} {
		s.addPoint(metrics.Point{Name: name, Value: 1})
	}
	var got []string
	for _, g := range s.chartGroups() {
		text := ""
		for _, c := range g {
			text += c.name + " "
		}
		got = append(got, text)
	}
	want := []string{"train/loss val/loss ", "train/acc val/acc ", "tokens/s ", "lr "}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("chart %d is of %q, want %q", i, got[i], want[i])
		}
	}
}

// A series that another source tells better comes again, from its first point.
func TestACurveThatBeginsAnewIsDrawnOnce(t *testing.T) {
	st := newState("c")
	for _, value := range []float64{4, 3, 2} {
		for i := range int64(3) {
			st.addPoint(metrics.Point{Name: "loss", Step: new(i), Ordinal: i, Value: value})
		}
	}
	c := st.curve("loss")
	if c.n != 3 || c.value(0) != 2 || c.steps != 3 || len(st.curves) != 1 {
		t.Errorf("%d points, the first %v, in %d curves", c.n, c.value(0), len(st.curves))
	}
}

func TestWhatIsNotKnownIsAGapOfATrace(t *testing.T) {
	var tr trace
	for _, v := range []*float64{nil, new(1.0), nil, new(2.0)} {
		tr.add(v)
	}
	if len(tr) != 3 || tr[0] != 1 || !math.IsNaN(tr[1]) || tr[2] != 2 {
		t.Errorf("%v", tr)
	}
}
