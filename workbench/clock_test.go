package workbench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// watchOf is a watch of a run on so many nodes, without connections.
func watchOf(t *testing.T, nodes int) *watch {
	t.Helper()
	w := newBench(t, t.TempDir())
	ranks := make([]event.RankInfo, nodes)
	for i := range ranks {
		ranks[i] = event.RankInfo{Rank: i, Node: i}
	}
	return &watch{w: w, data: runData{Ranks: ranks}, s: begin(t, w, "c", "r1"), run: store.Run{ID: "r1", StartedAt: now()}, nodes: make([]nodeEnd, nodes),
		clocks: make([]nodeClock, nodes), noticed: map[string]bool{}, ends: map[int]rankEnd{}, endSeen: map[int]time.Time{},
		pids: map[int]int{}, starved: map[int]int{}}
}

func (t *watch) notices() []string {
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
		r.looked(0, remote.RunState{Clock: at, Uptime: time.Hour, Free: 1 << 30})
		r.looked(1, remote.RunState{Clock: at, Uptime: 50 * time.Hour, Free: 1 << 30})
		line := func(node int, s remote.Status) {
			r.status(node, s)
			r.clock(node, s.Time, s.Uptime)
		}
		line(0, remote.Status{Kind: remote.Started, Time: at, Uptime: time.Hour})
		line(1, remote.Status{Kind: remote.Started, Time: at, Uptime: 50 * time.Hour})
		if got := r.notices(); len(got) > 0 {
			t.Fatalf("told %q of clocks that are right", got)
		}
		// Rank 0 fails first, and its clock says anything.
		line(0, remote.Status{Kind: remote.RankEnded, Rank: 0, Code: 3, Time: at.Add(by + 10*time.Second), Uptime: time.Hour + 10*time.Second})
		line(1, remote.Status{Kind: remote.RankEnded, Rank: 1, Code: 4, Time: at.Add(15 * time.Second), Uptime: 50*time.Hour + 15*time.Second})
		for i := range 2 {
			line(0, remote.Status{Kind: remote.Ended, Code: 3, Time: at.Add(by + 20*time.Second), Uptime: time.Hour + time.Duration(20+i)*time.Second})
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
	r.looked(0, remote.RunState{Clock: time.Now().Add(-24 * time.Hour), Uptime: time.Hour, Free: 1 << 30})
	r.looked(0, remote.RunState{Clock: time.Now().Add(-24 * time.Hour), Uptime: time.Hour, Free: 1 << 30})
	if got := r.notices(); len(got) != 1 || !strings.Contains(got[0], "behind this machine's") {
		t.Errorf("told %q", got)
	}
}
