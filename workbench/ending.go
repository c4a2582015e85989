package workbench

import (
	"context"
	"errors"
	"time"

	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// recordEnd tells how a run ended and writes it down. It is told first: an end
// that was told is put on record by whoever looks next, so a crash in between
// makes no difference. An end is told once.
func (w *Workbench) recordEnd(s scope, run store.Run, data runData, e event.RunEnded) error {
	st, err := w.storyOf(run.ID)
	if err != nil {
		return err
	}
	if st.Ended == nil {
		s.run = run.ID
		if err := w.publish(s, e); err != nil {
			return err
		}
		st.Ended, st.EndedAt = &e, now()
	}
	_, err = w.putEnd(run, data, *st.Ended, st.EndedAt)
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
// stopped again. Where they could not be, the end of a trial is not told: its place
// would be given to the next.
func (w *Workbench) abandon(s scope, c carrier, run store.Run, data runData, cause error) {
	ended := event.RunEnded{ExitCode: 1, Verdict: event.ExitedBad, Rank: -1, Node: event.FaultOf(cause).Node,
		Cause: "it could not be started: " + cause.Error(), Duration: since(run.StartedAt)}
	if errors.Is(cause, context.Canceled) {
		ended.ExitCode, ended.Verdict, ended.Cause = 130, event.Stopped, "it was interrupted while its ranks were started"
	}
	if err := w.stopRun(w.ctx, c, nil, run.ID, "the launch failed"); err != nil {
		ended.Cause += "; " + err.Error()
		if data.Trial != nil {
			return
		}
	}
	_ = w.recordEnd(s, run, data, ended) // the failure of the launch is told in any case
}
