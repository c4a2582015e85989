// Package again says whether a run that has ended is started again, how often its
// profile allows that, and with which command it goes on from a checkpoint.
package again

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

// Why is the reason for which a run is started again.
type Why int

// The reasons.
const (
	// Not: it is not.
	Not Why = iota
	// Taken: the provider took machines back, which are replaced first.
	Taken
	// Failed: a rank has failed on machines that are still there.
	Failed
)

// failures are the verdicts after which another start may come to more. A full
// disk is full again, and what somebody stopped stays stopped.
var failures = []event.Verdict{event.ExitedBad, event.Killed, event.Hung, event.OutOfMemory, event.Rebooted}

// WhyOf says whether a run with this end is started again. Replaceable is set where
// machines that were taken back can be had anew.
func WhyOf(ended *event.RunEnded, replaceable bool, p *profiles.Profile, engineName string) Why {
	switch {
	case ended == nil:
		return Not
	case ended.Verdict == event.Lost && replaceable:
		return Taken
	case slices.Contains(failures, ended.Verdict) && planning.RestartsHere(p, engineName) > 0:
		return Failed
	}
	return Not
}

// Tries is how often a run was started again.
type Tries struct{ replaced, restarted int }

// Next counts one more try, and says which of how many it is. Refused says why
// there is none; empty: there is one.
func (t *Tries) Next(why Why, p *profiles.Profile) (which, refused string) {
	made, most, key, text := &t.replaced, p.Limits.Replacements, "limits.replacements", "machines were replaced %d times, which is %s"
	if why == Failed {
		made, most, key, text = &t.restarted, p.Run.Restarts, "run.restarts", "the run was started again %d times, which is %s"
	}
	if *made >= most {
		return "", fmt.Sprintf(text, most, key)
	}
	*made++
	return fmt.Sprintf("%d of %d times", *made, most), ""
}

// Last reports whether there is no other try behind this one.
func (t *Tries) Last(p *profiles.Profile) bool { return t.replaced >= p.Limits.Replacements }

// Spent says why a budget allows no other try; empty: it does.
func Spent(spent, budget float64) string {
	if budget > 0 && spent >= budget {
		return units.USD(spent) + " are spent of a budget of " + units.USD(budget)
	}
	return ""
}

// Announce is what is told before a run is started again.
func Announce(why Why, cause, which string) event.Noticed {
	doing := "replacing what was taken away, "
	if why == Failed {
		doing = "starting the run again, "
	}
	return event.Noticed{Level: "warning", Text: cause + "; " + doing + which}
}

// Refused is what is told of a run that is not started again.
func Refused(why Why, cluster, reason string) event.Noticed {
	if why == Failed {
		return event.Noticed{Level: "warning", Text: "the run is not started again: " + reason,
			Next: "dlwb logs shows what its ranks printed; dlwb run starts it by hand"}
	}
	return event.Noticed{Level: "warning", Text: "the lost machines are not replaced: " + reason,
		Next: "dlwb run goes on by hand, dlwb down " + cluster + " removes what is left"}
}

const (
	// goneLimit is how long a provider has to confirm that a machine which it
	// announced to take away is gone. A spot notice comes two minutes before.
	goneLimit = 5 * time.Minute
	goneEvery = 3 * time.Second
)

// AwaitGone waits until the provider proves of at least one machine that it is
// gone. One that only does not answer is not replaced: it may come back, and
// would cost twice.
func AwaitGone(ctx context.Context, provider cloud.Provider, cluster cloud.Cluster) (bool, error) {
	deadline := time.Now().Add(goneLimit)
	for {
		statuses, err := provider.Probe(ctx, cluster)
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

// Fill puts the path of each node's checkpoint, below the code directory, into the
// words of a plan. Without a checkpoint the words are the user's own, and stay.
func Fill(made engine.Plan, names map[int]string) {
	for node, procs := range made.Nodes {
		if names[node] == "" {
			continue
		}
		for i := range procs {
			procs[i].Argv = slices.Clone(procs[i].Argv)
			for j, word := range procs[i].Argv {
				procs[i].Argv[j] = strings.ReplaceAll(word, planning.CheckpointWord, names[node])
			}
		}
	}
}

// Env is the variable that names a node's checkpoint to its ranks. Code is the
// absolute path of the code directory; an empty name: there is no checkpoint.
func Env(code, name string) []string {
	if name == "" {
		return nil
	}
	return []string{"DLWB_CHECKPOINT=" + code + "/" + name}
}
