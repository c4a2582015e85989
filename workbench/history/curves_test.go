package history

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dlwb/dlwb/store"
)

// told is a series for a test: points at steps from, from+every, …
type told struct {
	name, source, format string
	from, every, count   int64
	off                  float64
	noStep               bool
}

func (d told) series(id int64) (store.Series, []store.Point) {
	v := store.Series{ID: id, Run: "r", Name: d.name, Source: d.source, Format: d.format, Count: d.count}
	points := make([]store.Point, d.count)
	for i := range points {
		step := d.from + int64(i)*d.every
		points[i] = store.Point{Name: d.name, Source: d.source, Format: d.format, Ordinal: int64(i), Step: &step, Value: 100/float64(step+1) + d.off}
		if d.noStep {
			points[i].Step = nil
		}
	}
	v.First, v.Last = points[0], points[len(points)-1]
	return v, points
}

// shownOf puts series together and says what is shown of them.
func shownOf(t *testing.T, all ...told) string {
	t.Helper()
	var series []store.Series
	points := map[int64][]store.Point{}
	for i, d := range all {
		v, p := d.series(int64(i) + 1)
		series, points[v.ID] = append(series, v), p
	}
	read := func(v store.Series, from int64, limit int) ([]store.Point, error) {
		p := points[v.ID]
		p = p[min(from, int64(len(p))):]
		if limit > 0 {
			p = p[:min(limit, len(p))]
		}
		return p, nil
	}
	curves, err := curvesOf(series, seriesReader{read, &sync.Map{}})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, c := range curves {
		s := fmt.Sprintf("%s: %s 0–%d", c.name, c.main.Source, stepOf(c.main.Last))
		if c.tail != nil {
			s += fmt.Sprintf(", %s %d–%d", c.tail.Source, stepOf(points[c.tail.ID][c.tailAt]), stepOf(c.tail.Last))
		}
		said = append(said, s)
	}
	return strings.Join(said, "; ")
}

func TestOneQuantityFromTwoSourcesIsOneCurve(t *testing.T) {
	out := func(every, count int64) told {
		return told{name: "loss", source: store.Stdout, format: "log", every: every, count: count}
	}
	file := func(name, source, format string, every, count int64) told {
		return told{name: name, source: source, format: format, every: every, count: count}
	}
	shifted := file("loss", "m/metrics.csv", "csv", 1, 50)
	shifted.off = 7
	second := file("loss", "tb/events.tfevents.2", "tfevents", 1, 50)
	second.from = 100
	epochs := out(1, 10)
	epochs.noStep = true
	for _, c := range []struct {
		what string
		all  []told
		want string
	}{
		{"the exact one", []told{out(10, 11), file("loss", "m/metrics.csv", "csv", 10, 11)}, "loss: m/metrics.csv 0–100"},
		{"train/loss is loss", []told{out(10, 11), file("train/loss", "tb/a.tfevents", "tfevents", 1, 101)}, "loss: tb/a.tfevents 0–100"},
		{"unless one source has both", []told{out(1, 5), file("loss", "m/x.csv", "csv", 1, 5), file("train/loss", "m/x.csv", "csv", 1, 5)},
			"loss: m/x.csv 0–4; train/loss: m/x.csv 0–4"},
		{"printed, while the file is behind", []told{out(1, 101), file("loss", "tb/a.tfevents", "tfevents", 1, 41)},
			"loss: tb/a.tfevents 0–40, stdout 41–100"},
		{"the one that tells it more often", []told{out(1, 101), file("loss", "m/metrics.csv", "csv", 50, 3)}, "loss: stdout 0–100"},
		{"one that counts differently", []told{out(1, 41), shifted}, "loss: m/metrics.csv 0–49"},
		{"and is behind", []told{out(1, 81), shifted}, "loss: stdout 0–80"},
		{"without steps", []told{epochs, file("loss", "tb/a.tfevents", "tfevents", 1, 10)}, "loss: tb/a.tfevents 0–9"},
		{"of two files the finer format", []told{file("loss", "tb/a.tfevents", "tfevents", 1, 50), file("loss", "m/metrics.csv", "csv", 1, 50)}, "loss: m/metrics.csv 0–49"},
		{"files that follow each other", []told{file("loss", "tb/events.tfevents.1", "tfevents", 1, 90), second},
			"loss: tb/events.tfevents.1 0–89, tb/events.tfevents.2 100–149"},
		{"models side by side", []told{file("loss", "a/metrics.csv", "csv", 1, 5), file("loss", "b/metrics.csv", "csv", 1, 5)},
			"loss: a/metrics.csv 0–4; b/loss: b/metrics.csv 0–4"},
		{"validation is another", []told{out(1, 5), file("val/loss", "m/metrics.csv", "csv", 1, 5)}, "loss: stdout 0–4; val/loss: m/metrics.csv 0–4"},
	} {
		if got := shownOf(t, c.all...); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, c.want)
		}
	}
}

func TestWhichFileWasLookedAtFirstChangesNothing(t *testing.T) {
	out := told{name: "loss", source: store.Stdout, format: "log", every: 1, count: 40}
	val := told{name: "val/loss", source: "outputs/metrics.csv", format: "csv", every: 10, count: 40}
	events := told{name: "loss", source: "outputs/tb/events.tfevents.1", format: "tfevents", every: 1, count: 40}
	other := told{name: "loss", source: "outputs/b/events.tfevents.1", format: "tfevents", every: 1, count: 10}
	want := shownOf(t, out, val, events, other)
	for _, all := range [][]told{{val, out, events, other}, {other, events, val, out}, {events, other, out, val}} {
		if got := shownOf(t, all...); got != want {
			t.Errorf("%s\nbut in another order\n%s", got, want)
		}
	}
	if !strings.HasPrefix(want, "loss: ") {
		t.Errorf("what was printed is not the first: %s", want)
	}
}

func TestASeriesIsFoundByTheNameThatATrainingPrints(t *testing.T) {
	of := func(name string, series ...string) curve {
		c := curve{name: name}
		for _, s := range series {
			c.sources = append(c.sources, store.Series{Name: s})
		}
		return c
	}
	curves := []curve{of("loss", "loss", "train/loss"), of("val/loss", "val/loss"), of("b/loss", "loss"), of("eval/acc", "eval/acc"), of("my_score", "my_score"), of("Top 1", "Top 1")}
	for name, want := range map[string]string{
		"val/loss": "val/loss", "val_loss": "val/loss", "Validation loss": "val/loss", "train/loss": "loss", "train_loss": "loss", "Loss": "loss",
		"eval_acc": "eval/acc", "my_score": "my_score", "b/loss": "b/loss", "Top 1": "Top 1", "test_loss": "", "score": "",
	} {
		if c, ok := named(curves, name); c.name != want || ok != (want != "") {
			t.Errorf("%q: %q, %t; want %q", name, c.name, ok, want)
		}
	}
}
