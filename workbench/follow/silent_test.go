package follow

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/workbench/event"
)

// A node that was given up is named with its ranks, and not said to be gone; a rank
// that merely noticed is no cause, and one that had failed before is.
func TestTheVerdictNamesNodesThatWereGivenUp(t *testing.T) {
	at := time.Date(2026, 3, 4, 14, 3, 10, 0, time.UTC)
	gone := func(ranks ...int) nodeEnd { return nodeEnd{begun: true, silent: at, ranks: ranks} }
	for _, c := range []struct {
		nodes   []nodeEnd
		ends    []rankEnd
		verdict event.Verdict
		node    int
		says    string
	}{
		{[]nodeEnd{{ended: true}, gone(2, 3)}, nil, event.Lost, 1, "node1 (ranks 2, 3) has not been heard of since 14:03:10 UTC, and whether it still runs is not known"},
		{[]nodeEnd{{ended: true}, gone(1), gone(2)}, nil, event.Lost, 1, "node1 (rank 1) has not been heard of since 14:03:10 UTC, node2 (rank 2)"},
		{[]nodeEnd{{ended: true}, gone(1)}, []rankEnd{{rank: 0, code: 1, at: at.Unix() + 20}}, event.Lost, 1, "; then rank 0 on node0 exited"},
		{[]nodeEnd{{ended: true}, gone(1)}, []rankEnd{{rank: 0, code: 3, at: at.Unix() + 20}}, event.Lost, 1, "node1"},
		{[]nodeEnd{{ended: true}, gone(1)}, []rankEnd{{rank: 0, code: 3, at: at.Unix() - 60}}, event.ExitedBad, 0, "code 3; node1 (rank 1) has not been heard of"},
		{[]nodeEnd{{ended: true, stopping: []string{Asked + "stopped by request"}}, gone(1)}, nil, event.Stopped, -1, "stopped by request; node1"},
		// Another dlwb, to which it answers again, reads the same of the others.
		{[]nodeEnd{{ended: true, stopping: []string{reasonSilent + "node1 (rank 1) has not been heard of"}}, {ended: true}}, nil, event.Lost, 1, "node1 (rank 1)"},
	} {
		v := judge(c.nodes, c.ends)
		if v.Verdict != c.verdict || v.Node != c.node || !strings.Contains(v.Cause, c.says) || v.ExitCode == 0 || strings.Contains(v.Cause, "is gone") {
			t.Errorf("got %+v, want %s of node %d, %q", v, c.verdict, c.node, c.says)
		}
	}
}

// Where no node is heard of, nothing is given up: it may be this machine that is cut
// off. One that comes back is not written off any more.
func TestNothingIsGivenUpWhereNobodyIsHeardOf(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	w := &Watch{run: Run{Lost: time.Minute}, nodes: make([]nodeEnd, 2), heard: []time.Time{long, long},
		gone: map[int]time.Time{0: long, 1: long}, owner: Owner{Publish: func(event.Body) error { return nil }}}
	if w.overdue() {
		t.Error("nodes are overdue, and none is heard of")
	}
	w.reach(0, true, "")
	if w.overdue() {
		t.Error("a node is overdue at once when another one comes back")
	}
	w.company = long
	if !w.overdue() {
		t.Error("no node is overdue")
	}
	w.giveUp([]bool{true, false})
	if lost := w.Lost(); lost[0] || !lost[1] {
		t.Errorf("written off: %v", lost)
	}
	w.reach(1, true, "")
	if lost := w.Lost(); lost[1] {
		t.Error("one that is heard of is written off")
	}
}

// refusing is a replica whose machine lets nobody in.
type refusing struct {
	job.Replica
	last time.Time
}

func (r refusing) Refused() (now bool, last time.Time) { return true, r.last }

// A host that refuses a login is there, and what runs on it is not given up: neither beside
// others that are heard, nor where none is.
func TestANodeThatRefusesALoginIsNotLost(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	w := &Watch{run: Run{Lost: time.Minute, Replicas: []job.Replica{refusing{}, refusing{}}}, nodes: make([]nodeEnd, 2), heard: []time.Time{long, long},
		gone: map[int]time.Time{1: long}, company: long, owner: Owner{Publish: func(event.Body) error { return nil }}}
	if w.overdue() {
		t.Error("a node that refuses a login is overdue")
	}
	w.gone[0] = long
	if w.aloneTooLong() {
		t.Error("nodes that refuse a login are given up together")
	}
}

