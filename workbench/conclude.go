package workbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// conclude says how the run ended, once all is known, and sweeps up what its
// ranks may have left behind.
func (t *watch) conclude(ctx context.Context) (event.RunEnded, error) {
	if t.endedBadly() {
		t.lookOver(ctx)
	}
	t.mu.Lock()
	ended := judge(t.nodes, t.rankEnds())
	ended.Duration = t.duration()
	t.mu.Unlock()
	if log := t.blamed(ended); log != nil {
		ended.LastLines = log.tail(20)
	} else if ended.Verdict == event.Hung {
		ended.LastLines = t.lastOfEach()
	}
	sweepErr := t.sweep(ctx)
	return ended, errors.Join(t.w.recordEnd(t.s, t.run, t.data, ended), sweepErr)
}

// lastOfEach gives the end of every rank's log, for a run that hangs and no
// rank stands out. Of a great many ranks the first have to do.
func (t *watch) lastOfEach() []string {
	const ranks, lines = 8, 4
	var said []string
	for _, r := range t.data.Ranks[:min(ranks, len(t.data.Ranks))] {
		for _, line := range t.logs[r.Rank].tail(lines) {
			said = append(said, fmt.Sprintf("rank %d: %s", r.Rank, line))
		}
	}
	return said
}

// fullBelow is how little room on a node's disk explains a bad end.
const fullBelow = 64 << 10

// endedBadly reports whether there is anything to explain.
func (t *watch) endedBadly() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.nodes {
		if n.code != 0 || n.why != "" {
			return true
		}
	}
	return false
}

// lookOver asks each node, all at once, what explains a bad end.
func (t *watch) lookOver(ctx context.Context) {
	passed := t.lost()
	_ = t.link.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		if passed[i] {
			return nil
		}
		if state, err := n.RunState(ctx, t.run.ID); err == nil && len(state.Statuses) > 0 {
			t.looked(i, state)
		}
		return nil // what can't be seen explains nothing
	})
}

// duration is how long the run was, in seconds: by the uptime of the node where
// it took longest, else, where no node can tell, by the clock here. The caller
// holds the lock.
func (t *watch) duration() float64 {
	var longest time.Duration
	for _, n := range t.nodes {
		if n.from > 0 && n.to > n.from {
			longest = max(longest, n.to-n.from)
		}
	}
	if longest > 0 {
		return longest.Seconds()
	}
	return since(t.run.StartedAt)
}

// blamed is the log that tells most of a failure: that of the rank at fault,
// else of its launcher.
func (t *watch) blamed(e event.RunEnded) *logFile {
	switch {
	case e.Verdict == event.Succeeded || e.Verdict == event.Stopped:
		return nil
	case e.Rank >= 0:
		return t.logs[e.Rank]
	case e.Node >= 0:
		return t.logs[LauncherLog(e.Node)]
	}
	return nil
}

// sweep ends what the ranks started and left, also in sessions of its own. A
// node that is gone is not asked, and neither is one that ended the run because
// it goes: it may be off by now.
func (t *watch) sweep(ctx context.Context) error {
	passed := t.lost()
	for i, n := range t.nodes {
		passed[i] = passed[i] || n.leaves()
	}
	return t.w.stopRanks(ctx, t.link, passed, t.run.ID, "the run is over")
}

// recordEnd tells how a run ended and writes it down. It is told first: an end
// that was told is put on record by whoever looks next, so a crash in between
// makes no difference. An end is told once.
func (w *Workbench) recordEnd(s scope, run store.Run, data runData, e event.RunEnded) error {
	st, err := w.storyOf(run.ID)
	if err != nil {
		return err
	}
	if st.ended == nil {
		s.run = run.ID
		if err := w.publish(s, e); err != nil {
			return err
		}
		st.ended, st.endedAt = &e, now()
	}
	_, err = w.putEnd(run, data, *st.ended, st.endedAt)
	w.changed()
	return err
}

// putEnd puts the end of a run on its record.
func (w *Workbench) putEnd(run store.Run, data runData, e event.RunEnded, at time.Time) (store.Run, error) {
	run.EndedAt, run.ExitCode = &at, &e.ExitCode
	run.Verdict, run.Cause = string(e.Verdict), e.Cause
	data.RankAtFault, data.NodeAtFault, data.Duration = e.Rank, e.Node, e.Duration
	return run, w.putRun(run, data)
}

// abandon ends a run whose ranks could not all be started: those that were are
// stopped again.
func (w *Workbench) abandon(s scope, l *link, run store.Run, data runData, cause error) {
	ctx, cancel := context.WithTimeout(w.ctx, stopGrace+stopLimit)
	defer cancel()
	ended := event.RunEnded{ExitCode: 1, Verdict: event.ExitedBad, Rank: -1, Node: event.FaultOf(cause).Node,
		Cause: "it could not be started: " + cause.Error(), Duration: since(run.StartedAt)}
	if errors.Is(cause, context.Canceled) {
		ended.ExitCode, ended.Verdict, ended.Cause = 130, event.Stopped, "it was interrupted while its ranks were started"
	}
	if err := w.stopRanks(ctx, l, nil, run.ID, "the launch failed"); err != nil {
		ended.Cause += "; " + err.Error()
	}
	_ = w.recordEnd(s, run, data, ended) // the failure of the launch is told in any case
}
