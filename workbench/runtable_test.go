package workbench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// endedRun puts a run that has ended into the store, with a loss and an
// accuracy that end at the given values.
func endedRun(t *testing.T, w *Workbench, id, command string, took time.Duration, loss, acc float64) {
	t.Helper()
	c, err := w.db.Cluster("c")
	if err != nil {
		if c.ID, err = w.db.BeginCluster(store.Cluster{Name: "c", Provider: "local", Phase: string(event.PhaseReady), CreatedAt: now()}); err != nil {
			t.Fatal(err)
		}
	}
	code, began := 0, now().Add(-took)
	ended := began.Add(took)
	engine := "plain"
	if strings.Contains(command, "ddp") {
		engine = "torchrun"
	}
	r := store.Run{ID: id, Cluster: "c", Life: c.ID, Profile: "p", Engine: engine, Command: command, WorldSize: 2, StartedAt: began}
	if err := w.putRun(r, runData{PricePerHour: 6}); err != nil {
		t.Fatal(err)
	}
	r.EndedAt, r.ExitCode, r.Verdict = &ended, &code, string(event.Succeeded)
	if err := w.putRun(r, runData{PricePerHour: 6}); err != nil {
		t.Fatal(err)
	}
	points := []store.Point{{Name: "loss", Step: new(int64(1)), Value: 4}, {Name: "loss", Ordinal: 1, Step: new(int64(2)), Value: loss}}
	if acc > 0 {
		points = append(points, store.Point{Name: "val/acc", Step: new(int64(1)), Value: acc + 0.1}, store.Point{Name: "val/acc", Ordinal: 1, Step: new(int64(2)), Value: acc})
	}
	if err := w.db.AddPoints(id, points); err != nil {
		t.Fatal(err)
	}
}

