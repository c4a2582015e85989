package workbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/reading"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newBench opens a workbench without providers in a fresh directory.
func newBench(t testing.TB, dir string) *Workbench {
	t.Helper()
	w, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// begin makes a cluster with a run of two ranks in the store.
func begin(t testing.TB, w *Workbench, cluster, run string) scope {
	t.Helper()
	id, err := w.db.BeginCluster(store.Cluster{Name: cluster, Provider: "local", Phase: string(event.PhaseRunning), CreatedAt: now()})
	if err != nil {
		t.Fatal(err)
	}
	s := scope{cluster: cluster, life: id, run: run}
	ranks := []event.RankInfo{{Rank: 0}, {Rank: 1, Node: 1}}
	if err := w.putRun(store.Run{ID: run, Cluster: cluster, Life: id, StartedAt: now()}, runData{Ranks: ranks, Nodes: 2}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(w.runDir(run), 0o700); err != nil {
		t.Fatal(err)
	}
	publish(t, w, s, event.RunStarted{Engine: "plain", WorldSize: 2, Nodes: 2, Ranks: ranks})
	return s
}

func publish(t testing.TB, w *Workbench, s scope, b event.Body) {
	t.Helper()
	if err := w.publish(s, b); err != nil {
		t.Fatal(err)
	}
}

func names(events []event.Event) []string {
	var n []string
	for _, e := range events {
		n = append(n, e.Body.EventName())
	}
	return n
}

func TestALateReaderGetsTheWholeStoryInOrder(t *testing.T) {
	dir := t.TempDir()
	w := newBench(t, dir)
	s := begin(t, w, "c", "r")
	if err := os.WriteFile(w.logPath("r", 0), []byte("step 1 loss: 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	step := int64(1)
	if err := w.db.AddPoints("r", []store.Point{{Name: "loss", Step: &step, Value: 4, Time: now()}}); err != nil {
		t.Fatal(err)
	}
	publish(t, w, s, event.RunEnded{Verdict: event.Succeeded, Rank: -1})
	want := []string{"run_started", "log_grew", "points", "run_ended"}
	// In this process, and in another one, which shares nothing but the files.
	for _, reader := range []*Workbench{w, newBench(t, dir)} {
		sub := reader.Subscribe("c")
		if got := names(sub.Waiting()); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if got := sub.Waiting(); len(got) != 0 {
			t.Errorf("told twice: %v", names(got))
		}
		sub.Close()
	}
	past, err := w.RunEvents(context.Background(), "r")
	if err != nil || !reflect.DeepEqual(names(past), want) {
		t.Errorf("RunEvents: %v, %v", names(past), err)
	}
}

func TestAReaderOfAReusedNameSeesOnlyTheNewLife(t *testing.T) {
	w := newBench(t, t.TempDir())
	old := begin(t, w, "c", "old")
	at := now()
	if _, err := w.db.PutCluster(store.Cluster{ID: old.life, Name: "c", Phase: string(event.PhaseGone), EndedAt: &at}); err != nil {
		t.Fatal(err)
	}
	fresh := w.Subscribe("c").FromNow()
	defer fresh.Close()
	if got := fresh.Waiting(); len(got) != 0 {
		t.Errorf("a reader of what is new got %v", names(got))
	}
	begin(t, w, "c", "new")
	publish(t, w, old, event.Noticed{Level: "info", Text: "late news of the old life"})
	for name, sub := range map[string]*reading.Subscription{"from the start": w.Subscribe("c"), "from now": fresh} {
		events := sub.Waiting()
		if len(events) != 1 || events[0].Run != "new" {
			t.Errorf("%s: %v", name, names(events))
		}
		sub.Close()
	}
}

func TestNextWakesForNewsAndEndsWithClose(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r")
	sub := w.Subscribe("c")
	sub.Waiting()
	got := make(chan []event.Event)
	go func() { got <- sub.Next(context.Background()) }()
	publish(t, w, s, event.Noticed{Level: "info", Text: "news"})
	if events := <-got; len(events) != 1 || events[0].Body != (event.Noticed{Level: "info", Text: "news"}) {
		t.Errorf("got %v", events)
	}
	go func() { got <- sub.Next(context.Background()) }()
	sub.Close()
	if events := <-got; events != nil {
		t.Errorf("after Close: %v", events)
	}
}

func TestEveryEventSurvivesTheStoreAndIsFlatJSON(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r")
	sub := w.Subscribe("c")
	defer sub.Close()
	sub.Waiting()
	for _, row := range event.Bodies {
		e := event.Event{Seq: 1, Time: now(), Cluster: "c", Body: row.Body}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s: %v", row.Body.EventName(), err)
		}
		var flat map[string]any
		if err := json.Unmarshal(b, &flat); err != nil || flat["event"] != row.Body.EventName() || flat["time"] == nil {
			t.Errorf("%s: %s (%v)", row.Body.EventName(), b, err)
		}
		if n := bytes.Count(b, []byte(`"time":`)); n != 1 {
			t.Errorf("%s has %d times", row.Body.EventName(), n)
		}
		switch row.Body.(type) {
		case event.LogGrew, event.PointsAdded, event.ProgressChanged, event.Sampled, event.LogLine, event.Point, event.RunStarted:
			continue // these do not go through the table of events
		}
		publish(t, w, s, row.Body)
		if got := sub.Waiting(); len(got) != 1 || !reflect.DeepEqual(got[0].Body, row.Body) {
			t.Errorf("%s came back as %v", row.Body.EventName(), got)
		}
	}
}

func TestAPointThatIsNoNumberIsStillJSON(t *testing.T) {
	for value, want := range map[float64]string{math.Inf(1): `"inf"`, math.Inf(-1): `"-inf"`, 2.5: "2.5"} {
		b, err := json.Marshal(event.Event{Time: now(), Body: event.Point{Point: metrics.Point{Name: "loss", Value: value}}})
		if err != nil || !strings.Contains(string(b), `"value":`+want) || !strings.Contains(string(b), `"name":"loss"`) {
			t.Errorf("%v: %s, %v", value, b, err)
		}
	}
	if b, err := json.Marshal(event.Point{Point: metrics.Point{Value: math.NaN()}}); err != nil || !strings.Contains(string(b), `"nan"`) {
		t.Errorf("NaN: %s, %v", b, err)
	}
}

func TestLocksSayWhoHoldsThem(t *testing.T) {
	dir := t.TempDir()
	a, b := newBench(t, dir), newBench(t, dir)
	held, err := a.locks.ClaimSoon(context.Background(), "c", locks.Change)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.locks.Holder("c", locks.Change); got != os.Getpid() {
		t.Errorf("holder %d, want %d", got, os.Getpid())
	}
	_, err = b.locks.ClaimSoon(context.Background(), "c", locks.Change)
	var busy *locks.BusyError
	if !errors.As(err, &busy) || busy.PID != os.Getpid() {
		t.Errorf("got %v", err)
	}
	held.Release()
	if got := b.locks.Holder("c", locks.Change); got != 0 {
		t.Errorf("holder %d after release", got)
	}
	free, err := b.locks.ClaimSoon(context.Background(), "c", locks.Change)
	if err != nil {
		t.Fatal(err)
	}
	free.Release()
}

func TestReadLogEndsWithEOF(t *testing.T) {
	w := newBench(t, t.TempDir())
	begin(t, w, "c", "r")
	buf := make([]byte, 8)
	if _, err := w.ReadLog("r", 0, 0, buf); err != io.EOF {
		t.Errorf("a log that has not begun: %v", err)
	}
	if err := os.WriteFile(w.logPath("r", event.LauncherLog(1)), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := w.ReadLog("r", event.LauncherLog(1), 1, buf); string(buf[:n]) != "ello" || err != io.EOF {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

func TestUnknownNamesAreAnsweredWithWhatThereIs(t *testing.T) {
	w := newBench(t, t.TempDir())
	begin(t, w, "alpha", "alpha-1")
	_, clusterErr := w.FindCluster("beta")
	_, runErr := w.FindRun("beta-1")
	for _, err := range []error{clusterErr, runErr} {
		var f *event.Fault
		if !errors.As(err, &f) || !strings.Contains(f.Next, "alpha") {
			t.Errorf("got %v", err)
		}
	}
	for _, word := range []string{"", "alpha", "alpha-1", "alpha-"} {
		if r, err := w.FindRun(word); err != nil || r.ID != "alpha-1" {
			t.Errorf("%q: %v, %v", word, r.ID, err)
		}
	}
}

func TestAReceiptIsProvenOnlyWhenNothingIsOpen(t *testing.T) {
	r := cloud.Receipt{Cluster: "c", Resources: []cloud.Resource{{Kind: "process", State: cloud.Gone}, {Kind: "directory", State: cloud.Unknown}}}
	if r.Proven() {
		t.Error("an unknown resource passed as proven")
	}
	if text := fmt.Sprint(&UnresolvedError{Receipt: r}); !strings.Contains(text, "UNRESOLVED") || !strings.Contains(text, "1 of its 2") {
		t.Error(text)
	}
}

// Somebody may begin something at the moment at which dlwb ends: what is counted to be
// waited for is counted before the wait (the race detector tells), and runs all the same.
func TestWhatIsBegunBesideCloseRunsAndEnds(t *testing.T) {
	for range 8 {
		w := newBench(t, t.TempDir())
		closed, began := make(chan error, 1), make(chan error, 1)
		go func() { closed <- w.Close() }()
		w.background(func(ctx context.Context) {
			<-ctx.Done()
			began <- ctx.Err()
		})
		if err := errors.Join(<-closed, ignore(<-began, context.Canceled)); err != nil {
			t.Fatal(err)
		}
	}
}

func ignore(err, usual error) error {
	if errors.Is(err, usual) {
		return nil
	}
	return err
}
