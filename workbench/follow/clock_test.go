package follow

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// newOwner is an owner of a run of nobody's, with a store, and that store.
func newOwner(t testing.TB) (Owner, *store.Store) {
	t.Helper()
	db, err := store.Open(filepath.Join(t.TempDir(), "dlwb.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	life, err := db.BeginCluster(store.Cluster{Name: "c", CreatedAt: now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.PutRun(store.Run{ID: "r", Cluster: "c", Life: life, StartedAt: now(), Data: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	return Owner{Store: db, Changed: func() {}, Publish: func(event.Body) error { return nil }}, db
}

// watchOf is a watch of a run on so many nodes, without connections.
func watchOf(t *testing.T, nodes int) *Watch {
	t.Helper()
	owner, _ := newOwner(t)
	run := Run{ID: "r", StartedAt: now(), Replicas: make([]job.Replica, nodes)}
	for i := range nodes {
		run.Ranks = append(run.Ranks, event.RankInfo{Rank: i, Node: i})
	}
	return newWatch(run, owner)
}

func (t *Watch) notices() []string {
	var texts []string
	for text := range t.noticed {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return texts
}

func TestAClockThatIsSetDuringTheRunIsToldOnceAndCountsNowhere(t *testing.T) {
	const day = 24 * time.Hour
	for _, by := range []time.Duration{day, -day} {
		r := watchOf(t, 2)
		at := time.Now()
		r.looked(0, job.State{Clock: at, Uptime: time.Hour, Free: 1 << 30})
		r.looked(1, job.State{Clock: at, Uptime: 50 * time.Hour, Free: 1 << 30})
		line := func(node int, s job.Status) {
			r.status(node, s)
			r.clock(node, s.Time, s.Uptime)
		}
		line(0, job.Status{Kind: job.Started, Time: at, Uptime: time.Hour})
		line(1, job.Status{Kind: job.Started, Time: at, Uptime: 50 * time.Hour})
		if got := r.notices(); len(got) > 0 {
			t.Fatalf("told %q of clocks that are right", got)
		}
		// Rank 0 fails first, and its clock says anything.
		line(0, job.Status{Kind: job.RankEnded, Rank: 0, Code: 3, Time: at.Add(by + 10*time.Second), Uptime: time.Hour + 10*time.Second})
		line(1, job.Status{Kind: job.RankEnded, Rank: 1, Code: 4, Time: at.Add(15 * time.Second), Uptime: 50*time.Hour + 15*time.Second})
		for i := range 2 {
			line(0, job.Status{Kind: job.Ended, Code: 3, Time: at.Add(by + 20*time.Second), Uptime: time.Hour + time.Duration(20+i)*time.Second})
		}
		if v := judge(r.nodes, r.rankEnds()); v.Rank != 0 || v.ExitCode != 3 {
			t.Errorf("by %v: the verdict is %+v, want rank 0", by, v)
		}
		if got := r.duration(); got != 20 && got != 21 {
			t.Errorf("by %v: the run took %v s", by, got)
		}
		if got := r.notices(); len(got) != 1 || !strings.Contains(got[0], "the clock of node0 was set 24h") {
			t.Errorf("by %v: told %q", by, got)
		}
	}
}

func TestAClockThatIsWrongFromTheBeginningIsTold(t *testing.T) {
	r := watchOf(t, 1)
	r.looked(0, job.State{Clock: time.Now().Add(-24 * time.Hour), Uptime: time.Hour, Free: 1 << 30})
	r.looked(0, job.State{Clock: time.Now().Add(-24 * time.Hour), Uptime: time.Hour, Free: 1 << 30})
	if got := r.notices(); len(got) != 1 || !strings.Contains(got[0], "behind this machine's") {
		t.Errorf("told %q", got)
	}
}
