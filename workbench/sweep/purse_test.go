package sweep

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/event"
)

// paid is an owner whose trials are paid for one by one.
type paid struct {
	mu      sync.Mutex
	past    map[string]Past
	parts   []float64 // of the budget, in the order of the launches
	lives   []time.Duration
	cost    float64 // of each trial, or its whole part where that is less
	takes   time.Duration
	bills   bool // what a trial has cost is known as soon as it has ended
	full    func(launch int) bool
	tried   int
	running int
	most    float64 // what all trials had cost at the most, or may have
	told    []string
}

func (o *paid) owner() Owner {
	return Owner{
		Past: func(run string) (Past, bool, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			past, is := o.past[run]
			return past, is, nil
		},
		Billed: func(_ context.Context, run string) (float64, bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			past := o.past[run]
			if !past.Started {
				return 0, true
			}
			return min(o.cost, past.Label.Budget), o.bills
		},
		Launch: func(_ context.Context, run string, label Label, p *profiles.Profile) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.tried++
			if o.full != nil && o.full(o.tried) {
				o.past[run] = Past{Label: label, Began: time.Now(), Ended: &event.RunEnded{ExitCode: 1}}
				return &cloud.NoRoom{Err: &event.Fault{What: "hand in the job", Node: -1, Why: "the quota is reached", Next: "ask for more"}}
			}
			if p.Limits.Budget != label.Budget {
				return errors.New("what is on record is not what it has")
			}
			o.past[run] = Past{Label: label, Began: time.Now(), Started: true}
			o.parts, o.lives = append(o.parts, label.Budget), append(o.lives, p.Limits.Lifetime)
			o.running++
			all := 0.0
			for _, past := range o.past {
				switch {
				case past.Started && past.Ended != nil && o.bills:
					all += min(o.cost, past.Label.Budget)
				case past.Started:
					all += past.Label.Budget
				}
			}
			o.most = max(o.most, all)
			return nil
		},
		Watch: func(_ context.Context, run string) (event.RunEnded, error) {
			time.Sleep(o.takes)
			o.mu.Lock()
			defer o.mu.Unlock()
			o.running--
			past := o.past[run]
			past.Ended = &event.RunEnded{Verdict: event.Succeeded}
			o.past[run] = past
			return *past.Ended, nil
		},
		Stop:   func(context.Context, string, string) error { return nil },
		Values: func(string, string) []float64 { return nil },
		Publish: func(b event.Body) error {
			if n, is := b.(event.Noticed); is {
				o.told = append(o.told, n.Text)
			}
			return nil
		},
	}
}

func newPaid() *paid {
	return &paid{past: map[string]Past{}, cost: 0.1, takes: time.Minute, bills: true}
}

// Whatever the trials cost, whoever is killed when: what those that run may cost, and
// what the others have cost, is no more than the budget.
func TestWhatTheTrialsMayCostIsNeverMoreThanTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		parallel int
		cost     float64
		bills    bool
		first    float64 // part of the first trial, of the last
		last     float64
	}{
		"one after the other":        {1, 0.1, true, 1, 10 - 9*0.1},
		"several at once":            {4, 0.1, true, 1, 0},
		"each takes all that it has": {3, 99, true, 1, 1},
		"what they cost is not told": {3, 0.1, false, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, p := newPaid(), searched(10, c.parallel)
				o.cost, o.bills = c.cost, c.bills
				p.Limits = profiles.Limits{Budget: 10, Lifetime: 24 * time.Hour}
				board, err := New(o.owner(), p, "s1", Slots(make([]int, c.parallel), 1, 0)).Run(t.Context())
				if err != nil || board.Done != 10 {
					t.Fatalf("%v, %+v", err, board)
				}
				if o.most > 10+1e-9 {
					t.Errorf("they may have cost %v: %v", o.most, o.parts)
				}
				if math.Abs(o.parts[0]-c.first) > 1e-9 || c.last > 0 && math.Abs(o.parts[9]-c.last) > 1e-9 {
					t.Errorf("their parts were %v", o.parts)
				}
			})
		})
	}
}

// What an earlier process handed in holds its part, and what has cost nothing none.
func TestTrialsOfAnEarlierProcessHoldTheirPartOfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, p := newPaid(), searched(4, 2)
		p.Limits.Budget = 10
		billed := 1.0
		o.past[RunID(p.Name, "s1", 1, 0)] = Past{Label: Label{Trial: 1, Budget: 2.5}, Started: true, Ended: &event.RunEnded{}, Billed: &billed}
		o.past[RunID(p.Name, "s1", 2, 0)] = Past{Label: Label{Trial: 2, Budget: 2.5}, Ended: &event.RunEnded{ExitCode: 1}} // nothing of it ran
		o.past[RunID(p.Name, "s1", 3, 0)] = Past{Label: Label{Trial: 3, Budget: 3}, Started: true}
		if _, err := New(o.owner(), p, "s1", Slots(make([]int, 2), 1, 0)).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(o.parts) != 2 || math.Abs(o.parts[0]-3) > 1e-9 { // (10 - 1 - 3) / 2
			t.Errorf("the parts of those that waited were %v", o.parts)
		}
	})
}

