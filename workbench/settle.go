package workbench

import (
	"context"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/locks"
)

// launchSettle is how long after its record was made the launch of a run
// may still be on its way to a node, although whoever sent it was killed.
const launchSettle = 5 * time.Second

// settleLaunch finds out what became of a launch that nobody told the end of:
// dlwb was killed after it had put the run on record. Where every node began,
// the run goes on as if nothing had happened; else it is ended.
func (w *Workbench) settleLaunch(ctx context.Context, s scope, l *link, run store.Run) (event.RunEnded, bool, error) {
	var states []job.Phase
	for {
		began := time.Now()
		var err error
		if states, err = follow.States(ctx, l.parts(run.ID), l.gone, l.cluster.Name, run.ID); err != nil {
			return event.RunEnded{}, false, err
		}
		age := since(run.StartedAt)
		if !follow.AnyState(states, job.Absent) || age < 0 || age > launchSettle.Seconds() {
			break
		}
		select {
		case <-time.After(500*time.Millisecond - time.Since(began)):
		case <-ctx.Done():
			return event.RunEnded{}, false, ctx.Err()
		}
	}
	_, data, err := w.runRecord(run.ID)
	if err != nil {
		return event.RunEnded{}, false, err
	}
	if !follow.AnyState(states, job.Absent) && follow.AnyState(states, job.Running, job.Over, job.Unknown) {
		return event.RunEnded{}, false, w.publish(s, event.RunStarted{
			Engine: run.Engine, WorldSize: run.WorldSize, Nodes: data.Nodes,
			Command: run.Command, Python: data.Python, Ranks: data.Ranks,
		})
	}
	ended := follow.Unstarted(states)
	ended.Duration, ended.Cause = since(run.StartedAt), w.called(s.life, nil).In(ended.Cause)
	if err := w.stopRun(ctx, l, follow.GoneOf(states), run.ID, ended.Cause); err != nil {
		return event.RunEnded{}, false, err
	}
	return ended, true, w.recordEnd(s, run, data, ended)
}

// proveGone asks the provider which nodes do not exist any more. What it can't
// tell is not gone.
func (w *Workbench) proveGone(ctx context.Context, l *link) []bool {
	is := make([]bool, len(l.nodes))
	provider, err := w.provider(l.cluster.Provider)
	if err != nil {
		return is
	}
	states, err := provider.Probe(ctx, l.cluster)
	if err != nil {
		return is
	}
	for i, s := range states {
		is[i] = s.State == cloud.Gone
	}
	return is
}

// leftover ends the story of a former run of the cluster of which only that is
// left to do; one that is going on stays as it is, and true is returned.
func (w *Workbench) leftover(ctx context.Context, c store.Cluster) (run store.Run, goesOn bool, err error) {
	run, todo, err := w.unfinishedRun(c.Name)
	if err != nil || !todo {
		return run, false, err
	}
	lock, err := w.locks.Claim(c.Name, locks.Watch)
	if err != nil {
		return run, false, err
	}
	if lock == nil {
		return run, true, nil
	}
	defer lock.Release()
	if run.EndedAt == nil {
		on, err := w.reachRun(c, run.ID)
		if err != nil {
			return run, false, err
		}
		replicas, err := on.replicas(run.ID)
		if err != nil {
			return run, false, err
		}
		states, err := follow.States(ctx, replicas, on.gone, c.Name, run.ID)
		if err != nil {
			return run, false, err
		}
		if follow.AnyState(states, job.Running) {
			return run, true, nil
		}
	}
	_, err = w.takeOver(ctx, c, run)
	return run, false, err
}

// since is how long ago something was. A clock that was set back meanwhile
// makes it no less than nothing.
func since(t time.Time) float64 { return max(0, time.Since(t).Seconds()) }
