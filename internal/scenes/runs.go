package scenes

import (
	"fmt"
	"math"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// Scenes of the table of runs and of their comparison.

// RunTable implements ui.Bench.
func (s *Stage) RunTable(q history.Query) (history.Table, error) {
	s.wish("runs filter=" + q.Filter + " sort=" + q.Sort)
	return s.RunsAre, s.RunsErr
}

// Compare implements ui.Bench: the first runs of the search, if nothing else is
// said.
func (s *Stage) Compare(runs []string) (history.Comparison, error) {
	c, _ := Compared(len(runs))
	if s.FactsAre != nil {
		c = *s.FactsAre
	}
	return c, s.wish(fmt.Sprint("compare ", runs))
}

// Overlays implements ui.Bench.
func (s *Stage) Overlays(_, names []string) ([]history.Overlay, error) {
	var all []history.Overlay
	for _, n := range names {
		all = append(all, s.LinesAre[n])
	}
	return all, nil
}

// SetNote implements ui.Bench.
func (s *Stage) SetNote(run, note string) error { return s.wish("note " + run + ": " + note) }

// SetStar implements ui.Bench.
func (s *Stage) SetStar(run string, starred bool) error {
	return s.wish(fmt.Sprintf("star %s %v", run, starred))
}

// ManyRuns are runs of a search for a learning rate, among others.
func ManyRuns() history.Table {
	t := history.Table{Runs: HomeFull().Runs}
	for i := range t.Runs {
		t.Runs[i].Command, t.Runs[i].WorldSize, t.Runs[i].Engine = "python "+Command, 2, "torchrun"
		t.Runs[i].Cost = float64(i) * 3.07
	}
	t.Runs[3].Cause = "rank 1 on node1 exited with code 3"
	code := 0
	for i := range 24 {
		began := Epoch.Add(-time.Duration(60+7*i) * time.Hour)
		over, loss := began.Add(time.Duration(41+i*i%17)*time.Minute), 1.71+0.9*math.Abs(wobble(int64(i), 3))
		r := event.RunInfo{ID: fmt.Sprintf("resnet-%s", began.Format("0102-1504")), Profile: "resnet", Engine: "torchrun", WorldSize: 8 << (i % 3),
			Command: fmt.Sprintf("python train.py --lr %g --batch-size %d", 0.1/float64(int(1)<<(i%5)), 256<<(i%3)), StartedAt: began, EndedAt: &over,
			Verdict: event.Succeeded, ExitCode: &code, LastLoss: &loss, Cost: over.Sub(began).Hours() * 16.29}
		t.Runs = append(t.Runs, r)
	}
	t.Runs[7].Starred, t.Runs[7].Note = true, "the baseline; seed 1"
	t.Runs[9].Note = "warmup too short"
	t.Runs[12].Starred = true
	return t
}

func onRuns(w, h int, theme string, set func(*Stage)) *Stage {
	s := NewStage(w, h, ui.Options{Theme: theme}, func(s *Stage) {
		s.HomeIs, s.RunsAre = HomeFull(), ManyRuns()
		_, s.LinesAre = Compared(9)
		if set != nil {
			set(s)
		}
	})
	return s.Press("p")
}

func runsSorted(w, h int, theme string) *Stage {
	s := onRuns(w, h, theme, nil).Press("s", "s", "s")
	return s.Press("down", "down", "space", "space", "down", "space")
}

func runsFilter(w, h int, theme string) *Stage {
	s := onRuns(w, h, theme, nil)
	s.RunsAre.Runs = s.RunsAre.Runs[6:14]
	s.RunsAre.Columns = []string{"best.val/acc", "val/loss"}
	for i := range s.RunsAre.Runs {
		cells := []string{fmt.Sprintf("%.2f", 76+2*wobble(int64(i), 1)), fmt.Sprintf("%.4f", 1.1+0.2*wobble(int64(i), 2))}
		if i == 3 {
			cells[0] = ""
		}
		s.RunsAre.Cells = append(s.RunsAre.Cells, cells)
	}
	return s.Press("/").Type("best.val/acc>74 and val/loss<2").Press("enter")
}

func runsWrong(w, h int, theme string) *Stage {
	s := onRuns(w, h, theme, nil)
	s.RunsErr = &event.Fault{What: `read the filter "loss<2 engine=torchrun"`, Node: -1, Why: `and or or should stand at "engine=torchrun"`,
		Next: "put and between conditions, and quotes around values with blanks"}
	return s.Press("/").Type("loss<2 engine=torchrun").Press("enter")
}

func runsNone(w, h int, theme string) *Stage {
	return onRuns(w, h, theme, func(s *Stage) { s.RunsAre = history.Table{} })
}

// marking marks the first of the runs of the search, and compares them.
func marking(w, h int, theme string, runs int) *Stage {
	s := onRuns(w, h, theme, nil)
	for range 6 {
		s.Press("down")
	}
	for range runs {
		s.Press("space")
	}
	return s.Press("v")
}

func compareRuns(w, h int, theme string) *Stage { return marking(w, h, theme, 3) }

func compareRead(w, h int, theme string) *Stage {
	s := marking(w, h, theme, 3).Press("a", "a", "a", "]", "]", "]", "]")
	for range 20 {
		s.Press("left")
	}
	return s
}

func compareFacts(w, h int, theme string) *Stage { return marking(w, h, theme, 8).Press("d") }

// Compared are runs of a search, with the curves that they have in common.
func Compared(n int) (history.Comparison, map[string]history.Overlay) {
	all := ManyRuns().Runs[6:]
	c := history.Comparison{Notes: []string{"packages and machines of " + all[1].ID + " are not known"}}
	lines := map[string]history.Overlay{}
	values := func(of func(i int) string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = of(i)
		}
		return out
	}
	names := []string{"train/loss", "val/loss", "val/acc", "images/s"}
	for _, name := range names {
		way := goal.Of(name)
		c.Metrics = append(c.Metrics, history.ComparedMetric{Name: name, Goal: way, Last: make([]*metrics.Point, n), Best: make([]*metrics.Point, n), Winner: -1})
		lines[name] = history.Overlay{Name: name, Goal: way}
	}
	for i := range n {
		r := all[i]
		c.Runs = append(c.Runs, history.ComparedRun{ID: r.ID, Verdict: r.Verdict, Started: r.StartedAt, Duration: r.Took(Epoch).Seconds(), Cost: r.Cost, Note: r.Note, Starred: r.Starred})
		for k, name := range names {
			if name == "images/s" && i == 1 {
				continue // one of them did not print it
			}
			points := searchCurve(k, i, r.StartedAt)
			o := lines[name]
			o.Lines = append(o.Lines, history.OverlayLine{Run: r.ID, Points: points})
			lines[name] = o
			m := &c.Metrics[k]
			m.Last[i] = &points[len(points)-1]
			if m.Goal == goal.None {
				continue
			}
			m.Best[i] = best(points, m.Goal)
			if m.Winner < 0 || m.Goal.Better(m.Best[i].Value, m.Best[m.Winner].Value) {
				m.Winner = i
			}
		}
	}
	d := func(group, key string, of func(i int) string) {
		c.Differences = append(c.Differences, history.Difference{Group: group, Key: key, Values: values(of)})
	}
	d("profile", "machines.count", func(i int) string { return fmt.Sprint(1 << (i % 3)) })
	d("argument", "--lr", func(i int) string { return fmt.Sprint(0.1 / float64(int(1)<<(i%5))) })
	d("argument", "--batch-size", func(i int) string { return fmt.Sprint(256 << (i % 3)) })
	d("argument", "--resume", func(i int) string {
		return []string{"", "/data/checkpoints/resnet-50/2026-03-10/last.pt", "/data/checkpoints/resnet-50/2026-03-11/best.pt"}[i%3]
	})
	d("code", "commit", func(i int) string { return fmt.Sprintf("%012x", 0x9f31c07b2a51+int64(i/2)*7919) })
	d("code", "uncommitted", func(i int) string { return []string{"", "1 file, +3 −1 (4be1)"}[i%2] })
	d("package", "torch", func(i int) string { return []string{"2.6.0", "2.7.1"}[i/3%2] })
	d("machine", "instance", func(i int) string { return []string{"g5.12xlarge", "g6e.12xlarge"}[i/2%2] })
	return c, lines
}

// best is the best of some points.
func best(points []metrics.Point, way goal.Goal) *metrics.Point {
	at := &points[0]
	for i := range points {
		if way.Better(points[i].Value, at.Value) {
			at = &points[i]
		}
	}
	return at
}

// searchCurve is a series of one run of the search: k is which, i whose.
func searchCurve(k, i int, began time.Time) []metrics.Point {
	var out []metrics.Point
	every := int64(10)
	if k > 0 {
		every = 100
	}
	for s := every; s <= 3000+int64(i%3)*500; s += every {
		x, e := float64(s)/3000, float64(s)/100
		v := 0.5 + 0.3*float64((i+2)%4) + 4*math.Exp(-(9-2*float64((i+1)%4))*x) + 0.04*wobble(s, float64(i+1))
		switch k {
		case 1:
			v += 0.2
		case 2:
			v = 80 - 10*v
		case 3:
			v = 9000 + 900*float64(i%3) + 120*wobble(s, float64(i+1))
		}
		out = append(out, metrics.Point{Name: "x", Step: &s, Epoch: &e, Value: v, Time: began.Add(time.Duration(float64(s)*(0.8+0.05*float64(i))) * time.Second)})
	}
	return out
}
