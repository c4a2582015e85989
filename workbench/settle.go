package workbench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/locks"
)

const (
	// launchSettle is how long after its record was made the launch of a run
	// may still be on its way to a node, although whoever sent it was killed.
	launchSettle = 5 * time.Second
	// lookLimit bounds a look at a run on all nodes.
	lookLimit = 20 * time.Second
)

// settleLaunch finds out what became of a launch that nobody told the end of:
// dlwb was killed after it had put the run on record. Where every node began,
// the run goes on as if nothing had happened; else it is ended.
func (w *Workbench) settleLaunch(ctx context.Context, s scope, l *link, run store.Run) (event.RunEnded, bool, error) {
	var states []job.Phase
	for {
		began := time.Now()
		var err error
		if states, err = statesOf(ctx, l.parts(run.ID), l.gone, l.cluster.Name, run.ID); err != nil {
			return event.RunEnded{}, false, err
		}
		age := since(run.StartedAt)
		if !anyState(states, job.Absent) || age < 0 || age > launchSettle.Seconds() {
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
	if !anyState(states, job.Absent) && anyState(states, job.Running, job.Over, job.Unknown) {
		return event.RunEnded{}, false, w.publish(s, event.RunStarted{
			Engine: run.Engine, WorldSize: run.WorldSize, Nodes: data.Nodes,
			Command: run.Command, Python: data.Python, Ranks: data.Ranks,
		})
	}
	ended := unstarted(states)
	ended.Duration, ended.Cause = since(run.StartedAt), w.called(s.life, nil).In(ended.Cause)
	if err := follow.Stop(ctx, l.parts(run.ID), gone(states), run.ID, ended.Cause); err != nil {
		return event.RunEnded{}, false, err
	}
	return ended, true, w.recordEnd(s, run, data, ended)
}

// nodeGone is the state of a run on a node that does not exist any more.
const nodeGone job.Phase = "gone"

// unstarted is the end of a run that not every node has begun.
func unstarted(states []job.Phase) event.RunEnded {
	ended := event.RunEnded{ExitCode: 1, Verdict: event.ExitedBad, Rank: -1, Node: -1,
		Cause: "dlwb was ended before the ranks were started; nothing ran"}
	var began, missing []string
	for i, s := range states {
		switch s {
		case job.Absent:
			missing = append(missing, fmt.Sprintf("node%d", i))
		case nodeGone:
			ended.Verdict, ended.Node = event.Lost, i
		default:
			began = append(began, fmt.Sprintf("node%d", i))
		}
	}
	switch {
	case len(began) > 0:
		ended.Cause = fmt.Sprintf("dlwb was ended while it started the ranks: %s had begun, %s had not",
			strings.Join(began, ", "), strings.Join(missing, ", "))
	case ended.Verdict == event.Lost:
		ended.Cause = fmt.Sprintf("node%d is gone, and dlwb was ended while it started the ranks", ended.Node)
	}
	return ended
}

func anyState(states []job.Phase, which ...job.Phase) bool {
	for _, s := range states {
		for _, w := range which {
			if s == w {
				return true
			}
		}
	}
	return false
}

// gone tells the nodes that do not exist any more.
func gone(states []job.Phase) []bool {
	is := make([]bool, len(states))
	for i, s := range states {
		is[i] = s == nodeGone
	}
	return is
}

// statesOf looks at every replica of a run. One that does not answer is gone only
// if that is proven; else it is not known what it does.
func statesOf(ctx context.Context, replicas []job.Replica, gone func(context.Context) []bool, cluster, run string) ([]job.Phase, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	states := make([]job.Phase, len(replicas))
	errs := make([]error, len(replicas))
	var all sync.WaitGroup
	for i, r := range replicas {
		all.Go(func() {
			state, err := r.State(ctx)
			states[i], errs[i] = state.Phase, err
		})
	}
	all.Wait()
	for i, err := range errs {
		if err == nil {
			continue
		}
		if !gone(ctx)[i] {
			return nil, &event.Fault{What: "look at run " + run, Node: i, Why: err.Error(),
				Next: "nothing is known of it until the node answers; dlwb attach " + cluster + " looks again, dlwb down " + cluster + " removes it"}
		}
		states[i] = nodeGone
	}
	return states, nil
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
		on, err := w.reach(c)
		if err != nil {
			return run, false, err
		}
		replicas, err := on.replicas(run.ID)
		if err != nil {
			return run, false, err
		}
		states, err := statesOf(ctx, replicas, on.gone, c.Name, run.ID)
		if err != nil {
			return run, false, err
		}
		if anyState(states, job.Running) {
			return run, true, nil
		}
	}
	_, err = w.takeOver(ctx, c, run)
	return run, false, err
}
