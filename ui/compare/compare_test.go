package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/history"
)

// recorder answers for runs of a few points.
type recorder struct {
	names  []string
	points int
	asked  []string // series, in the order in which they were asked for
}

func (r *recorder) Compare(runs []string) (history.Comparison, error) {
	return factsOfRuns(len(runs), r.names...), nil
}

func (r *recorder) Overlays(runs, names []string) ([]history.Overlay, error) {
	r.asked = append(r.asked, names...)
	var all []history.Overlay
	for _, name := range names {
		o := history.Overlay{Name: name}
		for k, run := range runs {
			line := history.OverlayLine{Run: run}
			for i := range int64(r.points) {
				line.Points = append(line.Points, metrics.Point{Name: name, Step: &i, Ordinal: i, Time: day(k).Add(time.Duration(i) * time.Second),
					Value: 4/(1+float64(i)/1e4) + float64(k)/9 + float64(i%97)/300})
			}
			o.Lines = append(o.Lines, line)
		}
		all = append(all, o)
	}
	return all, nil
}

func day(k int) time.Time { return time.Date(2026, 3, 1+k, 0, 0, 0, 0, time.UTC) }

// factsOfRuns is a comparison of runs that tell series.
func factsOfRuns(runs int, names ...string) history.Comparison {
	var c history.Comparison
	for k := range runs {
		c.Runs = append(c.Runs, history.ComparedRun{ID: fmt.Sprintf("run-%d", k), Started: day(k)})
	}
	for _, name := range names {
		m := history.ComparedMetric{Name: name, Goal: "min", Winner: -1}
		for range runs {
			m.Last, m.Best = append(m.Last, &metrics.Point{Value: 1}), append(m.Best, &metrics.Point{Value: 1})
		}
		c.Metrics = append(c.Metrics, m)
	}
	for i := range 40 {
		c.Differences = append(c.Differences, history.Difference{Group: "package", Key: fmt.Sprintf("p%d", i), Values: make([]string, runs)})
	}
	return c
}

// comparisonOf are runs that were compared; all that it asks for is answered at
// once.
func comparisonOf(runs, points int, names ...string) (*Comparison, *recorder) {
	r := &recorder{points: points, names: names}
	v, cmd := anew(r, runs)
	for cmd != nil {
		switch msg := cmd().(type) {
		case Compared:
			cmd = v.TakeFacts(msg, day(9))
		case Overlaid:
			cmd = v.TakeOverlay(msg)
		}
	}
	return v, r
}

var sessions int

// anew compares runs in a session of their own.
func anew(r *recorder, runs int) (*Comparison, tea.Cmd) {
	sessions++
	ids := make([]string, runs)
	for k := range ids {
		ids[k] = fmt.Sprintf("run-%d", k)
	}
	v, cmd := New(r, &chart.View{Of: session.New(sessions, "", day(9))}, ids, day(9))
	return &v, cmd
}

// drawn is what stands on the screen.
func drawn(v *Comparison) string {
	styles := text.NewStyles(true)
	return ansi.Strip(strings.Join(Page{text.Look{Styles: &styles, Now: day(9)}, v}.Draw(196, 56), "\n"))
}

func TestOverlaysAreReadSeriesBySeriesTheLossFirst(t *testing.T) {
	v, r := comparisonOf(2, 10, "lr", "images/s", "val/loss")
	if want := []string{"val/loss", "images/s", "lr"}; !slices.Equal(r.asked, want) {
		t.Errorf("asked for %q, want %q", r.asked, want)
	}
	if n := len(v.Charts.Of.State.Groups()); n != 3 || v.busy {
		t.Errorf("%d charts, busy %v", n, v.busy)
	}
}

func TestNewsOfAComparisonThatWasLeftIsDropped(t *testing.T) {
	old, _ := comparisonOf(2, 10, "loss")
	v, _ := anew(&recorder{}, 2)
	if cmd := v.TakeFacts(Compared{gen: old.gen, facts: factsOfRuns(2, "loss")}, day(9)); cmd != nil || v.read {
		t.Error("an answer to an earlier comparison was taken")
	}
	if v.TakeOverlay(Overlaid{gen: old.gen, curves: []*session.Curve{session.NewCurve("loss")}}); len(v.Charts.Of.State.Curves) > 0 {
		t.Error("a curve of an earlier comparison was taken")
	}
	*v.Charts = chart.View{} // it was left
	if cmd := v.TakeFacts(Compared{gen: v.gen, facts: factsOfRuns(2, "loss")}, day(9)); cmd != nil {
		t.Error("a comparison that was left reads on")
	}
	if cmd := v.TakeOverlay(Overlaid{gen: v.gen}); cmd != nil {
		t.Error("a comparison that was left reads on")
	}
}

func TestAComparisonThatFailsSaysWhy(t *testing.T) {
	v, _ := anew(&recorder{}, 2)
	v.TakeFacts(Compared{gen: v.gen, err: errors.New("the store is locked")}, day(9))
	if got := drawn(v); !strings.Contains(got, "the store is locked") || !strings.Contains(got, "r reads them again") {
		t.Errorf("the screen does not say why:\n%s", got)
	}
}

func TestMorePointsThanThereIsRoomForAreNotReadAndItSaysSo(t *testing.T) {
	v, _ := anew(&recorder{}, 2)
	v.points = mostPoints
	if cmd := v.TakeFacts(Compared{gen: v.gen, facts: factsOfRuns(2, "loss", "acc")}, day(9)); cmd != nil {
		t.Error("more was read")
	}
	if got := drawn(v); !strings.Contains(got, "2 of them not drawn") {
		t.Errorf("the screen does not say so:\n%s", got)
	}
}

func TestWhatIsAskedInARowIsMadeOnceAndShownWhenItIsThere(t *testing.T) {
	v, _ := comparisonOf(2, 50, "loss")
	c := v.Charts
	first := v.LookedAt(func() { c.Smoother(1) })
	second := v.LookedAt(func() { c.Smoother(1) })
	if c.Smooth != 0 {
		t.Errorf("an average is shown that is not made: %d", c.Smooth)
	}
	third := v.LookedAt(c.NextAxis)
	v.TakeReady(second().(Readied))
	v.TakeReady(first().(Readied))
	if c.Smooth != 0 {
		t.Errorf("what is not wanted any more was shown: %d", c.Smooth)
	}
	v.TakeReady(third().(Readied))
	if c.Smooth != 2 || c.Asked != session.AxisStep {
		t.Errorf("smoothing %d by %s, want 2 by step", c.Smooth, c.Asked)
	}
	if c := c.Of.State.Curves[0]; !c.Averaged(session.AxisStep, chart.Factors[2]) {
		t.Error("the average is made again when it is drawn")
	}
}
