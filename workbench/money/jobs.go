package money

import (
	"slices"
	"time"

	"github.com/dlwb/dlwb/workbench/event"
)

// charge is what one job costs that is paid for by itself.
type charge struct {
	run     string
	perHour float64
	began   time.Time
	// ends is until when it costs: with the time that its machines stay for the next
	// one; zero while it goes on.
	ends time.Time
	stay time.Duration
	// billed is what it has cost in the end; nil: that is not known.
	billed *float64
}

func (c charge) cost(now time.Time) float64 {
	if c.billed != nil {
		return *c.billed
	}
	if !c.ends.IsZero() && c.ends.Before(now) {
		now = c.ends
	}
	return c.perHour * max(now.Sub(c.began).Hours(), 0)
}

func (c charge) costs(now time.Time) bool {
	return c.billed == nil && (c.ends.IsZero() || now.Before(c.ends))
}

// jobsRate is what they cost an hour. Those that a removal has left may be any of them.
func (a *Account) jobsRate(now time.Time) (sum float64) {
	most := 0.0
	for _, c := range a.jobs {
		most = max(most, c.perHour)
		if c.costs(now) {
			sum += c.perHour
		}
	}
	if a.Receipt != nil {
		return most * float64(a.Receipt.ProcessesLeft)
	}
	return sum
}

// job is that a job was handed in, or was found again.
func (a *Account) job(at time.Time, b event.ClusterUp) {
	if c := a.charge(b.Job); c != nil {
		c.perHour, c.stay = b.PricePerHour, duration(b.Stay)
		return
	}
	a.reprice(at, 0, b.Costs)
	// It takes machines over that stay for it, if there are some: those that go next.
	var pool *charge
	for i := range a.jobs {
		if c := &a.jobs[i]; !c.ends.IsZero() && c.costs(at) && (pool == nil || c.ends.Before(pool.ends)) {
			pool = c
		}
	}
	if pool != nil {
		pool.ends = at
	}
	a.jobs = append(a.jobs, charge{run: b.Job, perHour: b.PricePerHour, began: at, stay: duration(b.Stay)})
}

// jobEnded is that a run has ended: its machines may stay.
func (a *Account) jobEnded(run string, at time.Time, b event.RunEnded) {
	c := a.charge(run)
	if c == nil || !c.ends.IsZero() {
		return
	}
	c.ends = at
	if b.ExitCode == 0 {
		c.ends = at.Add(c.stay)
	}
}

// jobBilled is what a job has cost in the end. One that nobody saw handed in may have
// been, by a dlwb that was killed then.
func (a *Account) jobBilled(run string, at time.Time, cost float64) {
	c := a.charge(run)
	if c == nil && cost == 0 {
		return
	}
	if c == nil {
		a.jobs = append(a.jobs, charge{run: run, began: at, ends: at})
		c = &a.jobs[len(a.jobs)-1]
	}
	c.billed = &cost
}

func (a *Account) charge(run string) *charge {
	i := slices.IndexFunc(a.jobs, func(c charge) bool { return c.run == run })
	if i < 0 {
		return nil
	}
	return &a.jobs[i]
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
