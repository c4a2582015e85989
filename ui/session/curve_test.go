package session

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
)

// curveOf makes a curve of points with some of step, epoch and time.
func curveOf(name string, n int, step, epoch func(i int) (float64, bool), timed bool) *Curve {
	c := NewCurve(name)
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
		c.Add(p, from)
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
		group []*Curve
		asked Axis
		want  Axis
	}{
		{[]*Curve{stepped}, AxisAuto, AxisStep},
		{[]*Curve{epochs}, AxisAuto, axisEpoch},
		{[]*Curve{stepped, epochs}, AxisAuto, AxisTime}, // ten values to an epoch: they would lie over each other
		{[]*Curve{stepped, epochs}, axisEpoch, axisEpoch},
		{[]*Curve{stepped, epochs}, AxisStep, AxisTime}, // not all have it
		{[]*Curve{bare}, AxisAuto, AxisOrder},
		{[]*Curve{bare}, AxisTime, AxisOrder},
		{[]*Curve{timed}, AxisTime, AxisTime},
		{[]*Curve{bare, timed}, AxisAuto, AxisOrder},
	} {
		if got := AxisOf(c.group, c.asked); got != c.want {
			t.Errorf("%s and %d more, asked for %s: %s, want %s", c.group[0].Name, len(c.group)-1, c.asked, got, c.want)
		}
	}
	if x := stepped.X(AxisTime, 7); x != 7 {
		t.Errorf("the 8th value came after %v s", x)
	}
	if s := epochs.By(axisEpoch); s.Len() != 5 {
		t.Errorf("%d points by epoch", s.Len())
	}
	epochs.Add(metrics.Point{Epoch: new(5.0), Value: 2, Time: time.Unix(2000, 0)}, time.Unix(1000, 0))
	if x, y := epochs.By(axisEpoch).At(5); x != 5 || y != 2 {
		t.Errorf("a new point is at %v, %v", x, y)
	}
}

func TestTheBestValueIsThatOfTheWayThatIsBetter(t *testing.T) {
	c := NewCurve("val/loss")
	for _, v := range []float64{math.NaN(), 3, 1, math.Inf(-1), 2} {
		c.Add(metrics.Point{Value: v}, time.Time{})
	}
	if i, ok := c.Best(); !ok || c.Value(i) != 1 {
		t.Errorf("the best is %v, %v", c.Value(i), ok)
	}
}

func TestAPointOfACurveTakesAtMost32Bytes(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := NewCurve("loss")
	const n = 500_000
	from := time.Unix(1000, 0)
	var step int64
	var epoch float64
	for i := range n {
		step, epoch = int64(i), float64(i)/1000
		c.Add(metrics.Point{Step: &step, Epoch: &epoch, Value: 1, Time: from.Add(time.Duration(i) * time.Millisecond)}, from)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n; got > 32 {
		t.Errorf("%.1f bytes a point", got)
	}
	runtime.KeepAlive(c)
}

func TestGroupsPutOneThingOfSeveralSplitsTogether(t *testing.T) {
	s := NewState("c")
	for _, name := range []string{"lr", "train/acc", "tokens/s", "train/loss", "val/acc", "val/loss"} {
		s.AddPoint(metrics.Point{Name: name, Value: 1})
	}
	var got []string
	for _, g := range s.Groups() {
		text := ""
		for _, c := range g {
			text += c.Name + " "
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
	st := NewState("c")
	for _, value := range []float64{4, 3, 2} {
		for i := range int64(3) {
			st.AddPoint(metrics.Point{Name: "loss", Step: new(i), Ordinal: i, Value: value})
		}
	}
	c := st.curve("loss")
	if c.N != 3 || c.Value(0) != 2 || c.steps != 3 || len(st.Curves) != 1 {
		t.Errorf("%d points, the first %v, in %d curves", c.N, c.Value(0), len(st.Curves))
	}
}

func TestWhatIsNotKnownIsAGapOfATrace(t *testing.T) {
	var tr Trace
	for _, v := range []*float64{nil, new(1.0), nil, new(2.0)} {
		tr.add(v)
	}
	if len(tr) != 3 || tr[0] != 1 || !math.IsNaN(tr[1]) || tr[2] != 2 {
		t.Errorf("%v", tr)
	}
}
