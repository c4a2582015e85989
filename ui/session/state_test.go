package session

import (
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/workbench/event"
)

// told folds events, one a second, and returns what is known then.
func told(bodies ...event.Body) *State {
	s := NewState("c")
	for i, b := range bodies {
		run := ""
		switch b.(type) {
		case event.RunStarted, event.RunEnded, event.RankEnded:
			run = "r1"
		}
		s.Apply(event.Event{Time: time.Unix(int64(i), 0), Run: run, Body: b})
	}
	return s
}

func TestThePhaseFollowsTheLifeOfACluster(t *testing.T) {
	life := []struct {
		body event.Body
		want event.Phase
	}{
		{event.PlanMade{Steps: []string{event.StepCluster, event.StepTrain, event.StepDown}}, event.PhaseStarting},
		{event.StepStarted{Step: event.StepCluster}, event.PhaseStarting},
		{event.StepEnded{Step: event.StepCluster, OK: true}, event.PhaseStarting},
		{event.ClusterUp{Provider: "local", Nodes: []cloud.Node{{Index: 0, Name: "node0"}}}, event.PhaseReady},
		{event.RunStarted{WorldSize: 2}, event.PhaseRunning},
		{event.RunEnded{Verdict: event.Succeeded}, event.PhaseReady},
		{event.ClusterStopped{}, event.PhaseStopped},
		{event.StepStarted{Step: event.StepDown}, event.PhaseStopping},
		{event.StepEnded{Step: event.StepDown}, event.PhaseUnresolved},
		{event.ReceiptMade{}, event.PhaseUnresolved},
		{event.ReceiptMade{Proven: true}, event.PhaseGone},
	}
	var bodies []event.Body
	for _, c := range life {
		bodies = append(bodies, c.body)
		if got := told(bodies...).Phase(); got != c.want {
			t.Errorf("after %T the cluster is %s, want %s", c.body, got, c.want)
		}
	}
}

func TestAnotherCommandLeavesTheRunAsItIs(t *testing.T) {
	s := told(
		event.ClusterUp{Nodes: []cloud.Node{{Name: "node0"}}},
		event.RunStarted{WorldSize: 1},
		event.PlanMade{Until: event.StepSync, Steps: []string{event.StepSync}},
		event.StepStarted{Step: event.StepSync},
		event.StepEnded{Step: event.StepSync, OK: true, Text: "3 files"},
	)
	if s.Launched == nil || s.Phase() != event.PhaseRunning || len(s.Steps) != 0 {
		t.Errorf("launched %v, %s, %d steps", s.Launched, s.Phase(), len(s.Steps))
	}
	if n := s.Notices; len(n) != 1 || n[0].Text != "another command on this cluster: sync: 3 files" {
		t.Errorf("it was told as %+v", n)
	}
}

func TestANodeWithANumberFarOutsideIsNone(t *testing.T) {
	s := told(event.NodeChanged{Node: 1 << 30, State: cloud.Gone}, event.NodeChanged{Node: -1}, event.NodeChanged{Node: 2, State: cloud.Alive})
	if len(s.Nodes) != 3 || s.Nodes[2].State != cloud.Alive || s.Nodes[0].State != cloud.Unknown {
		t.Errorf("%d nodes: %+v", len(s.Nodes), s.Nodes)
	}
}

func TestTheHeatmapHoldsAValueUntilItIsStale(t *testing.T) {
	util := 50.0
	var n Node
	n.noteHeat(time.Unix(100, 0), []metrics.GPU{{Util: &util}})
	cells := n.Heatmap(GPUUse, 2, 12, time.Unix(111, 0), 1)
	for col, c := range cells[0] {
		if want := col <= 6; c.Known != want { // at 100 s, and for six more
			t.Errorf("column %d: known %v, want %v", col, c.Known, want)
		}
	}
	if c := cells[1][0]; c.Known {
		t.Errorf("a GPU that no sample had is %+v", c)
	}
}

func TestOfARunThatGoesOnNothingIsSaidToBeOver(t *testing.T) {
	s := told(event.RunStarted{WorldSize: 1}, event.ProgressChanged{Progress: metrics.Progress{Epoch: 1, Epochs: 3}, ETA: 10})
	if left, known := s.ETANow(time.Unix(6, 0)); left != 5*time.Second || !known {
		t.Errorf("5 seconds behind an estimate of 10: %v left, %v", left, known)
	}
	if left, known := s.ETANow(time.Unix(60, 0)); known {
		t.Errorf("an estimate that has run out: %v left", left)
	}
	s = told(event.RunStarted{WorldSize: 1}, event.ProgressChanged{Progress: metrics.Progress{Step: 120, Steps: 100}})
	if f, known := s.Fraction(); known {
		t.Errorf("past what the run said that it would need: %v", f)
	}
}
