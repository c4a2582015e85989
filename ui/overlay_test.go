package ui

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// recorder is a bench with runs of a hundred thousand points.
type recorder struct {
	Bench
	points int
	asked  []string // series, in the order in which they were asked for
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

// comparisonOf is a screen on which runs were compared; all that it asks for
// is answered at once.
func comparisonOf(runs, points int, names ...string) (*Model, *recorder) {
	r := &recorder{points: points}
	m := New(context.Background(), r, Options{Theme: "dark"})
	m.w, m.h = 200, 60
	m.path = []place{atHome, atRuns}
	ids := make([]string, runs)
	for k := range ids {
		ids[k] = fmt.Sprintf("run-%d", k)
	}
	m.compareThese(ids)
	cmd := m.takeComparison(compared{gen: m.comp.gen, facts: factsOfRuns(runs, names...)})
	for cmd != nil {
		cmd = m.takeOverlay(cmd().(overlaid))
	}
	return m, r
}

func TestOverlaysAreReadSeriesBySeriesTheLossFirst(t *testing.T) {
	m, r := comparisonOf(2, 10, "lr", "images/s", "val/loss")
	if want := []string{"val/loss", "images/s", "lr"}; !slices.Equal(r.asked, want) {
		t.Errorf("asked for %q, want %q", r.asked, want)
	}
	if n := len(m.ses.State.Groups()); n != 3 || m.comp.busy {
		t.Errorf("%d charts, busy %v", n, m.comp.busy)
	}
}

func TestNewsOfAComparisonThatWasLeftIsDropped(t *testing.T) {
	m, _ := comparisonOf(2, 10, "loss")
	old := m.comp.gen
	m.compareThese([]string{"run-0", "run-1"})
	if cmd := m.takeComparison(compared{gen: old, facts: factsOfRuns(2, "loss")}); cmd != nil || m.comp.read {
		t.Error("an answer to an earlier comparison was taken")
	}
	if m.takeOverlay(overlaid{gen: old, curves: []*session.Curve{session.NewCurve("loss")}}); len(m.ses.State.Curves) > 0 {
		t.Error("a curve of an earlier comparison was taken")
	}
	m.path = m.path[:1]
	m.leaveSession()
	m.takeComparison(compared{gen: m.comp.gen})
	m.takeOverlay(overlaid{gen: m.comp.gen})
}

func TestAComparisonThatFailsSaysWhy(t *testing.T) {
	m, _ := comparisonOf(2, 10, "loss")
	m.compareThese([]string{"run-0", "run-1"})
	m.takeComparison(compared{gen: m.comp.gen, err: errors.New("the store is locked")})
	if got := ansi.Strip(m.Frame()); !strings.Contains(got, "the store is locked") || !strings.Contains(got, "r reads them again") {
		t.Errorf("the screen does not say why:\n%s", got)
	}
}

func TestMorePointsThanThereIsRoomForAreNotReadAndItSaysSo(t *testing.T) {
	m, _ := comparisonOf(2, 10, "loss")
	m.compareThese([]string{"run-0", "run-1"})
	m.comp.points = mostPoints
	if cmd := m.takeComparison(compared{gen: m.comp.gen, facts: factsOfRuns(2, "loss", "acc")}); cmd != nil {
		t.Error("more was read")
	}
	if got := ansi.Strip(m.Frame()); !strings.Contains(got, "2 of them not drawn") {
		t.Errorf("the screen does not say so:\n%s", got)
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
		if got := chart.BestOf(c.group).Run; got != c.want {
			t.Errorf("%s: run %d, want %d", c.group[0].Name, got, c.want)
		}
	}
}

func TestWhatIsAskedInARowIsMadeOnceAndShownWhenItIsThere(t *testing.T) {
	m, _ := comparisonOf(2, 50, "loss")
	first := m.lookedAt(func(m *Model) { m.charts.Smoother(1) })
	second := m.lookedAt(func(m *Model) { m.charts.Smoother(1) })
	if v := m.charts; v.Smooth != 0 {
		t.Errorf("an average is shown that is not made: %d", v.Smooth)
	}
	third := m.lookedAt(func(m *Model) { m.charts.NextAxis() })
	m.Update(second())
	m.Update(first())
	if v := m.charts; v.Smooth != 0 {
		t.Errorf("what is not wanted any more was shown: %d", v.Smooth)
	}
	m.Update(third())
	if v := m.charts; v.Smooth != 2 || v.Asked != session.AxisStep {
		t.Errorf("smoothing %d by %s, want 2 by step", v.Smooth, v.Asked)
	}
	if c := m.ses.State.Curves[0]; !c.Averaged(session.AxisStep, chart.Factors[2]) {
		t.Error("the average is made again when it is drawn")
	}
}

// manyRuns is a table of n runs.
func manyRuns(n int) history.Table {
	t := history.Table{Columns: []string{"best.val/acc"}}
	for i := range n {
		over, loss := day(1).Add(time.Duration(i)*time.Minute), float64(i%7)
		t.Runs = append(t.Runs, event.RunInfo{ID: fmt.Sprintf("run-%d", i), StartedAt: day(0), EndedAt: &over, LastLoss: &loss, Note: strings.Repeat("note ", i%9)})
		t.Cells = append(t.Cells, []string{fmt.Sprint(i % 13)})
	}
	return t
}

// BenchmarkRuns must stay below 5 ms.
func BenchmarkRuns(b *testing.B) {
	m := New(context.Background(), nil, Options{Theme: "dark"})
	m.w, m.h, m.path = 200, 60, []place{atHome, atRuns}
	gen, _ := m.runs.Ask(m.now)
	m.runs.Take(gen, manyRuns(1000), nil)
	for range 3 {
		m.runs.NextSort()
	}
	m.runs.Move(700)
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			m.View()
		}
	})
	over, _ := comparisonOf(8, 100_000, "loss", "val/loss", "acc", "lr")
	b.Run("overlays drawn anew", func(b *testing.B) {
		for b.Loop() {
			clear(over.comp.charts)
			over.View()
		}
	})
	looked := func(do func(*Model)) { over.Update(over.lookedAt(do)()) }
	for _, how := range []struct {
		name string
		set  func()
	}{{"overlays", func() {}}, {"overlays smoothed and read", func() { looked(func(m *Model) { m.charts.Smoother(5) }); over.readOn(-1) }},
		{"overlays by time", func() { looked(func(m *Model) { m.charts.Asked = session.AxisTime }) }}, {"one", func() { over.charts.Full = true }}, {"facts", func() { over.comp.whole = true }}} {
		how.set()
		b.Run(how.name, func(b *testing.B) {
			for b.Loop() {
				over.View()
			}
		})
	}
}
