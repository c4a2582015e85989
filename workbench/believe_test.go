package workbench

import (
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

func TestANodeIsBelievedOnlyWhatItSaysOfItsOwnRanks(t *testing.T) {
	w := &watch{nodes: make([]nodeEnd, 2), ends: map[int]rankEnd{}, pids: map[int]int{},
		data: runData{Ranks: []event.RankInfo{{Rank: 0, Node: 0}, {Rank: 1, Node: 1}}}, endSeen: map[int]time.Time{}}
	for rank := range 1000 {
		w.status(1, remote.Status{Kind: remote.RankStarted, Rank: rank, PID: 5})
		w.status(1, remote.Status{Kind: remote.RankEnded, Rank: rank, Code: 3})
		w.status(1, remote.Status{Kind: remote.Stopping, Rank: -1, Why: "x"})
	}
	w.unrecorded(1, &remote.LostRunError{State: remote.RunState{Ranks: map[int]remote.Exit{0: {Code: 9}, 7: {Code: 9}}}})
	if len(w.ends) != 1 || w.ends[1].code != 3 || len(w.pids) != 1 || len(w.nodes[1].stopping) > stoppingMost {
		t.Errorf("ends %v, pids %v, %d reasons", w.ends, w.pids, len(w.nodes[1].stopping))
	}
}
