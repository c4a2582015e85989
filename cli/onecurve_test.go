package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/history"
)

// tale is a training that prints, and what is true of it: what a resumed run
// repeats counts no more, and a line that came late counts where it belongs.
type tale struct {
	r      *rand.Rand
	ranks  int
	text   bytes.Buffer
	points map[string][][2]float64
	begin  map[string]int // of the present segment
	used   map[int64]bool // steps that came late
}

// say prints a value of a step by all ranks, of which the lowest counts.
func (l *tale) say(name string, step int64, v float64) {
	for rank := range l.ranks {
		if l.ranks > 1 {
			fmt.Fprintf(&l.text, "[rank%d]: ", rank)
		}
		fmt.Fprintf(&l.text, "step %d %s: %.6f\n", step, name, v+float64(rank))
	}
}

func (l *tale) value() float64 {
	v := 3 + l.r.NormFloat64()
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'f', 6, 64), 64)
	return v
}

func (l *tale) step(step int64) {
	for _, s := range [][2]string{{"loss", "loss"}, {"val_loss", "val/loss"}} {
		if s[0] == "loss" || step%50 == 0 {
			v := l.value()
			l.say(s[0], step, v)
			l.points[s[1]] = append(l.points[s[1]], [2]float64{float64(step), v})
		}
	}
}

// resumeAt forgets what a run repeats that goes on from a step.
func (l *tale) resumeAt(step int64) {
	for name, points := range l.points {
		n := l.begin[name]
		for n < len(points) && points[n][0] < float64(step) {
			n++
		}
		l.points[name] = points[:n:n]
	}
}

// late prints a line between two others that came before.
func (l *tale) late(step int64) {
	if l.used[step] {
		return
	}
	l.used[step] = true
	v := l.value()
	l.say("loss", step, v)
	points := l.points["loss"]
	n := l.begin["loss"]
	for n < len(points) && points[n][0] < float64(step) {
		n++
	}
	l.points["loss"] = slices.Insert(points, n, [2]float64{float64(step), v})
}

// tell is the whole training.
func tell(r *rand.Rand, steps, ranks int) *tale {
	l := &tale{r: r, ranks: ranks, points: map[string][][2]float64{}, begin: map[string]int{}, used: map[int64]bool{}}
	calm := 0
	for at, n := int64(10), 0; n < steps; at, n = at+10, n+1 {
		calm++
		switch odd := r.IntN(steps); {
		case calm < 20 || at < 600:
		case odd < 4:
			at, calm = 60+50*r.Int64N((at-200)/50), 0
			l.resumeAt(at)
		case odd < 5:
			at, calm = 10, 0
			for name, points := range l.points {
				l.begin[name] = len(points)
			}
		case odd < 5+min(steps/60, 40):
			l.late(15 + 10*r.Int64N((at-100)/10))
			calm = 0
		}
		l.step(at)
	}
	return l
}

// three are the last, the lowest and the highest point.
type three struct{ last, low, high [2]float64 }

func threeOf(points [][2]float64) (t three) {
	for i, p := range points {
		if t.last = p; i == 0 || p[1] < t.low[1] {
			t.low = p
		}
		if i == 0 || p[1] > t.high[1] {
			t.high = p
		}
	}
	return t
}

// Whatever a run resumes, repeats and tells late, by however many ranks: its file, its
// record, its export and the screen tell the same of it.
func TestFileRecordExportAndScreenTellOneCurve(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 20))
		home := freshHome(t)
		l := tell(r, 300+r.IntN(3000), 1+r.IntN(3))
		db, err := store.Open(filepath.Join(home, "dlwb.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		life, err := db.BeginCluster(store.Cluster{Name: "r", Provider: "local", CreatedAt: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.PutRun(store.Run{ID: "r-1", Cluster: "r", Life: life, Engine: "plain", Command: "train.py", WorldSize: 1, StartedAt: time.Now(), Data: []byte(`{"nodes":1}`)}); err != nil {
			t.Fatal(err)
		}
		screen := l.watched(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		file := written(t, "train.log", l.text.String())
		told := map[string]map[string]three{"file": inJSON(t, file), "record": inJSON(t, "r-1"), "export": exported(t, "r-1"), "screen": screen}
		for name, points := range l.points {
			want := threeOf(points)
			for where, all := range told {
				if got := all[name]; got != want {
					t.Errorf("seed %d, %d ranks: %s of the %s: last, lowest, highest are\n%v, want\n%v", seed, l.ranks, name, where, got, want)
				}
			}
		}
		want := threeOf(l.points["loss"]).last[1]
		if runs := reads[history.Table](t, asks(t, "runs", "--json")).Runs; len(runs) != 1 || runs[0].LastLoss == nil || *runs[0].LastLoss != want {
			t.Errorf("seed %d: the list of runs has %+v, and the last loss is %v", seed, runs, want)
		}
	}
}

