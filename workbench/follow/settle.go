package follow

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/workbench/event"
)

// StateLimit bounds a look at a run on all nodes.
const StateLimit = 20 * time.Second

// PhaseGone is the state of a run on a node that does not exist any more.
const PhaseGone job.Phase = "gone"

// Unstarted is the end of a run that not every node has begun.
func Unstarted(states []job.Phase) event.RunEnded {
	ended := event.RunEnded{ExitCode: 1, Verdict: event.ExitedBad, Rank: -1, Node: -1,
		Cause: "dlwb was ended before the ranks were started; nothing ran"}
	var began, missing []string
	for i, s := range states {
		switch s {
		case job.Absent:
			missing = append(missing, fmt.Sprintf("node%d", i))
		case PhaseGone:
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

// AnyState reports whether a replica is in one of some states.
func AnyState(states []job.Phase, which ...job.Phase) bool {
	for _, s := range states {
		for _, w := range which {
			if s == w {
				return true
			}
		}
	}
	return false
}

// GoneOf tells the nodes that do not exist any more.
func GoneOf(states []job.Phase) []bool {
	is := make([]bool, len(states))
	for i, s := range states {
		is[i] = s == PhaseGone
	}
	return is
}

// States looks at every replica of a run. One that does not answer is gone only
// if that is proven; else it is not known what it does.
func States(ctx context.Context, replicas []job.Replica, gone func(context.Context) []bool, cluster, run string) ([]job.Phase, error) {
	ctx, cancel := context.WithTimeout(ctx, StateLimit)
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
		states[i] = PhaseGone
	}
	return states, nil
}