// That a node lets nobody in is told also when it was found to be out of reach before:
// somebody has to log in. It is told once.
func TestThatALoginIsRefusedIsToldWhenItShows(t *testing.T) {
	var told []string
	refuses := false
	w := &Watch{run: Run{Replicas: []job.Replica{barring{refuses: &refuses}}}, nodes: make([]nodeEnd, 1), gone: map[int]time.Time{},
		owner: Owner{Publish: func(b event.Body) error { told = append(told, b.(event.NodeChanged).Why); return nil }}}
	w.reach(0, false, "the agent there has ended")
	w.reach(0, false, "no answer")
	refuses = true
	w.reach(0, false, "log in")
	w.reach(0, false, "log in, please")
	w.reach(0, true, "")
	w.reach(0, false, "log in again")
	if want := []string{"the agent there has ended", "log in", "", "log in again"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// barring is a replica whose machine lets people in or not.
type barring struct {
	job.Replica
	refuses *bool
}

func (b barring) Refused() (now bool, last time.Time) { return *b.refuses, time.Time{} }

// heard is a replica on a machine that lets one in; what else it is does not matter.
type heard struct{ job.Replica }

// One that refuses a login keeps no run from ending of which others are lost: beside a
// node that is heard, and where none is. It is named, and not called lost.
func TestANodeThatRefusesALoginKeepsNoOtherFromBeingLost(t *testing.T) {
	const lost = time.Minute
	now := time.Now()
	long := now.Add(-time.Hour)
	watch := func(last time.Time, replicas ...job.Replica) *Watch {
		w := &Watch{run: Run{Lost: lost}, gone: map[int]time.Time{}, owner: Owner{Publish: func(event.Body) error { return nil }}}
		w.run.Replicas = append(replicas, refusing{last: last}, heard{})
		for i := range w.run.Replicas {
			w.nodes = append(w.nodes, nodeEnd{begun: true, ranks: []int{i}})
			w.heard = append(w.heard, long)
		}
		for i := len(replicas); i < len(w.run.Replicas); i++ {
			w.gone[i] = long
		}
		return w
	}

	beside := watch(now, heard{})
	beside.company = long
	if !beside.overdue() {
		t.Fatal("no node is overdue")
	}
	beside.giveUp([]bool{true, false, false})
	beside.nodes[0].ended = true
	if lost := beside.Lost(); lost[0] || !lost[1] || !lost[2] || !beside.ended() {
		t.Errorf("written off: %v; it has ended: %v", lost, beside.ended())
	}
	v := judge(beside.nodes, nil)
	if v.Verdict != event.Lost || v.Node != 2 || !strings.Contains(v.Cause, "node2 (rank 2) has not been heard of since") ||
		!strings.HasSuffix(v.Cause, ", node1 (rank 1) refuses a login, and whether they still run is not known") {
		t.Errorf("the verdict is %+v", v)
	}
	beside.reach(1, true, "")
	if beside.Lost()[1] || strings.Contains(silentCause(beside.nodes), "refuses") {
		t.Error("one that lets us in again is written off")
	}

	for at, proves := range map[time.Time]bool{now: true, long.Add(lost / 2): false} {
		w := watch(at)
		if !w.aloneTooLong() || w.refusalProves() != "" != proves {
			t.Errorf("alone: %v; a refusal %v after the last word of the other proves %q", w.aloneTooLong(), at.Sub(long), w.refusalProves())
		}
	}
	flaky := watch(now)
	flaky.run.Replicas[0] = lately{refusing{last: now}}
	if flaky.company = long; !flaky.overdue() {
		t.Error("the other is not overdue")
	}
	flaky.nodes[1].ended = true
	if flaky.overdue() {
		t.Error("one that has refused a login just now, and does not answer for a moment, is overdue")
	}
}

// lately has refused a login, and does not answer now.
type lately struct{ refusing }

func (r lately) Refused() (now bool, last time.Time) { return false, r.last }
