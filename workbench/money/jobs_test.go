package money

import (
	"math"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench/event"
)

// told is a life of jobs that are paid for one by one.
type told struct {
	Account
	t     *testing.T
	began time.Time
}

func (a *told) at(minute float64, run string, b event.Body) {
	a.Apply(event.Event{Time: a.moment(minute), Run: run, Body: b})
}

func (a *told) moment(minute float64) time.Time {
	return a.began.Add(time.Duration(minute * float64(time.Minute)))
}

func (a *told) up(minute float64, run string, stay time.Duration) {
	a.at(minute, run, event.ClusterUp{Nodes: make([]cloud.Node, 2), PricePerHour: 60, Job: run, Stay: stay.Seconds()})
}

func (a *told) is(minute, spent, rate float64) {
	a.t.Helper()
	if s, r := a.Spent(a.moment(minute)), a.Rate(a.moment(minute)); math.Abs(s-spent) > 1e-9 || math.Abs(r-rate) > 1e-9 {
		a.t.Errorf("after %v minutes: spent %v at %v an hour, want %v at %v", minute, s, r, spent, rate)
	}
}

func newTold(t *testing.T) *told {
	return &told{t: t, began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// What several jobs have cost is the sum of what each has, from its hand-in to its end,
// or as it is billed.
func TestJobsThatArePaidOneByOneAddUp(t *testing.T) {
	a := newTold(t)
	a.at(0, "", event.PlanMade{PricePerHour: 60})
	a.is(0, 0, 60) // as the plan says
	a.up(0, "a", 0)
	a.up(10, "b", 0)
	a.is(15, 15+5, 120)
	a.at(20, "a", event.RunEnded{})
	a.up(21, "b", 0) // it is found again
	a.is(30, 20+20, 60)
	a.at(31, "a", event.RunBilled{Cost: 12})
	a.is(31, 12+21, 60)
	a.at(40, "b", event.RunEnded{ExitCode: 1})
	a.at(41, "b", event.RunBilled{Cost: 25})
	a.is(90, 12+25, 0)
	a.at(91, "c", event.RunBilled{Cost: 3}) // whoever handed it in was killed
	a.at(91, "d", event.RunBilled{})        // it was never made
	a.is(92, 12+25+3, 0)
	clone := a.Clone()
	a.at(93, "a", event.RunBilled{Cost: 99})
	if got := clone.Spent(a.moment(94)); got != 40 {
		t.Errorf("a copy has changed: %v", got)
	}
}

// Machines that stay behind a job cost until another takes them over, or their time is
// over; those of a job that failed do not stay.
func TestMachinesThatStayCostUntilTheNextJobHasThem(t *testing.T) {
	a := newTold(t)
	a.up(0, "a", 30*time.Minute)
	a.at(10, "a", event.RunEnded{})
	a.is(15, 15, 60)
	a.up(20, "b", 30*time.Minute)
	a.is(25, 20+5, 60)
	a.at(30, "b", event.RunEnded{})
	a.is(45, 20+25, 60)
	a.is(99, 20+40, 0)
	a.up(100, "c", 30*time.Minute)
	a.at(110, "c", event.RunEnded{ExitCode: 1})
	a.is(120, 20+40+10, 0)
}

// Of what a removal has left nobody knows which jobs they are.
func TestJobsThatARemovalHasLeftMayCost(t *testing.T) {
	a := newTold(t)
	for _, run := range []string{"a", "b", "c"} {
		a.up(0, run, 0)
	}
	for _, run := range []string{"a", "b", "c"} {
		a.at(10, run, event.RunEnded{})
	}
	a.is(11, 30, 0)
	a.at(12, "", event.ReceiptMade{ProcessesLeft: 2, Cost: 20})
	a.is(13, 20, 120)
	a.at(14, "", event.ReceiptMade{Proven: true, Cost: 31})
	a.is(15, 31, 0)
}

// A life that an older dlwb has begun counted its one job as a cluster.
func TestAJobThatWasCountedAsAClusterIsCountedNoFurther(t *testing.T) {
	a := newTold(t)
	a.at(0, "old", event.ClusterUp{Nodes: make([]cloud.Node, 2), PricePerHour: 60})
	a.is(10, 10, 60)
	a.up(20, "new", 0)
	a.is(30, 20+10, 60)
}
