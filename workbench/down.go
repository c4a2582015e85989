package workbench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/locks"
)

// UnresolvedError says that teardown could not prove that everything is gone.
type UnresolvedError = cloud.UnresolvedError

// TearDown removes a cluster and everything in it, and returns the proof. A run
// that is going on is stopped first and its log brought home. It may be called
// again until it succeeds; a cluster that is already gone is no error. What ended runs
// wrote and did not come home is tried once more; where that fails too, keep leaves the
// cluster as it is, with an *UnsavedError.
func (w *Workbench) TearDown(ctx context.Context, cluster string, keep bool) (cloud.Receipt, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return cloud.Receipt{}, err
	}
	lock, err := w.locks.ClaimSoon(ctx, c.Name, locks.Change)
	if err != nil {
		return cloud.Receipt{}, err
	}
	defer lock.Release()
	return w.removeUnless(ctx, c.ID, keep)
}

// claimRemoval takes the change lock of a cluster to remove it, and waits for
// another dlwb that is removing it already.
func (w *Workbench) claimRemoval(ctx context.Context, c store.Cluster, grace time.Duration) (*locks.Claim, error) {
	deadline := time.Now().Add(grace + endRunLimit + homeLimit)
	for {
		lock, err := w.locks.ClaimSoon(ctx, c.Name, locks.Change)
		var busy *locks.BusyError
		if !errors.As(err, &busy) || time.Now().After(deadline) {
			return lock, err
		}
		if now, readErr := w.db.ClusterLife(c.ID); readErr != nil || event.Phase(now.Phase) != event.PhaseStopping {
			return nil, err
		}
	}
}

// remove tears one life of a cluster down; the caller holds the change lock. Of
// two that want to, the second one gets the receipt of the first.
func (w *Workbench) remove(ctx context.Context, life int64) (cloud.Receipt, error) {
	return w.removeUnless(ctx, life, false)
}

// removeUnless is remove that with keep leaves the cluster as it is, with an
// *UnsavedError, where it has results that do not come home now either.
func (w *Workbench) removeUnless(ctx context.Context, life int64, keep bool) (cloud.Receipt, error) {
	c, err := w.db.ClusterLife(life)
	if err != nil {
		return cloud.Receipt{}, err
	}
	if c.EndedAt != nil {
		var r cloud.Receipt
		return r, json.Unmarshal(c.Receipt, &r)
	}
	s := scope{cluster: c.Name, life: c.ID}
	from, err := w.backend(c.Provider)
	if err != nil {
		return cloud.Receipt{}, err
	}
	began := time.Now()
	// What can't be written down, as on a full disk, is no reason to keep
	// anything running: it is removed, and the failure to note it told.
	noteErr := w.publish(s, event.StepStarted{Step: event.StepDown, Text: "cluster " + c.Name})
	_, phaseErr := w.updateCluster(life, func(c *store.Cluster) { c.Phase = string(event.PhaseStopping) })
	defer w.tellWaits(ctx, s, event.StepDown)()
	ended := w.endRuns(ctx, c, keep)
	if ctx.Err() != nil {
		return cloud.Receipt{}, w.refrain(s, ctx.Err(), "interrupted; nothing was removed yet", began)
	}
	if keep {
		if err := w.unsavedOf(c, ended); err != nil {
			return cloud.Receipt{}, w.refrain(s, err, err.Error()+"; nothing was removed", began)
		}
	}
	noteErr = errors.Join(noteErr, phaseErr)
	w.tunnels.CloseAll(c.Name, "the cluster is taken down")
	w.unlink(c.Name)
	known, err := w.lifeOf(c)
	if err != nil {
		return cloud.Receipt{}, err
	}
	receipt, err := from.Down(ctx, known, func(node int, text string) {
		_ = w.publish(s, event.StepProgress{Step: event.StepDown, Node: node, Text: text})
	})
	w.bringKept(ctx, c, ended)
	switch {
	case !receipt.Proven():
		perHour := c.PricePerHour
		if _, is := w.jobs[c.Provider].(cloud.Biller); is {
			perHour *= float64(receipt.ProcessesLeft)
		}
		err = &UnresolvedError{Receipt: receipt, PerHour: perHour, Err: err}
	case err == nil:
		err = errors.Join(os.RemoveAll(w.keysDir(c.Name)), w.tunnels.Forget(c.Name), w.ssh.Remove(c.Name))
	}
	w.closeRuns(c) // now at the latest: its record may have failed before
	runs, _ := w.runsOf(c)
	w.askBills(ctx, c.Provider, runs...)
	recordErr := w.recordDown(s, receipt, err, began)
	if recordErr == nil {
		noteErr = nil // the last word is written
	}
	return receipt, errors.Join(err, recordErr, noteErr)
}

