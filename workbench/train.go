package workbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/locks"
)

// train watches the run that launch started. The cluster is not being changed
// meanwhile, so another dlwb may stop the run or take the cluster down; that
// nobody else watches it was seen to before the launch.
func (d *drive) train(ctx context.Context) error {
	d.lock.Release()
	d.lock = nil
	ended, err := d.w.trainStep(ctx, d.s, d.via, d.plan.Profile.Run.Command)
	if err != nil {
		return err
	}
	d.outcome.Ended = &ended
	return nil
}

// trainStep watches a run to its end and closes the step. It goes on where an
// earlier dlwb left off.
func (w *Workbench) trainStep(ctx context.Context, s scope, on carrier, command string) (event.RunEnded, error) {
	_, data, err := w.runRecord(s.run)
	if err != nil {
		return event.RunEnded{}, err
	}
	st, err := w.storyOf(s.run)
	if err != nil {
		return event.RunEnded{}, err
	}
	if err := w.openTrain(s, st, command); err != nil {
		return event.RunEnded{}, err
	}
	stopOpening := w.tunnels.OpenListed(ctx, s.cluster, s.life, data.Forward)
	ended, err := w.watchRun(ctx, s, on, s.run, nil)
	stopOpening() // before the end is told: nothing of them comes after it
	if err != nil {
		return ended, watchFault(s, err)
	}
	return ended, w.closeTrain(s, ended)
}

// openTrain opens the step that a run is, if nobody has.
func (w *Workbench) openTrain(s scope, st history.Story, command string) error {
	if st.TrainStarted {
		return nil
	}
	return w.publish(s, event.StepStarted{Step: event.StepTrain, Text: command})
}

// closeTrain closes the step that a run was.
func (w *Workbench) closeTrain(s scope, ended event.RunEnded) error {
	step := event.StepEnded{Step: event.StepTrain, OK: ended.ExitCode == 0, Duration: ended.Duration, Text: ended.Cause}
	if !step.OK {
		step.Failure = &event.Fault{What: "train", Node: ended.Node, Why: ended.Cause, LastLines: ended.LastLines}
	}
	return w.publish(s, step)
}

// watchFault says what becomes of a run whose watch failed: nothing. What can't
// be stored here goes on there.
func watchFault(s scope, err error) error {
	var told *event.Fault
	if errors.As(err, &told) || errors.Is(err, context.Canceled) || errors.Is(err, follow.ErrSuperseded) {
		return err
	}
	return &event.Fault{What: "watch run " + s.run, Node: -1, Why: err.Error(),
		Next: "the run goes on; dlwb attach " + s.cluster + " shows it when this is mended"}
}

// Attach begins to watch the run of a cluster in the background. Where another
// dlwb watches already, it waits to take over.
func (w *Workbench) Attach(_ context.Context, cluster string) error {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return err
	}
	w.tunnels.Adopt(c.Name)
	w.mu.Lock()
	already := w.watching[c.Name]
	w.watching[c.Name] = true
	w.mu.Unlock()
	if already {
		return nil
	}
	w.background(func(ctx context.Context) {
		_, err := w.Watch(ctx, c.Name)
		if err != nil && ctx.Err() == nil && !errors.Is(err, follow.ErrSuperseded) {
			_ = w.publish(scope{cluster: c.Name, life: c.ID}, event.Failed{Fault: *event.FaultOf(err)})
		}
		w.mu.Lock()
		delete(w.watching, c.Name)
		w.mu.Unlock()
	})
	return nil
}

// Watch follows the run that is going on on a cluster until it has ended, and
// brings its results home. While another dlwb does that, it waits: for the end
// of all that, or to take over when the other one goes away. What a dlwb that
// was killed had left to do is done too.
func (w *Workbench) Watch(ctx context.Context, cluster string) (event.RunEnded, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return event.RunEnded{}, err
	}
	if on, err := w.reach(c); err == nil {
		on.observe(scope{cluster: c.Name, life: c.ID})
	}
	run, todo, err := w.unfinishedRun(c.Name)
	if err != nil || !todo || run.Life != c.ID {
		return event.RunEnded{}, err
	}
	lock, ended, err := w.awaitTurn(ctx, w.locks.Turn(c.Name, locks.Watch).Claim, run)
	if lock == nil {
		return ended, err
	}
	defer lock.Release()
	return w.takeOver(ctx, c, run)
}

// awaitTurn waits until nobody else watches a run, and takes the lock of that;
// none when the other one has told all there is to tell.
func (w *Workbench) awaitTurn(ctx context.Context, claim func() (*locks.Claim, error), run store.Run) (*locks.Claim, event.RunEnded, error) {
	for {
		lock, err := claim()
		if err != nil || lock != nil {
			return lock, event.RunEnded{}, err
		}
		select {
		case <-time.After(watchRetry):
		case <-ctx.Done():
			return nil, event.RunEnded{}, ctx.Err()
		}
		if st, err := w.storyOf(run.ID); err == nil && st.Over() {
			return nil, *st.Ended, nil
		}
	}
}

