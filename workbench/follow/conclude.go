package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/event"
)

// conclude says how the run ended, once all is known, and sweeps up what its
// ranks may have left behind.
func (t *Watch) conclude(ctx context.Context) (event.RunEnded, error) {
	t.lookOver(ctx)
	t.mu.Lock()
	ended := judge(t.nodes, t.rankEnds())
	ended.Duration, ended.Silent = t.duration(), silentNodes(t.nodes)
	t.mu.Unlock()
	if log := t.blamed(ended); log != nil {
		ended.LastLines = log.tail(20)
	} else if ended.Verdict == event.Hung {
		ended.LastLines = t.lastOfEach()
	}
	ended.Cause, ended.Host = t.run.Names.In(ended.Cause), t.run.Names.Of(ended.Node)
	if t.proof != "" && ended.Verdict == event.Lost {
		ended.Cause += "; this machine is not cut off: " + t.proof
	}
	if again := t.nodes[0].lives - 1; again > 0 {
		ended.Cause += "; what carries it put it back into the queue, and began it again " + units.Count(again, "time")
	}
	sweepErr := t.sweep(ctx)
	return ended, errors.Join(t.owner.End(ended), sweepErr)
}

// lastOfEach gives the end of every rank's log, for a run that hangs and no
// rank stands out. Of a great many ranks the first have to do.
func (t *Watch) lastOfEach() []string {
	const ranks, lines = 8, 4
	var said []string
	for _, r := range t.run.Ranks[:min(ranks, len(t.run.Ranks))] {
		for _, line := range t.logs[r.Rank].tail(lines) {
			said = append(said, fmt.Sprintf("rank %d: %s", r.Rank, line))
		}
	}
	return said
}

// fullBelow is how little room on a node's disk explains a bad end.
const fullBelow = 64 << 10

// lookOver asks each node, all at once, what explains a bad end, and whether a good one
// hides that its disk got full since the last look: then output is missing, and perhaps
// of what the ranks wrote.
func (t *Watch) lookOver(ctx context.Context) {
	passed := t.Lost()
	var all sync.WaitGroup
	for i, r := range t.run.Replicas {
		if passed[i] {
			continue
		}
		all.Go(func() {
			if state, err := r.State(ctx); err == nil && state.Begun { // what can't be seen explains nothing
				t.looked(i, state)
			}
		})
	}
	all.Wait()
}

// duration is how long the run was, in seconds: by the uptime of the node where
// it took longest, else, where no node can tell, by the clock here. The caller
// holds the lock.
func (t *Watch) duration() float64 {
	var longest time.Duration
	for _, n := range t.nodes {
		if n.from > 0 && n.to > n.from {
			longest = max(longest, n.to-n.from)
		}
	}
	if longest > 0 {
		return longest.Seconds()
	}
	return max(0, time.Since(t.run.StartedAt).Seconds())
}

// blamed is the log that tells most of a failure: that of the rank at fault,
// else of its launcher.
func (t *Watch) blamed(e event.RunEnded) *logFile {
	switch {
	case e.Verdict == event.Succeeded || e.Verdict == event.Stopped:
		return nil
	case e.Rank >= 0:
		return t.logs[e.Rank]
	case e.Node >= 0:
		return t.logs[event.LauncherLog(e.Node)]
	}
	return nil
}

// sweep ends what the ranks started and left, also in sessions of its own. That has
// nothing to save: it does not get a long grace. A node that is gone is not asked, and
// neither is one that ended the run because it goes: it may be off by now.
func (t *Watch) sweep(ctx context.Context) error {
	for began := time.Now(); ; {
		passed := t.Lost()
		for i, n := range t.nodes {
			passed[i] = passed[i] || n.leaves()
		}
		err := Stop(ctx, t.run.Replicas, passed, t.run.ID, "the run is over", min(t.run.Grace, StopGrace))
		if err == nil || ctx.Err() != nil || !t.anyAway() || time.Since(began) > t.run.Lost {
			return err
		}
	}
}

// anyAway reports whether a node is out of reach that is not written off.
func (t *Watch) anyAway() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.gone {
		if !t.nodes[i].writtenOff() {
			return !t.goes()
		}
	}
	return false
}

// drainMost bounds the wait for logs that come, and do not come to an end.
const drainMost = 15 * time.Minute

// drain is how long the rest of the logs is waited for.
type drain struct {
	began, grew time.Time
	have        int64
}

// over notes how many bytes of the logs are stored now, and reports whether the rest is
// not waited for any more: none came within the limit, or it comes for too long. On a
// slow line, or a busy machine, a large log comes for minutes.
func (d *drain) over(now time.Time, stored int64, limit time.Duration) bool {
	if d.began.IsZero() {
		d.began = now
	}
	if d.grew.IsZero() || stored > d.have {
		d.grew, d.have = now, stored
	}
	return now.Sub(d.grew) > limit || now.Sub(d.began) > drainMost
}

// stored is the number of bytes that are stored of all logs.
func (t *Watch) stored() (n int64) {
	for _, l := range t.logs {
		n += l.stored()
	}
	return n
}

// drainLimit is how long nothing may come of the logs: from a node that is out of reach
// it may take longer.
func (t *Watch) drainLimit() time.Duration {
	if t.anyAway() {
		return max(DrainLimit, t.run.Lost)
	}
	return DrainLimit
}