func TestNothingIsHandedInWhenTheBudgetIsSpentOrTheLifetimeOver(t *testing.T) {
	spent := 10.0
	for name, c := range map[string]struct {
		past Past
		want string
	}{
		"budget":   {Past{Label: Label{Trial: 1, Budget: 10}, Started: true, Ended: &event.RunEnded{}, Billed: &spent}, "of limits.budget, $10.00, nothing is left: the trials have cost $10.00"},
		"lifetime": {Past{Label: Label{Trial: 1}, Started: true, Ended: &event.RunEnded{}, Billed: new(float64), Began: time.Now().Add(-2 * time.Hour)}, "limits.lifetime is over"},
	} {
		t.Run(name, func(t *testing.T) {
			o, p := newPaid(), searched(4, 2)
			o.takes = 0
			p.Limits = profiles.Limits{Budget: 10, Lifetime: 2 * time.Hour}
			o.past[RunID(p.Name, "s1", 1, 0)] = c.past
			board, err := New(o.owner(), p, "s1", Slots(make([]int, 2), 1, 0)).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || board.Failed != 0 || o.tried != 0 {
				t.Errorf("%v, %+v", err, board)
			}
		})
	}
}

// No trial goes on past the lifetime, which begins with the first one.
func TestTheLifetimeIsThatOfAllTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, p := newPaid(), searched(3, 1)
		o.takes, p.Limits.Lifetime = 20*time.Minute, 50*time.Minute
		if _, err := New(o.owner(), p, "s1", Slots(make([]int, 1), 1, 0)).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []time.Duration{50 * time.Minute, 30 * time.Minute, 10 * time.Minute} {
			if has := o.lives[i].Round(time.Minute); has != want {
				t.Errorf("trial %d has %v, not %v", i+1, has, want)
			}
		}
	})
}

// A trial that there is no room for waits until another has ended, and has not failed.
func TestATrialWaitsForRoomAndHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, p := newPaid(), searched(6, 4)
		p.Limits.Budget = 6
		o.full = func(int) bool { return o.running >= 2 }
		board, err := New(o.owner(), p, "s1", Slots(make([]int, 4), 1, 0)).Run(t.Context())
		if err != nil || board.Done != 6 || board.Failed != 0 {
			t.Fatalf("%v, %+v", err, board)
		}
		if len(o.told) != 1 || !strings.Contains(o.told[0], "the quota is reached") {
			t.Errorf("told is %q", o.told)
		}
		if math.Abs(o.parts[0]-1) > 1e-9 || o.most > 6+1e-9 {
			t.Errorf("the parts were %v, at most %v", o.parts, o.most)
		}
	})
}

// Where none of its own trials runs, a sweep tries for a while; then it ends, and the
// trials wait.
func TestASweepThatFindsNoRoomAtAllEndsAndFailsNoTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, p := newPaid(), searched(6, 2)
		began := time.Now()
		o.full = func(int) bool { return true }
		board, err := New(o.owner(), p, "s1", Slots(make([]int, 2), 1, 0)).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no trial runs, and there is no room for one: the quota is reached") || event.FaultOf(err).Next != "ask for more; dlwb sweep goes on with the trials that wait" {
			t.Errorf("%v, %q", err, event.FaultOf(err).Next)
		}
		if waited := time.Since(began); waited < 10*time.Minute || waited > 16*time.Minute || o.tried > 10 {
			t.Errorf("%d launches in %v", o.tried, waited)
		}
		if board.Failed != 0 || board.Done != 0 {
			t.Errorf("%+v", board)
		}
		tried := o.tried // room comes later
		o.full = func(launch int) bool { return launch <= tried+1 }
		if board, err := New(o.owner(), p, "s1", Slots(make([]int, 2), 1, 0)).Run(t.Context()); err != nil || board.Done != 6 {
			t.Errorf("%v, %+v", err, board)
		}
	})
}

// Nobody waits for room any more when the sweep is interrupted.
func TestAnInterruptEndsTheWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, p := newPaid(), searched(2, 1)
		o.full = func(int) bool { return true }
		ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := New(o.owner(), p, "s1", Slots(make([]int, 1), 1, 0)).Run(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