// watchRetry is how often one who looks on looks whether it is his turn.
const watchRetry = 500 * time.Millisecond

// takeOver goes on with a run that nobody watches, from wherever it was left.
func (w *Workbench) takeOver(ctx context.Context, c store.Cluster, run store.Run) (event.RunEnded, error) {
	on, err := w.reachRun(c, run.ID)
	if err != nil {
		return event.RunEnded{}, err
	}
	s := scope{cluster: c.Name, life: c.ID, run: run.ID}
	st, err := w.storyOf(run.ID)
	if err != nil {
		return event.RunEnded{}, err
	}
	var ended event.RunEnded
	var silent []bool // nodes that were just given up
	switch {
	case st.Over():
		return *st.Ended, nil // between the look and the lock
	case st.Ended == nil:
		over := false
		if !st.Started {
			if ended, over, err = on.settle(ctx, s, run); over || err != nil {
				return ended, err
			}
		}
		on.resume(s)
		ended, err = w.trainStep(ctx, s, on, run.Command)
		silent = ended.GivenUp()
	case !st.TrainEnded:
		ended = *st.Ended
		err = w.closeTrain(s, ended)
	default:
		ended = *st.Ended
	}
	if err != nil {
		return ended, err
	}
	return ended, on.fetch(ctx, s, silent)
}

// Ended says how a run ended; false while it goes on.
func (w *Workbench) Ended(run string) (event.RunEnded, bool) {
	st, err := w.storyOf(run)
	if err != nil || st.Ended == nil {
		return event.RunEnded{}, false
	}
	return *st.Ended, true
}

// LiveRun is the run that goes on on a cluster.
func (w *Workbench) LiveRun(cluster string) (id string, live bool) {
	r, live, err := w.liveRun(cluster)
	return r.ID, live && err == nil
}

// Stop ends a run and keeps its cluster. It may be called from any process; whoever
// watches the run records the end, and where nobody does, this call does.
func (w *Workbench) Stop(ctx context.Context, run string) error {
	r, _, err := w.runRecord(run)
	if err == nil {
		r, err = w.complete(r)
	}
	if err != nil || r.EndedAt != nil {
		return err
	}
	c, err := w.db.ClusterLife(r.Life)
	if err != nil {
		return err
	}
	if err := w.awaitLaunch(ctx, c, run); err != nil {
		return err
	}
	on, err := w.reachRun(c, run)
	if err != nil {
		return err
	}
	return w.stopOn(ctx, c, on, run)
}

// stopOn ends a run on what carries it.
func (w *Workbench) stopOn(ctx context.Context, c store.Cluster, on carrier, run string) error {
	replicas, err := on.replicas(run)
	if err == nil {
		err = follow.Stop(ctx, replicas, follow.Silent(ctx, replicas), run, follow.Asked+"stopped by request", w.graceOf(run))
	}
	if err == nil {
		err = w.awaitEnd(ctx, c, run, endWait)
	}
	// Whoever watches the run may take the cluster down behind its end: its nodes do not
	// answer then, and soon it is not known any more.
	if _, told := w.Ended(run); told {
		return nil
	}
	return err
}

// endWait bounds the wait for another dlwb to tell the end of a run that was
// stopped: one that was suspended holds the watch and does nothing with it.
const endWait = follow.DrainLimit + 15*time.Second

// awaitEnd waits for the end of a run that was stopped, and where nobody
// watches it, tells it.
func (w *Workbench) awaitEnd(ctx context.Context, c store.Cluster, run string, wait time.Duration) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(wait, func() {
		if _, ended := w.Ended(run); !ended {
			cancel()
		}
	}).Stop()
	_, err := w.Watch(limited, c.Name)
	if err == nil || ctx.Err() != nil || limited.Err() == nil {
		return err
	}
	f := &event.Fault{What: "tell the end of run " + run, Node: -1, Why: "its ranks are stopped, and the end did not come to be known",
		Next: "dlwb attach " + c.Name}
	if pid := w.locks.Holder(c.Name, locks.Watch); pid != 0 {
		f.Why = fmt.Sprintf("its ranks are stopped, but process %d, the dlwb that watches it, still brings its logs home, or does not go on", pid)
		f.Next = fmt.Sprintf("if it was suspended, let it go on (fg), or end it (kill -9 %d); then dlwb attach %s", pid, c.Name)
	}
	return f
}

// awaitLaunch waits while another dlwb is starting the ranks of a run: one that
// is stopped half-way would be started all the same.
func (w *Workbench) awaitLaunch(ctx context.Context, c store.Cluster, run string) error {
	deadline := time.Now().Add(launchWait)
	for {
		st, err := w.storyOf(run)
		if err != nil || st.Started || st.Ended != nil || !w.locks.Held(c.Name, locks.Watch) {
			return err
		}
		if time.Now().After(deadline) {
			return &locks.BusyError{Cluster: c.Name, PID: w.locks.Holder(c.Name, locks.Watch)}
		}
		if err := waits.Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// launchWait bounds the wait for another dlwb to have started the ranks.
const launchWait = 20 * time.Second