// watched stores what a run prints as its watcher does, bit by bit, while a screen
// looks on.
func (l *tale) watched(t *testing.T, db *store.Store) map[string]three {
	t.Helper()
	reader := metrics.NewReader(nil)
	past := history.New(db, history.Records{})
	state := session.NewState("r")
	have := map[string]history.Shown{}
	at := time.Now()
	for text := l.text.Bytes(); ; {
		n := min(len(text), 1+l.r.IntN(4000))
		points := reader.Feed(text[:n], at)
		if text = text[n:]; len(text) == 0 {
			points = append(points, reader.End(at)...)
		}
		if err := db.AddPoints("r-1", follow.Rows(points)); err != nil {
			t.Fatal(err)
		}
		if l.r.IntN(3) == 0 || len(text) == 0 {
			fresh, err := past.NewPoints("r-1", have)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range fresh {
				state.AddPoint(p)
			}
		}
		if len(text) == 0 {
			break
		}
	}
	drawn := map[string]three{}
	for _, c := range state.Curves {
		at := func(i int) [2]float64 { return [2]float64{c.X(session.AxisStep, i), c.Value(i)} }
		drawn[c.Name] = three{at(c.N - 1), at(c.Least), at(c.Most)}
		if lo, hi, _ := c.By(session.AxisStep).Range(); lo != c.Value(c.Least) || hi != c.Value(c.Most) || c.Last != c.Value(c.N-1) {
			t.Errorf("%s is drawn from %v to %v, and its lowest and highest are %v and %v", c.Name, lo, hi, c.Value(c.Least), c.Value(c.Most))
		}
	}
	return drawn
}

// inJSON is what dlwb metrics says of a file or a run.
func inJSON(t *testing.T, what string) map[string]three {
	t.Helper()
	code, stdout, stderr := say(t, "metrics", what, "--json")
	var doc struct {
		Series []struct {
			Name   string
			Points [][2]float64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != 0 {
		t.Fatalf("dlwb metrics %s: exit code %d, %v\n%s%.300s", what, code, err, stderr, stdout)
	}
	told := map[string]three{}
	for _, s := range doc.Series {
		told[s.Name] = threeOf(s.Points)
	}
	return told
}

// exported is what dlwb export says of a run.
func exported(t *testing.T, run string) map[string]three {
	t.Helper()
	_, stdout, _ := say(t, "export", run, "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	points := map[string][][2]float64{}
	for _, row := range rows[1:] {
		x, bad := strconv.ParseFloat(row[2], 64)
		y, worse := strconv.ParseFloat(row[5], 64)
		if bad != nil || worse != nil {
			t.Fatalf("%q", row)
		}
		points[row[0]] = append(points[row[0]], [2]float64{x, y})
	}
	told := map[string]three{}
	for name, all := range points {
		told[name] = threeOf(all)
	}
	return told
}

// A log of more points than are kept has the extremes and the end that it has, also
// where the run was resumed.
func TestALogLongerThanWhatIsKeptTellsItsExtremes(t *testing.T) {
	sample.Leave(t)
	if testing.Short() {
		t.Skip("NOT RUN: it reads 2.4 million lines; run without -short")
	}
	if raced {
		t.Skip("millions of lines that one goroutine reads: make test tells it by itself, without -race")
	}
	freshHome(t)
	l := tell(rand.New(rand.NewPCG(7, 20)), 2_400_000, 1)
	path := filepath.Join(t.TempDir(), "train.log")
	if err := os.WriteFile(path, l.text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	told := inJSON(t, path)
	for name, points := range l.points {
		if got, want := told[name], threeOf(points); got != want {
			t.Errorf("%s: last, lowest, highest are\n%v, want\n%v", name, got, want)
		}
	}
}
