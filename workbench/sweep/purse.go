package sweep

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/event"
)

// purse shares the limits of a profile out where each trial is a job that is paid for
// by itself. What all trials cost is no more than limits.budget, whenever dlwb is killed:
// each is handed in with a part of it as its own limit, and holds that part until it is
// known what it has cost. None goes on past limits.lifetime, which begins with the first
// one of a cluster's life.
type purse struct {
	mu      sync.Mutex
	waiting int              // trials that have no part yet
	began   time.Time        // of the first trial of this life; zero: none has begun
	parts   map[string]*part // by run
}

// part is what a run may cost, or has.
type part struct {
	usd          float64
	ended, final bool // final: usd is what it has cost
}

func newPurse() *purse { return &purse{parts: map[string]*part{}} }

// note takes in what is on record of a run of a trial.
func (p *purse) note(run string, past Past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !past.Former && (p.began.IsZero() || past.Began.Before(p.began)) {
		p.began = past.Began
	}
	if p.parts[run] != nil {
		return // it is known here
	}
	p.parts[run] = &part{usd: past.Label.Budget, ended: past.Ended != nil}
	if past.Billed != nil {
		*p.parts[run] = part{*past.Billed, true, true}
	}
}

// wait notes how many trials have no part yet.
func (p *purse) wait(trials int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = trials
}

// ended is that a run is over; again says that its trial waits once more.
func (p *purse) ended(run string, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if has := p.parts[run]; has != nil {
		has.ended = true
		if again {
			p.waiting++
		}
	}
}

// owing are the runs that are over, and of which it is not known what they have cost.
func (p *purse) owing() (runs []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for run, has := range p.parts {
		if has.ended && !has.final {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	return runs
}

// settle asks what the trials that are over have cost.
func (s *Sweep) settle(ctx context.Context) {
	if s.owner.Billed == nil {
		return
	}
	for _, run := range s.purse.owing() {
		if usd, final := s.owner.Billed(ctx, run); final {
			s.purse.mu.Lock()
			*s.purse.parts[run] = part{usd, true, true}
			s.purse.mu.Unlock()
		}
	}
}

// allot gives the profile of a trial that is launched next its part of the limits. Of the
// budget that is an even one of what is left for all that wait, so that a trial that
// costs less leaves more to those behind it.
func (s *Sweep) allot(ctx context.Context, run string, label *Label, own *profiles.Profile) error {
	if s.owner.Billed == nil {
		return nil
	}
	s.settle(ctx)
	p := s.purse
	p.mu.Lock()
	defer p.mu.Unlock()
	if life := own.Limits.Lifetime; life > 0 && !p.began.IsZero() {
		own.Limits.Lifetime = life - time.Since(p.began)
		if own.Limits.Lifetime < leastTrial {
			return &HaltError{&event.Fault{What: "launch another trial", Node: -1, Why: "limits.lifetime is over: it began with the first trial, " + units.Duration(time.Since(p.began).Round(time.Minute)) + " ago",
				Next: "a longer limits.lifetime, or dlwb down; dlwb sweep then goes on with the trials that wait"}}
		}
	}
	if budget := own.Limits.Budget; budget > 0 {
		taken := 0.0
		for _, has := range p.parts {
			taken += has.usd
		}
		label.Budget = (budget - taken) / float64(max(p.waiting, 1))
		if label.Budget <= 0 {
			return &HaltError{&event.Fault{What: "launch another trial", Node: -1, Why: fmt.Sprintf("of limits.budget, %s, nothing is left: the trials have cost %s, or may cost it while they run", units.USD(budget), units.USD(taken)),
				Next: "a larger limits.budget; dlwb sweep then goes on with the trials that wait"}}
		}
		own.Limits.Budget = label.Budget
	}
	p.parts[run] = &part{usd: label.Budget}
	if p.began.IsZero() {
		p.began = time.Now()
	}
	p.waiting = max(p.waiting-1, 0)
	return nil
}

// leastTrial is the shortest time that a trial is given.
const leastTrial = time.Minute