// UnsavedError says that a cluster stays because of what is on it only.
type UnsavedError struct {
	Run  string // the newest of which something is
	Left string // what
}

func (e *UnsavedError) Error() string { return e.Left }

// unsavedOf is the error of a cluster that has what is nowhere else; nil: nothing that
// is known of. What a service keeps is at stake only for runs that were just ended. A
// record that can't be read is no proof that all is home.
func (w *Workbench) unsavedOf(c store.Cluster, ended []string) error {
	all, err := w.results.Unsaved(c.Name, c.ID)
	if err != nil {
		return &UnsavedError{"", "whether the results of its runs are home is not known: " + err.Error()}
	}
	for _, r := range all {
		if !w.keeps(c) || slices.Contains(ended, r.Run) {
			return &UnsavedError{r.Run, r.AtStake}
		}
	}
	return nil
}

// refrain tells that a teardown ended before anything was removed.
func (w *Workbench) refrain(s scope, cause error, why string, began time.Time) error {
	_, err := w.updateCluster(s.life, func(c *store.Cluster) { c.Phase = string(event.PhaseReady) })
	f := &event.Fault{What: "take down cluster " + s.cluster, Node: -1, Why: why,
		Next: "dlwb down " + s.cluster + " goes on"}
	return errors.Join(cause, err, w.publish(s, event.StepEnded{Step: event.StepDown, Duration: since(began), Text: f.Why, Failure: f}))
}

