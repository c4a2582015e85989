package money

import (
	"math"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench/event"
)

// accountOf folds events that lie so far after a beginning.
func accountOf(began time.Time, all ...entry) *Account {
	a := &Account{}
	for _, e := range all {
		a.Apply(event.Event{Time: began.Add(e.after), Body: e.body})
	}
	return a
}

type entry = struct {
	after time.Duration
	body  event.Body
}

func TestCostAndLifeEndWhenTheMachinesHaveEnded(t *testing.T) {
	began := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	up := entry{0, event.ClusterUp{PricePerHour: 2, Nodes: make([]cloud.Node, 2), Ends: began.Add(2 * time.Hour)}}
	gone := func(node int, after time.Duration) entry {
		return entry{after, event.NodeChanged{Node: node, State: cloud.Gone}}
	}
	budget := func(node int) entry {
		return entry{time.Second, event.LeaseChanged{Node: node, Bound: BoundBudget, Ends: began.Add(90 * time.Second)}}
	}
	for name, c := range map[string]struct {
		a     *Account
		at    time.Duration
		spent float64
		lived time.Duration
	}{
		"while they run": {accountOf(began, up), time.Hour, 2, time.Hour},
		"past the lifetime, and nothing is proven":  {accountOf(began, up), 9 * time.Hour, 18, 9 * time.Hour},
		"past the budget, and one is proven gone":   {accountOf(began, up, budget(0), budget(1), gone(1, 50*time.Minute)), time.Hour, 1.025, time.Hour},
		"past the budget, both proven gone":         {accountOf(began, up, budget(0), budget(1), gone(0, time.Hour), gone(1, time.Hour)), time.Hour, 0.05, 90 * time.Second},
		"both proven gone":                          {accountOf(began, up, gone(0, time.Hour), gone(1, time.Hour)), 3 * time.Hour, 2, time.Hour},
		"one of two proven gone":                    {accountOf(began, up, gone(0, 30*time.Minute)), time.Hour, 1.5, time.Hour},
		"proven gone only after the lease was over": {accountOf(began, up, gone(0, 5*time.Hour), gone(1, 5*time.Hour)), 6 * time.Hour, 4, 2 * time.Hour},
		"a receipt that proves nothing":             {accountOf(began, up, gone(0, 30*time.Minute), entry{time.Hour, event.ReceiptMade{Cost: 0, Lived: 60}}), 2 * time.Hour, 2.5, 2 * time.Hour},
		"by the receipt":                            {accountOf(began, up, entry{time.Hour, event.ReceiptMade{Proven: true, Cost: 0.7, Lived: 60}}), 9 * time.Hour, 0.7, time.Minute},
	} {
		now := began.Add(c.at)
		if got := c.a.Spent(now); math.Abs(got-c.spent) > 1e-9 || c.a.Lived(began, now) != c.lived {
			t.Errorf("%s: spent %v in %s, want %v in %s", name, got, c.a.Lived(began, now), c.spent, c.lived)
		}
	}
}

func TestAPriceHoldsFromItsMomentOn(t *testing.T) {
	began := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	a := accountOf(began, entry{0, event.PlanMade{PricePerHour: 3}}, entry{0, event.StepStarted{Step: event.StepCluster}},
		entry{time.Hour, event.ClusterUp{PricePerHour: 2, Nodes: make([]cloud.Node, 1)}}, entry{2 * time.Hour, event.ClusterStopped{PricePerHour: 0.5}})
	if got := a.Spent(began.Add(4 * time.Hour)); math.Abs(got-6) > 1e-9 || a.Rate(began.Add(4*time.Hour)) != 0.5 {
		t.Errorf("spent %v at %v an hour", got, a.Rate(began.Add(4*time.Hour)))
	}
	if _, bound := a.Next(); bound {
		t.Error("stopped machines have no end")
	}
}

// A provider that could not be asked says that the machines have cost nothing. The
// receipt must not.
func TestAReceiptThatProvesNothingHasWhatTheMachinesCost(t *testing.T) {
	began := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	b := NewBooks(func(int64, int64) ([]event.Event, error) {
		return []event.Event{{Time: began, Seq: 1, Body: event.ClusterUp{PricePerHour: 2, Nodes: make([]cloud.Node, 2)}}}, nil
	})
	if r := b.Counted(1, began.Add(90*time.Minute), event.ReceiptMade{Cost: 0}); r.Cost != 3 {
		t.Errorf("unresolved after an hour and a half at $2: $%v", r.Cost)
	}
	if r := b.Counted(2, began.Add(90*time.Minute), event.ReceiptMade{Proven: true, Cost: 0.5}); r.Cost != 0.5 {
		t.Errorf("proven: $%v", r.Cost)
	}
}
