package workbench

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/sweep"
)

func TestATrialWhoseStoryCanNotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	w := newBench(t, dir)
	s := begin(t, w, "c", "r")
	db, err := sql.Open("sqlite", filepath.Join(dir, "dlwb.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("ALTER TABLE events RENAME TO lost"); err != nil {
		t.Fatal(err)
	}
	d := &drive{w: w, s: s}
	if _, err := d.watchTrial(context.Background(), "r"); err == nil {
		t.Error("no error")
	}
}

func TestNoTrialIsLaunchedOnWhatIsNotReady(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r")
	d := &drive{w: w, s: s, plan: &planning.Plan{Cluster: "c", Profile: &profiles.Profile{}}}
	for _, phase := range []event.Phase{event.PhaseStopping, event.PhaseStopped, event.PhaseUnresolved, event.PhaseGone} {
		if _, err := w.updateCluster(s.life, func(c *store.Cluster) { c.Phase = string(phase) }); err != nil {
			t.Fatal(err)
		}
		lock, err := w.locks.ClaimSoon(context.Background(), "c", locks.Change)
		if err != nil {
			t.Fatal(err)
		}
		for _, held := range []bool{true, false} { // while it is removed, and after
			if !held {
				lock.Release()
			}
			err := d.launchTrial(context.Background(), "r2", sweep.Label{}, d.plan.Profile)
			halt := new(sweep.HaltError)
			if !errors.As(err, &halt) || !strings.Contains(err.Error(), "the cluster is "+string(phase)) {
				t.Errorf("%s: %v", phase, err)
			}
		}
		if c, err := w.db.ClusterLife(s.life); err != nil || c.Phase != string(phase) {
			t.Errorf("the phase %s became %s, %v", phase, c.Phase, err)
		}
	}
}

func TestALaunchWaitsForWhoeverChangesTheCluster(t *testing.T) {
	w := newBench(t, t.TempDir())
	begin(t, w, "c", "r")
	turn := w.locks.Turn("c", locks.Change)
	for range 2 { // shared
		if lock, err := turn.Claim(); err != nil || lock == nil {
			t.Fatal(err)
		}
	}
	asked := 0
	lock, err := w.locks.ClaimWhile(context.Background(), "c", locks.Change, func() error {
		if asked++; asked == 1 {
			turn.Release()
		}
		return nil
	})
	if err != nil || lock == nil || asked != 2 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	lock.Release()
}

func TestAllUnfinishedRunsOfALifeAreKnown(t *testing.T) {
	w := newBench(t, t.TempDir())
	old := begin(t, w, "c", "old")
	at := now()
	if _, err := w.updateCluster(old.life, func(c *store.Cluster) { c.EndedAt = &at }); err != nil {
		t.Fatal(err)
	}
	s := begin(t, w, "c", "t1")
	for _, id := range []string{"t2", "t3", "t4"} {
		if err := w.putRun(store.Run{ID: id, Cluster: "c", Life: s.life, StartedAt: now()}, runData{Nodes: 1}); err != nil {
			t.Fatal(err)
		}
	}
	s.run = "t3"
	publish(t, w, s, event.RunEnded{Verdict: event.Succeeded}) // never started: nothing is left to do
	c, err := w.db.ClusterLife(s.life)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := w.unfinishedRuns(c)
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	if got := strings.Join(ids, " "); err != nil || len(ids) != 3 || strings.Contains(got, "t3") || strings.Contains(got, "old") {
		t.Errorf("%s, %v", got, err)
	}
	w.closeRuns(c)
	for _, id := range ids {
		if r, _, err := w.runRecord(id); err != nil || r.EndedAt == nil || r.Verdict != string(event.Stopped) {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
}

// unstoppable carries runs that can't be stopped now.
type unstoppable struct {
	carrier
	err error
}

func (u unstoppable) replicas(string) ([]job.Replica, error) { return nil, u.err }

func TestTheEndOfATrialWhoseLaunchFailedIsToldOnceItIsStopped(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r")
	for id, c := range map[string]struct {
		trial *sweep.Label
		err   error
		ended bool
	}{
		"stopped":     {&sweep.Label{Trial: 1}, nil, true},
		"unreachable": {&sweep.Label{Trial: 2}, errors.New("node0 does not answer"), false},
		"no trial":    {nil, errors.New("node0 does not answer"), true},
	} {
		run, data := store.Run{ID: id, Cluster: "c", Life: s.life, StartedAt: now()}, runData{Nodes: 1, Trial: c.trial}
		if err := w.putRun(run, data); err != nil {
			t.Fatal(err)
		}
		s.run = id
		w.abandon(s, unstoppable{err: c.err}, run, data, errors.New("connection reset"))
		if _, ended := w.Ended(id); ended != c.ended {
			t.Errorf("%s: ended %v", id, ended)
		}
	}
}

// gone carries a run whose nodes do not answer any more: the dlwb that watches it was
// told its end, and takes them down.
type gone struct {
	carrier
	job.Replica
	end func()
}

func (g gone) replicas(string) ([]job.Replica, error) { return []job.Replica{g}, nil }

func (g gone) State(context.Context) (job.State, error) { return job.State{}, nil }

func (g gone) Stop(context.Context, time.Duration, string) (int, error) {
	g.end()
	return 0, errors.New("connection refused")
}

func TestAStopWhoseNodesAreTakenDownBehindTheEndHasStopped(t *testing.T) {
	for _, told := range []bool{true, false} {
		w := newBench(t, t.TempDir())
		s := begin(t, w, "c", "r")
		c, err := w.db.ClusterLife(s.life)
		if err != nil {
			t.Fatal(err)
		}
		err = w.stopOn(t.Context(), c, gone{end: func() {
			if told {
				publish(t, w, s, event.RunEnded{Verdict: event.Stopped, Rank: -1})
			}
		}}, "r")
		if (err == nil) != told {
			t.Errorf("the end is told: %v; stop: %v", told, err)
		}
	}
}
