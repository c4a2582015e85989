package workbench

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/again"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
)

// refusedPause is how long to wait after there was no machine to be had.
const refusedPause = time.Minute

// startAgain goes on with a run whose machines were taken away, or that has failed:
// it gets new ones for those that are proven gone and launches the command again,
// as often as the profile allows and while the budget lasts.
func (d *drive) startAgain(ctx context.Context) error {
	limits := d.plan.Profile.Limits
	var tries again.Tries
	for why := d.why(); why != again.Not; why = d.why() {
		ended := *d.outcome.Ended
		which, refused := tries.Next(why, d.plan.Profile)
		a, err := d.w.books.Of(d.s.life)
		if err != nil {
			return err
		}
		if refused == "" {
			refused = again.Spent(a.Spent(now()), limits.Budget)
		}
		if refused == "" {
			d.fetchLost(ctx)
			refused, err = d.confirm(ctx, why)
		}
		if err != nil {
			return err
		}
		if refused != "" {
			return d.w.publish(d.s, again.Refused(why, d.plan.Cluster, refused))
		}
		_ = d.w.publish(d.s, again.Announce(why, ended.Cause, which))
		d.lostRun = d.outcome.Run
		if err := d.relaunch(ctx, why); err != nil {
			if ctx.Err() != nil || why != again.Taken || tries.Last(d.plan.Profile) {
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

// confirm says why a machine that was taken away is not replaced; empty: it may be.
func (d *drive) confirm(ctx context.Context, why again.Why) (refused string, err error) {
	if why != again.Taken {
		return "", nil
	}
	provider, err := d.w.provider(d.plan.Provider)
	if err != nil {
		return "", err
	}
	if gone, err := again.AwaitGone(ctx, provider, d.data.Cluster); err != nil || gone {
		return "", err
	}
	return "the provider does not confirm that a machine is gone", nil
}

// why is the reason for which the run that has ended is started again.
func (d *drive) why() again.Why {
	replaceable := d.plan.Profile.Machines.Spot && traits(d.plan.Provider).Leased
	return again.WhyOf(d.outcome.Ended, replaceable, d.plan.Profile, d.engineName)
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

// relaunch brings the cluster to its full number again, where machines were taken,
// and starts the command with what the profile adds for going on. A run that failed
// gets the code that it had.
func (d *drive) relaunch(ctx context.Context, why again.Why) (err error) {
	if d.lock, err = d.w.locks.ClaimSoon(ctx, d.plan.Cluster, locks.Change); err != nil {
		return err
	}
	defer d.release() // training gives it back by itself
	d.watch.Release()
	d.watch = nil
	ended := d.outcome.Ended
	if why == again.Failed {
		err = d.step(ctx, event.StepLaunch, d.plan.Profile.Run.Command, d.launch)
	} else {
		err = d.toLaunch(ctx)
	}
	if err != nil {
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
