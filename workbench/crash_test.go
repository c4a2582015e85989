package workbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/locks"
)

// Killed between the two, dlwb has told an end that is not on record.
func TestAnEndThatWasToldIsPutOnRecordByWhoeverLooks(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r")
	publish(t, w, s, event.RunEnded{ExitCode: 3, Verdict: event.ExitedBad, Cause: "why", Rank: 1, Node: 1})
	if run, live, err := w.liveRun("c"); live || err != nil {
		t.Errorf("the run goes on: %+v, %v", run, err)
	}
	r, data, err := w.runRecord("r")
	if err != nil || r.EndedAt == nil || *r.ExitCode != 3 || r.Verdict != "failed" || r.Cause != "why" || data.RankAtFault != 1 {
		t.Errorf("%+v, %+v, %v", r, data, err)
	}
}

func TestAnEndIsToldOnce(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r")
	for _, verdict := range []event.Verdict{event.Stopped, event.Lost} {
		r, data, err := w.runRecord("r")
		if err == nil {
			err = w.recordEnd(s, r, data, event.RunEnded{Verdict: verdict, Cause: "why"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sub := w.Subscribe("c")
	defer sub.Close()
	if got := strings.Join(names(sub.Waiting()), " "); got != "run_started run_ended" {
		t.Error(got)
	}
	if r, _, err := w.runRecord("r"); err != nil || r.Verdict != string(event.Stopped) {
		t.Errorf("the first word does not count: %+v, %v", r, err)
	}
}

func TestAPhaseThatNobodyIsAtIsNotShown(t *testing.T) {
	w := newBench(t, t.TempDir())
	for _, c := range []struct {
		on    event.Phase
		nodes int
		held  bool
		want  event.Phase
	}{
		{event.PhaseStarting, 0, true, event.PhaseStarting},
		{event.PhaseStarting, 2, true, event.PhaseStarting},
		{event.PhaseStarting, 2, false, event.PhaseReady},
		{event.PhaseStarting, 0, false, event.PhaseUnresolved},
		{event.PhaseStopping, 2, true, event.PhaseStopping},
		{event.PhaseStopping, 2, false, event.PhaseUnresolved},
		{event.PhaseReady, 2, true, event.PhaseReady},
	} {
		var lock *locks.Claim
		if c.held {
			var err error
			if lock, err = w.locks.ClaimSoon(context.Background(), "c", locks.Change); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.phaseOf(store.Cluster{Name: "c", Phase: string(c.on)}, c.nodes); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
		lock.Release()
	}
}

func TestALookAtALockKeepsNobodyFromTakingIt(t *testing.T) {
	w := newBench(t, t.TempDir())
	done := make(chan struct{})
	defer func() { <-done }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w.locks.Holder("c", locks.Watch)
			time.Sleep(time.Millisecond)
		}
	}()
	for range 200 {
		lock, err := w.locks.ClaimSoon(ctx, "c", locks.Watch)
		if err != nil {
			t.Fatal(err)
		}
		lock.Release()
	}
}

// Whoever changes a record late takes nothing back of what others wrote.
func TestAnOldViewOfAClusterOverwritesNothing(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r")
	d := &drive{w: w, s: s}
	if _, err := w.updateCluster(s.life, func(c *store.Cluster) { c.Data, c.PricePerHour = []byte(`{"gpus":[7]}`), 2 }); err != nil {
		t.Fatal(err)
	}
	if err := d.setPhase(event.PhaseReady); err != nil {
		t.Fatal(err)
	}
	c, err := w.db.ClusterLife(s.life)
	if err != nil || string(c.Data) != `{"gpus":[7]}` || c.PricePerHour != 2 || c.Phase != string(event.PhaseReady) {
		t.Errorf("%+v, %v", c, err)
	}
}

// Of two that take a cluster down the later one does not touch its next life.
func TestTheSecondTeardownGetsTheReceiptOfTheFirst(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r")
	at := now()
	_, err := w.updateCluster(s.life, func(c *store.Cluster) {
		c.EndedAt, c.Phase, c.Receipt = &at, string(event.PhaseGone), []byte(`{"cluster":"c","files_left":0}`)
	})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.remove(context.Background(), s.life); err != nil || !r.Proven() {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestALaunchThatWasCutShortSaysWhatBegan(t *testing.T) {
	for _, c := range []struct {
		states  []job.Phase
		verdict event.Verdict
		cause   string
	}{
		{[]job.Phase{job.Absent, job.Absent}, event.ExitedBad, "nothing ran"},
		{[]job.Phase{job.Running, job.Absent}, event.ExitedBad, "node0 had begun, node1 had not"},
		{[]job.Phase{job.Absent, follow.PhaseGone}, event.Lost, "node1 is gone"},
	} {
		if got := follow.Unstarted(c.states); got.Verdict != c.verdict || !strings.Contains(got.Cause, c.cause) {
			t.Errorf("%v: %+v", c.states, got)
		}
	}
}

// A dlwb that was suspended holds the watch, and nobody waits for it for ever.
func TestASuspendedWatchIsNamed(t *testing.T) {
	dir := t.TempDir()
	suspended, w := newBench(t, dir), newBench(t, dir)
	s := begin(t, w, "c", "r")
	lock, err := suspended.locks.Claim("c", locks.Watch)
	if err != nil || lock == nil {
		t.Fatal(err)
	}
	defer lock.Release()
	c, err := w.db.ClusterLife(s.life)
	if err != nil {
		t.Fatal(err)
	}
	err = w.awaitEnd(context.Background(), c, "r", 50*time.Millisecond)
	var f *event.Fault
	if !errors.As(err, &f) || !strings.Contains(f.Why, fmt.Sprintf("process %d, the dlwb that watches it, still brings its logs home, or does not go on", os.Getpid())) {
		t.Errorf("%v", err)
	}
}

func TestAClockThatWasSetBackMakesNoTimeNegative(t *testing.T) {
	if got := since(time.Now().Add(time.Hour).Round(0)); got != 0 {
		t.Errorf("%v", got)
	}
}
