package workbench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/planning"
)

const (
	// goneLimit is how long a provider has to confirm that a machine which it
	// announced to take away is gone. A spot notice comes two minutes before.
	goneLimit = 5 * time.Minute
	goneEvery = 3 * time.Second
	// refusedPause is how long to wait after there was no machine to be had.
	refusedPause = time.Minute
)

// replaceLost goes on with a run whose machines were taken away: it gets new
// ones for those that are proven gone and launches the command again, as often
// as the profile allows and while the budget lasts.
func (d *drive) replaceLost(ctx context.Context) error {
	limits := d.plan.Profile.Limits
	for try := 1; d.wasTaken(); try++ {
		ended := *d.outcome.Ended
		if try > limits.Replacements {
			return d.notReplaced(fmt.Sprintf("machines were replaced %d times, which is limits.replacements", limits.Replacements))
		}
		a, err := d.w.account(d.s.life)
		if err != nil {
			return err
		}
		if spent := a.Spent(now()); limits.Budget > 0 && spent >= limits.Budget {
			return d.notReplaced(units.USD(spent) + " are spent of a budget of " + units.USD(limits.Budget))
		}
		d.fetchLost(ctx)
		gone, err := d.awaitGone(ctx)
		if err != nil {
			return err
		}
		if !gone {
			return d.notReplaced("the provider does not confirm that a machine is gone")
		}
		_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: fmt.Sprintf("%s; replacing what was taken away, %d of %d times",
			ended.Cause, try, limits.Replacements)})
		d.lostRun = d.outcome.Run
		if err := d.relaunch(ctx); err != nil {
			if ctx.Err() != nil || try == limits.Replacements {
				return err
			}
			_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: "no replacement yet: " + err.Error(), Next: "trying again in " + units.Duration(refusedPause)})
			select {
			case <-time.After(refusedPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// fetchLost brings home what a run wrote that lost machines, while those that
// are to go are still there. It is another run that goes on.
func (d *drive) fetchLost(ctx context.Context) {
	if d.lostRun == d.outcome.Run {
		return // before the last try
	}
	ctx, cancel := context.WithTimeout(ctx, homeLimit)
	defer cancel()
	if err := d.link.fetch(ctx, d.s, nil); err != nil {
		slog.Debug("the results of a run that lost machines", "run", d.s.run, "error", err)
	}
}

// wasTaken reports whether the run ended because the provider took machines
// back that may be replaced.
func (d *drive) wasTaken() bool {
	return d.outcome.Ended != nil && d.outcome.Ended.Verdict == event.Lost && d.plan.Profile.Machines.Spot && traits(d.plan.Provider).Leased
}

func (d *drive) notReplaced(why string) error {
	return d.w.publish(d.s, event.Noticed{Level: "warning", Text: "the lost machines are not replaced: " + why,
		Next: "dlwb run goes on by hand, dlwb down " + d.plan.Cluster + " removes what is left"})
}

// awaitGone waits until the provider proves of at least one machine that it is
// gone. One that only does not answer is not replaced: it may come back, and
// would cost twice.
func (d *drive) awaitGone(ctx context.Context) (bool, error) {
	provider, err := d.w.provider(d.plan.Provider)
	if err != nil {
		return false, err
	}
	deadline := time.Now().Add(goneLimit)
	for {
		statuses, err := provider.Probe(ctx, d.data.Cluster)
		for _, s := range statuses {
			if err == nil && s.State == cloud.Gone {
				return true, nil
			}
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-time.After(goneEvery):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// relaunch brings the cluster to its full number again and starts the command
// with what the profile adds for going on.
func (d *drive) relaunch(ctx context.Context) (err error) {
	if d.lock, err = d.w.locks.ClaimSoon(ctx, d.plan.Cluster, locks.Change); err != nil {
		return err
	}
	defer d.release() // training gives it back by itself
	d.watch.Release()
	d.watch = nil
	if again := planning.Resumed(d.plan.Profile); !d.resumed && again != d.plan.Profile {
		d.plan.Profile, d.resumed = again, true
	}
	ended := d.outcome.Ended
	if err := d.toLaunch(ctx); err != nil {
		return err
	}
	d.via = d.link
	d.outcome.Ended = nil
	err = d.train(ctx)
	if err != nil && d.outcome.Ended == nil && errors.Is(err, context.Canceled) {
		return err
	}
	if d.outcome.Ended == nil {
		d.outcome.Ended = ended
	}
	return err
}