func threeRuns(t *testing.T) *Workbench {
	w := newBench(t, t.TempDir())
	endedRun(t, w, "a", "train.py --lr 1e-3", time.Minute, 1.5, 0.7)
	endedRun(t, w, "b", "train.py --lr 1e-2 ddp", time.Hour, 0.5, 0.8)
	endedRun(t, w, "c", "train.py --lr 1", 2*time.Hour, math.NaN(), 0)
	for _, err := range []error{w.history.SetStar("b", true), w.history.SetNote("a", "Too high")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestRunsAreFilteredAndSorted(t *testing.T) {
	w := threeRuns(t)
	for _, c := range []struct{ filter, sort, want string }{
		{"", "", "a b c"},
		{"loss<2", "loss", "b a"},
		{"loss<2 and engine=torchrun", "", "b"},
		{"engine=torchrun or note~\"too high\"", "", "a b"},
		{"not engine=torchrun", "-took", "c a"},
		{"took>=1h", "took", "b c"},
		{"cost>5 and cost<7", "", "b"},
		{"starred=yes", "", "b"},
		{"command~DDP", "", "b"},
		{"", "-loss", "a b c"}, // without a number is last
		{"", "loss", "b a c"},
		{"best.val/acc>0.85", "", "b"},
		{"", "engine,-took", "c a b"},
		{"age<3h and verdict!=failed", "id", "a b c"},
		{"loss=nan", "", "c"},
		{"val/acc>0", "-best.val/acc", "b a"},
	} {
		table, err := w.history.RunTable(history.Query{Filter: c.filter, Sort: c.sort})
		if err != nil {
			t.Errorf("%q, %q: %v", c.filter, c.sort, err)
			continue
		}
		var ids []string
		for _, r := range table.Runs {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.filter, c.sort, got, c.want)
		}
	}
	table, err := w.history.RunTable(history.Query{Sort: "best.val/acc", Limit: 2})
	if err != nil || fmt.Sprint(table.Columns, table.Cells) != "[best.val/acc] [[0.8] [0.9]]" {
		t.Errorf("%+v, %v", table, err)
	}
}

func TestAFilterThatCantBeReadSaysWhatIsWrong(t *testing.T) {
	w := threeRuns(t)
	for filter, want := range map[string]string{
		"loss":             "a condition should stand",
		"loss<":            "a condition should stand",
		"loss<2 engine=x":  "and or or should stand",
		"engine<torchrun":  "is a text",
		"took<abc":         "can't be compared",
		"started>lastweek": "can't be compared",
		"los<2":            "no run has a series",
		"loss<2 and":       "and or or should stand",

		"loss<2 and verdict=suceeded": "at column 20: verdict is never \"suceeded\"\nnext: did you mean succeeded?",
		"verdict != Success":          "did you mean succeeded?",
		"engine=torchrunn":            "did you mean torchrun?",
		"provider=ecc2":               "did you mean ec2?",
		"provider!=aws":               "did you mean ec2?",
		"starred=maybe":               "it is one of yes, no",
		"started=2026-13-01":          "at column 9: started can't be compared",
		"loss<2 and since friday":     "at column 18: started can't be compared",
		"since":                       "a condition should stand",
		"state=failed":                "did you mean verdict?",
		"date=2026-03-01":             "did you mean started?",
	} {
		_, err := w.history.RunTable(history.Query{Filter: filter})
		var fault *event.Fault
		var bad *history.BadQuery
		if !errors.As(err, &bad) || !errors.As(err, &fault) {
			t.Errorf("%q: %v is no fault of the question", filter, err)
		} else if said := fault.Error() + "\nnext: " + fault.Next; !strings.Contains(said, want) {
			t.Errorf("%q: %s, want %q", filter, said, want)
		}
	}
	if _, err := w.history.RunTable(history.Query{Limit: -1}); err == nil || !strings.Contains(err.Error(), "less than none") {
		t.Errorf("a limit below 0: %v", err)
	}
	// A word that another dlwb put on record is one.
	r, err := w.db.Run("a")
	if err != nil {
		t.Fatal(err)
	}
	r.Engine = "of-yore"
	if err := w.putRun(r, runData{}); err != nil {
		t.Fatal(err)
	}
	if table, err := w.history.RunTable(history.Query{Filter: "engine=Of-Yore"}); err != nil || len(table.Runs) != 1 {
		t.Errorf("%d runs, %v", len(table.Runs), err)
	}
}

// A day is all of it where the user is, also where its clocks are set meanwhile.
func TestADayOfAFilterIsAllOfThatDayHere(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	here := time.Local
	time.Local = berlin
	t.Cleanup(func() { time.Local = here })
	w := newBench(t, t.TempDir())
	if _, err := w.db.BeginCluster(store.Cluster{Name: "c", Provider: "local", Phase: string(event.PhaseReady), CreatedAt: now()}); err != nil {
		t.Fatal(err)
	}
	for id, at := range map[string]string{"a": "2026-10-24T23:59:59", "b": "2026-10-25T00:00:00", "c": "2026-10-25T12:00:30", "d": "2026-10-25T23:59:59", "e": "2026-10-26T00:00:00"} {
		began, err := time.ParseInLocation("2006-01-02T15:04:05", at, berlin)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.putRun(store.Run{ID: id, Cluster: "c", Profile: "p", Engine: "plain", StartedAt: began.UTC()}, runData{}); err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string]string{
		"started=2026-10-25": "b c d", "on 2026-10-25": "b c d", "started!=2026-10-25": "a e", "not on 2026-10-25": "a e",
		"started<2026-10-25": "a", "before 2026-10-25": "a", "started<=2026-10-25": "a b c d",
		"started>2026-10-25": "e", "after 2026-10-25": "e", "since 2026-10-25": "b c d e", `SINCE "2026-10-25 12:00" and started<=2026-10-25`: "c d",
		"started=2026-10-25T12:00": "c", "started=2026-10-25T12:00:30": "c", "started=2026-10-25T12:00:29": "",
		"started=2026-10-25T11:00:30Z": "c", "started~2026-10-25t": "b c d", "since today": "", "on yesterday": "",
	} {
		table, err := w.history.RunTable(history.Query{Filter: filter, Sort: "id"})
		var ids []string
		for _, r := range table.Runs {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", filter, got, err, want)
		}
	}
}

func TestComparedRunsShowOnlyWhatDiffers(t *testing.T) {
	w := threeRuns(t)
	for id, r := range map[string]history.Recipe{
		"a": {Profile: "name: p\nmachines: {count: 2}\nrun: {command: x, env: {A: \"1\"}}\n", Command: "train.py --lr 1e-3 --amp model=vit", Engine: "plain",
			Git: &history.GitState{Commit: "0123456789abcdef"}, Complete: true, Packages: []string{"torch==2.4.0", "numpy==1.0"}},
		"b": {Profile: "name: p\nmachines: {count: 4}\nrun: {command: y}\n", Command: "train.py --lr 1e-2 model=vit", Engine: "plain",
			Git: &history.GitState{Commit: "0123456789abcdef", Dirty: true, Diff: "diff --git a/x b/x\n+new\n", DiffHash: "77"}, Complete: true, Packages: []string{"torch==2.5.0", "numpy==1.0"}},
	} {
		if err := w.putRecipe(id, r); err != nil {
			t.Fatal(err)
		}
	}
	c, err := w.history.Compare([]string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range c.Differences {
		got = append(got, d.Group+" "+d.Key+": "+strings.Join(d.Values, " | "))
	}
	want := "profile machines.count: 2 | 4; profile run.env.A: 1 | ; argument --lr: 1e-3 | 1e-2; argument --amp: yes | ; " +
		"code uncommitted:  | 1 file, +1 −0 (77); package torch: 2.4.0 | 2.5.0"
	if strings.Join(got, "; ") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, "; "), want)
	}
	if len(c.Notes) > 0 {
		t.Errorf("all is known, and it says %q", c.Notes)
	}
	// Of c nothing is on record; that its code differs, too, would show nowhere.
	if other, err := w.history.Compare([]string{"a", "c"}); err != nil || !slices.Contains(other.Notes, "whether the code is the same can't be told: of c no git repository is on record") {
		t.Errorf("%q, %v", other.Notes, err)
	}
	if m := c.Metrics[0]; m.Name != "loss" || m.Winner != 1 || m.Last[0].Value != 1.5 || m.Best[1].Value != 0.5 {
		t.Errorf("loss: %+v", m)
	}
	if m := c.Metrics[1]; m.Name != "val/acc" || m.Goal != "max" || m.Winner != 1 || m.Best[0].Value < 0.79 {
		t.Errorf("val/acc: %+v", m)
	}
	if o, err := w.history.Overlays([]string{"a", "b", "c"}, nil); err != nil || len(o) != 2 || len(o[0].Lines) != 3 || len(o[1].Lines) != 2 {
		t.Errorf("overlays: %+v, %v", o, err)
	}
	if _, err := w.history.Compare([]string{"a", "nothing"}); err == nil {
		t.Error("a run that is not there was compared")
	}
}
