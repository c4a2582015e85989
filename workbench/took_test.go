package workbench

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

func TestHowLongARunTookIsWhatItsEndTold(t *testing.T) {
	began := now()
	ended := began.Add(8600 * time.Millisecond)
	before := began.Add(-time.Hour) // the clock was set back meanwhile
	for name, c := range map[string]struct {
		ended *time.Time
		told  float64
		want  time.Duration
	}{
		"its end told it":                 {&ended, 7.9, 7900 * time.Millisecond},
		"the record has only its moments": {&ended, 0, 8600 * time.Millisecond},
		"a clock that was set back":       {&before, 0, 0},
		"it goes on":                      {nil, 0, time.Minute},
	} {
		if got := event.Took(began, c.ended, c.told, began.Add(time.Minute)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The end tells 7.9 s, and comes 8.6 s after the run was put on record: the
// list, its filter, the cost, the comparison and the runbook all say 7.9 s.
func TestEveryListSaysThatARunTookWhatItsEndTold(t *testing.T) {
	w := newBench(t, t.TempDir())
	c := store.Cluster{Name: "c", Provider: "local", Phase: string(event.PhaseReady), CreatedAt: now()}
	life, err := w.db.BeginCluster(c)
	if err != nil {
		t.Fatal(err)
	}
	r := store.Run{ID: "c-1", Cluster: "c", Life: life, Profile: "p", Engine: "plain", Command: "train.py", WorldSize: 1, StartedAt: now().Add(-8600 * time.Millisecond)}
	data := runData{PricePerHour: 3600}
	if err := w.putRun(r, data); err != nil {
		t.Fatal(err)
	}
	if err := w.recordEnd(scope{cluster: "c", life: life}, r, data, event.RunEnded{Verdict: event.Succeeded, Rank: -1, Node: -1, Duration: 7.9}); err != nil {
		t.Fatal(err)
	}
	table, err := w.history.RunTable(history.Query{Filter: "took<8s"})
	if err != nil || len(table.Runs) != 1 {
		t.Fatal(err, table)
	}
	if run := table.Runs[0]; run.Duration != 7.9 || run.Took(time.Now()) != 7900*time.Millisecond || run.Cost != 7.9 {
		t.Errorf("the list says %v, cost %v", run.Duration, run.Cost)
	}
	both, err := w.history.Compare([]string{"c-1", "c-1"})
	if err != nil || both.Runs[0].Duration != 7.9 {
		t.Error(err, both.Runs)
	}
	book, err := w.history.Runbook("c-1")
	if err != nil || !strings.Contains(book, "7.9s") {
		t.Error(err, book)
	}
}
