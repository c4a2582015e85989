package ui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// recorder is a bench with runs of a hundred thousand points.
type recorder struct {
	Bench
	points int
	names  []string // of their series
}

func (r *recorder) Compare(runs []string) (history.Comparison, error) {
	return factsOfRuns(len(runs), r.names...), nil
}

func (r *recorder) Overlays(runs, names []string) ([]history.Overlay, error) {
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
func comparisonOf(runs, points int, names ...string) *Model {
	m := New(context.Background(), &recorder{points: points, names: names}, Options{Theme: "dark"})
	m.w, m.h = 200, 60
	m.path = []place{atHome, atRuns}
	ids := make([]string, runs)
	for k := range ids {
		ids[k] = fmt.Sprintf("run-%d", k)
	}
	for cmd := m.compareThese(ids); cmd != nil; {
		_, cmd = m.Update(cmd())
	}
	return m
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
	over := comparisonOf(8, 100_000, "loss", "val/loss", "acc", "lr")
	b.Run("overlays drawn anew", func(b *testing.B) {
		for b.Loop() {
			clear(over.comp.Kept)
			over.View()
		}
	})
	looked := func(do func(*Model)) { over.Update(over.lookedAt(do)()) }
	for _, how := range []struct {
		name string
		set  func()
	}{{"overlays", func() {}}, {"overlays smoothed and read", func() { looked(func(m *Model) { m.charts.Smoother(5) }); over.readOn(-1) }},
		{"overlays by time", func() { looked(func(m *Model) { m.charts.Asked = session.AxisTime }) }}, {"one", func() { over.charts.Full = true }}, {"facts", func() { over.comp.ToggleFacts() }}} {
		how.set()
		b.Run(how.name, func(b *testing.B) {
			for b.Loop() {
				over.View()
			}
		})
	}
}