// recordDown writes down what teardown came to and tells it.
func (w *Workbench) recordDown(s scope, r cloud.Receipt, downErr error, began time.Time) error {
	ended := event.StepEnded{Step: event.StepDown, OK: downErr == nil, Duration: since(began), Text: "nothing is left"}
	proven := downErr == nil && r.Proven()
	if !proven {
		ended.Failure = &event.Fault{What: "prove that nothing is left", Node: -1, Why: downErr.Error(), Next: "dlwb down " + s.cluster + " tries again"}
		ended.Text = downErr.Error()
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.updateCluster(s.life, func(c *store.Cluster) {
		c.Phase, c.Receipt = string(event.PhaseUnresolved), b
		if proven {
			at := now()
			c.Phase, c.EndedAt = string(event.PhaseGone), &at
		}
	})
	if err != nil {
		return err
	}
	if err := w.publish(s, ended); err != nil {
		return err
	}
	return w.publish(s, w.books.Counted(s.life, now(), event.ReceiptMade{
		Proven: proven, ProcessesLeft: r.ProcessesLeft, FilesLeft: r.FilesLeft,
		Lived: r.Lived.Seconds(), Cost: r.Cost, Resources: r.Resources,
	}))
}

const (
	// endRunLimit bounds the wait for the end of a run that is being stopped, beyond
	// its grace: past it the cluster is removed all the same.
	endRunLimit = 35 * time.Second
	// homeLimit bounds the wait for its results beyond that.
	homeLimit = 2 * time.Minute
	// lostWait is how long the nodes of a run that ended because it lost some have to
	// answer, before its results are given up.
	lostWait = 5 * time.Second
)

// endRuns stops the runs that are going on, several where they are trials of a sweep,
// and waits until their ends are recorded and their logs and results are home. What
// earlier runs wrote and is not home is tried once more. A cluster that can't be
// reached is no reason not to remove it; then what is missing is told, unless it is
// kept. It gives those that it ended.
func (w *Workbench) endRuns(ctx context.Context, c store.Cluster, keep bool) (ended []string) {
	runs, _ := w.unfinishedRuns(c)
	turn := w.locks.Turn(c.Name, locks.Watch)
	defer turn.Release()
	var all sync.WaitGroup
	for _, run := range runs {
		ended = append(ended, run.ID)
		all.Go(func() { _ = w.endRun(ctx, c, run, turn, keep, nil) })
	}
	all.Wait()
	earlier, _ := w.results.Unsaved(c.Name, c.ID)
	var away error // no node of the whole cluster answers: those of the next run are not asked again
	for _, r := range earlier {
		run, data, err := w.runRecord(r.Run)
		if err != nil || slices.Contains(ended, r.Run) || w.keeps(c) || ctx.Err() != nil {
			continue
		}
		if err := w.endRun(ctx, c, run, turn, keep, away); errors.Is(err, errAway) && data.Trial == nil {
			away = err
		}
	}
	return ended
}

// errAway says why what a run wrote is not asked for.
var errAway = errors.New("none of its nodes answers")

// endRun ends one of them, unless it is known why that can't be done, and says so.
func (w *Workbench) endRun(ctx context.Context, c store.Cluster, run store.Run, turn *locks.Turn, keep bool, away error) error {
	limit := cmp.Or(w.graceOf(run.ID), follow.StopGrace) + endRunLimit
	limited, cancel := context.WithTimeout(ctx, limit+homeLimit)
	defer cancel()
	defer time.AfterFunc(limit, func() {
		if _, ended := w.Ended(run.ID); !ended {
			cancel()
		}
	}).Stop()
	on, err := w.reachRun(c, run.ID)
	if err = cmp.Or(away, err); err == nil {
		err = w.endOn(ctx, limited, on, c, run, turn)
	}
	slog.Debug("finished the run", "run", run.ID, "error", err)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.closeRun(c, run.ID)
	if missing := w.results.Missing(run.ID, err); missing != nil && !keep && !w.keeps(c) {
		_ = w.publish(scope{cluster: c.Name, life: c.ID, run: run.ID}, *missing)
	}
	return err
}

// endOn stops a run, and waits for its end and its results. What does not answer is
// not waited for: what can be reached goes first.
func (w *Workbench) endOn(ctx, limited context.Context, on carrier, c store.Cluster, run store.Run, turn *locks.Turn) error {
	replicas, err := on.replicas(run.ID)
	if err != nil {
		return err
	}
	asked := limited
	if e, over := w.Ended(run.ID); over && e.Verdict == event.Lost { // what was lost answers soon, or is off for good
		var cancel context.CancelFunc
		asked, cancel = context.WithTimeout(limited, lostWait)
		defer cancel()
	}
	silent := follow.Silent(asked, replicas)
	if !slices.Contains(silent, false) {
		return errAway
	}
	if st, err := w.storyOf(run.ID); err == nil && st.Over() {
		return on.fetch(ctx, scope{cluster: c.Name, life: c.ID, run: run.ID}, silent)
	}
	if run.EndedAt == nil {
		_ = w.stopRun(limited, on, silent, run.ID, follow.TakenDown)
	}
	return w.finishRun(ctx, limited, on, c, run, silent, turn)
}

// finishRun waits until the end of a run that was stopped is told and what it
// wrote is home. Where nobody else does that, it reads what is left to read, and
// nothing more: no forward is opened and nothing is asked of nodes that go next.
func (w *Workbench) finishRun(ctx, limited context.Context, on carrier, c store.Cluster, run store.Run, silent []bool, turn *locks.Turn) error {
	if lock, _, err := w.awaitTurn(limited, turn.Claim, run); lock == nil {
		return err
	}
	s := scope{cluster: c.Name, life: c.ID, run: run.ID}
	st, err := w.storyOf(run.ID)
	if err != nil || st.Over() {
		return err
	}
	if st.Ended == nil && !st.Started {
		if _, over, err := on.settle(limited, s, run); over || err != nil {
			return err
		}
	}
	if st.Ended == nil {
		ended, err := event.RunEnded{}, w.openTrain(s, st, run.Command)
		if err == nil {
			ended, err = w.watchRun(limited, s, on, run.ID, silent)
		}
		if err != nil {
			return err
		}
		st.Ended = &ended
	}
	if !st.TrainEnded {
		if err := w.closeTrain(s, *st.Ended); err != nil {
			return err
		}
	}
	// However long this takes: it ends by itself when nothing comes any more.
	return on.fetch(ctx, s, silent)
}

// closeRuns records the ends of runs that could not be watched to their ends.
func (w *Workbench) closeRuns(c store.Cluster) {
	runs, _ := w.unfinishedRuns(c)
	for _, run := range runs {
		w.closeRun(c, run.ID)
	}
}

func (w *Workbench) closeRun(c store.Cluster, id string) {
	run, data, err := w.runRecord(id)
	if err != nil || run.EndedAt != nil {
		return
	}
	s := scope{cluster: c.Name, life: c.ID, run: run.ID}
	_ = w.recordEnd(s, run, data, event.RunEnded{ExitCode: 130, Verdict: event.Stopped, Rank: -1, Node: -1,
		Cause: "the cluster was taken down; its end could not be watched", Duration: since(run.StartedAt)})
}
