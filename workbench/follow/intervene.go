package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/workbench/event"
)

// intervene does what a run needs from outside: the peers of a failed rank are
// stopped, a run that hangs is ended, a node that is gone is written off.
func (t *Watch) intervene(ctx context.Context) {
	t.findLost(ctx, askAfter, false)
	t.findSilent(ctx)
	t.mu.Lock()
	why, silent := t.reasonToStop()
	if why != "" || silent != nil {
		t.nextStop = time.Now().Add(time.Hour) // not while this one is under way
	}
	t.mu.Unlock()
	if why == "" && silent == nil {
		return
	}
	// What can't be stopped now, as on a node that is out of reach, is tried
	// again: until then the run has not ended. What it prints meanwhile is
	// stored and told.
	t.group.Go(func() error {
		if silent != nil {
			late := t.look(ctx, silent)
			why = hungReason(t.stallLimit(), silent, late)
		}
		err := Stop(ctx, t.run.Replicas, t.Lost(), t.run.ID, why, t.run.Grace)
		slog.Debug("stopped the ranks", "run", t.run.ID, "why", why, "error", err)
		t.mu.Lock()
		t.nextStop = time.Now().Add(stopAgain)
		t.mu.Unlock()
		return nil
	})
}

// stopAgain is the pause before a stop that did not end the run is repeated.
const stopAgain = 10 * time.Second

// Lost tells the nodes that are written off: proven gone, or not heard of for
// too long.
func (t *Watch) Lost() []bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := make([]bool, len(t.nodes))
	for i, n := range t.nodes {
		is[i] = n.writtenOff()
	}
	return is
}

// Taken reports whether the run lost machines, or is about to.
func (t *Watch) Taken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.nodes {
		if n.lost || n.leaves() {
			return true
		}
	}
	return false
}

// Trouble is since when a rank may stand still in the middle of a file, because it
// waits for one that is no longer there; zero: since never. A file that stays as it is
// after that may be half.
func (t *Watch) Trouble() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := t.broken
	earlier := func(at time.Time) {
		if !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	for i, n := range t.nodes {
		if n.writtenOff() && !n.leaves() { // else its ranks were stopped before
			earlier(t.heard[i])
		}
		if slices.ContainsFunc(n.stopping, func(why string) bool { return strings.HasPrefix(why, reasonHung) }) {
			earlier(slices.MaxFunc(append(slices.Collect(maps.Values(t.printed)), time.Time{}), time.Time.Compare))
		}
	}
	return since
}

// Broke reports whether a rank has ended, and not well, whoever ended it. It may have been
// in the middle of a file, and so may those who wait for it.
func (t *Watch) Broke() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.ends {
		if !e.well() {
			return true
		}
	}
	return false
}

// EndedByItself reports whether every rank of a node came to its own good end: then
// it was not in the middle of a file. A rank that lost its peer may have been, also
// where it ended by an exception.
func (t *Watch) EndedByItself(node int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.run.Ranks {
		if r.Node != node {
			continue
		}
		if e, ended := t.ends[r.Rank]; !ended || !e.well() {
			return false
		}
	}
	return true
}

// reasonToStop says why the rest of the run is to be stopped from here; empty
// while there is no reason. Of a run that hangs it gives the silent ranks
// instead, at which a closer look is due. The caller holds the lock.
func (t *Watch) reasonToStop() (why string, silent []silence) {
	if time.Now().Before(t.nextStop) {
		return "", nil
	}
	for i, n := range t.nodes {
		if n.lost {
			return fmt.Sprintf("node%d is gone", i), nil
		}
	}
	if cause := silentCause(t.nodes); cause != "" {
		return reasonSilent + cause, nil
	}
	for _, n := range t.nodes { // one that was given up may have come back
		for _, why := range n.stopping {
			if strings.HasPrefix(why, reasonSilent) {
				return why, nil
			}
		}
	}
	if !t.failed.IsZero() && time.Since(t.failed) > failGrace {
		if first, ok := firstFailure(t.rankEnds()); ok {
			return failureOf(first).Cause, nil
		}
		return "a launcher failed", nil
	}
	if t.run.Leads && !t.headOver.IsZero() && time.Since(t.headOver) > failGrace {
		return job.RunOver + "the run has ended on node0", nil
	}
	return "", t.silent()
}

