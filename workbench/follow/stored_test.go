package follow

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// storing is a watch of a run with one rank, and its store.
func storing(t *testing.T) (*Watch, *logFile) {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(filepath.Join(dir, "dlwb.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.PutCluster(store.Cluster{Name: "a"})
	if err := errors.Join(err, db.PutRun(store.Run{ID: "r", Cluster: "a"})); err != nil {
		t.Fatal(err)
	}
	log, err := openLog(filepath.Join(dir, "rank-0.log"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWatch(Run{ID: "r", Ranks: []event.RankInfo{{}}}, Owner{Store: db, Changed: func() {},
		Progress: func(event.ProgressChanged, Pace) error { return nil }})
	w.reader, w.logs[0] = metrics.NewReader(nil), log
	t.Cleanup(w.closeLogs)
	return w, log
}

// put has a piece of the log come, as from a node.
func put(t *testing.T, w *Watch, log *logFile, text string) {
	t.Helper()
	from := log.size()
	done := make(chan error, 1)
	go func() {
		done <- w.logged(0, log, job.Chunk{From: job.Offset(from), Next: job.Offset(from + int64(len(text))), Data: []byte(text)})
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("storing what a rank printed waits for whoever reads it for metrics")
	}
}

func TestWhatARankPrintsIsStoredWhileItsMetricsAreStillToBeRead(t *testing.T) {
	w, log := storing(t)
	w.storing.Lock() // points can't be stored now, and nobody reads
	line := "step 1 loss 0.5\n"
	for range 40 {
		put(t, w, log, strings.Repeat(line, 4000))
	}
	if want := int64(40 * 4000 * len(line)); log.stored() != want {
		t.Errorf("%d bytes are stored, want %d", log.stored(), want)
	}
	w.storing.Unlock()
}

func TestEveryLineOfTheStoredLogIsReadOnceHoweverItCame(t *testing.T) {
	w, log := storing(t)
	put(t, w, log, "step 1 loss 0.5\nstep 2 lo")
	if err := w.readStored(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, w, log, "ss 0.25\nstep 3 loss 0.125\n")
	put(t, w, log, strings.Repeat("a line without numbers\n", 40_000)+"step 4 loss 0.0625")
	for range 2 {
		if err := w.readStored(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.lastPoints(); err != nil {
		t.Fatal(err)
	}
	points, err := w.owner.Store.Points("r")
	if err != nil {
		t.Fatal(err)
	}
	var values []float64
	for _, p := range points {
		if p.Name == "loss" {
			values = append(values, p.Value)
		}
	}
	if len(values) != 4 || values[0] != 0.5 || values[1] != 0.25 || values[3] != 0.0625 {
		t.Errorf("read %v", values)
	}
}

func TestWhatIsLeftToReadBehindAFloodIsNamedWhileItLasts(t *testing.T) {
	w, log := storing(t)
	put(t, w, log, strings.Repeat("step 1 loss 0.5\n", 10))
	named := ""
	w.owner.Changed = func() {
		for _, o := range waits.Open() {
			named += o.String() + "\n"
		}
	}
	if err := w.readRest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(named, "the store to take the values in the last 160 B of the log") {
		t.Errorf("named is %q", named)
	}
	if all := waits.Open(); len(all) > 0 {
		t.Errorf("it is waited for still: %v", all)
	}
}