// startAllowance is how long a run may at least take to its first line:
// importing a framework and finding each other is silent work, and slower on a
// busy machine than what a profile allows between two lines.
const startAllowance = time.Minute

// begun reports whether a rank has printed anything yet.
func (t *Watch) begun() bool {
	for _, r := range t.run.Ranks {
		if t.logs[r.Rank].size() > 0 {
			return true
		}
	}
	return false
}

// stallLimit is how long all ranks may be silent.
func (t *Watch) stallLimit() time.Duration {
	limit := t.run.Stall
	if limit > 0 && !t.begun() {
		limit = max(limit, startAllowance)
	}
	return limit
}

// silent gives the ranks that still run, when no rank has printed for as long
// as the profile allows; nil while one has. The caller holds the lock.
func (t *Watch) silent() []silence {
	limit := t.stallLimit()
	if limit <= 0 || len(t.gone) == len(t.nodes) { // who is out of reach may well be printing
		return nil
	}
	for _, n := range t.nodes {
		if !n.begun { // it waits in a queue
			return nil
		}
	}
	running := []silence{}
	for _, r := range t.run.Ranks {
		if _, away := t.gone[r.Node]; away { // nobody knows of it, and those that wait for it print nothing either
			continue
		}
		quiet := time.Since(t.printed[r.Rank])
		if quiet < limit {
			return nil
		}
		if _, ended := t.ends[r.Rank]; !ended {
			running = append(running, silence{rank: r.Rank, node: r.Node, since: quiet, before: time.Since(t.before[r.Rank]), does: waiting})
		}
	}
	return running
}

// findLost asks the provider about nodes that have been out of reach for a
// while. Only proof that a node is gone writes it off.
func (t *Watch) findLost(ctx context.Context, after time.Duration, wait bool) {
	t.mu.Lock()
	ask := false
	for i, since := range t.gone {
		ask = ask || time.Since(since) > after && !t.nodes[i].writtenOff()
	}
	ask = ask && time.Since(t.probed) > probeAgain && !t.probing
	t.probing = t.probing || ask && !wait
	t.mu.Unlock()
	switch {
	case !ask:
		return
	case wait:
		t.writeOff(ctx)
		return
	}
	t.group.Go(func() error { // it takes as long as a dial
		t.writeOff(ctx)
		t.mu.Lock()
		t.probing = false
		t.mu.Unlock()
		return nil
	})
}

// probeAgain is how often a provider is asked about nodes out of reach.
const probeAgain = 3 * time.Second

// writeOff asks the provider which nodes are gone, and writes those off.
func (t *Watch) writeOff(ctx context.Context) {
	is := t.owner.Gone(ctx)
	var news []int
	t.mu.Lock()
	t.probed = time.Now()
	for i := range t.nodes {
		if is[i] && !t.nodes[i].lost {
			t.nodes[i].lost, t.nodes[i].silent, t.nodes[i].refuses = true, time.Time{}, false
			news = append(news, i)
		}
	}
	t.mu.Unlock()
	for _, i := range news {
		_ = t.owner.Publish(event.NodeChanged{Node: i, State: event.Gone, Why: "its provider says so"})
	}
}

const (
	// StopGrace is what ranks get between TERM and KILL, to save a checkpoint, where
	// it is not on record for how long the run is to have.
	StopGrace = 10 * time.Second
	// StopLimit bounds a stop beyond the grace.
	StopLimit = 20 * time.Second
)

// Stop stops a run on all replicas at once and says what is left of it. Replicas
// that are lost are passed over; lost may be nil. The grace is what the ranks get
// between TERM and KILL; 0: StopGrace.
func Stop(ctx context.Context, replicas []job.Replica, lost []bool, run, why string, grace time.Duration) error {
	grace = cmp.Or(grace, StopGrace)
	ctx, cancel := context.WithTimeout(ctx, grace+StopLimit)
	defer cancel()
	errs := make([]error, len(replicas))
	var all sync.WaitGroup
	for i, r := range replicas {
		if lost != nil && lost[i] {
			continue
		}
		all.Go(func() {
			left, err := r.Stop(ctx, grace, why)
			if err == nil && left > 0 {
				err = fmt.Errorf("%d of its processes do not end", left)
			}
			if err != nil {
				errs[i] = &event.Fault{What: "stop run " + run, Node: i, Why: err.Error()}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
