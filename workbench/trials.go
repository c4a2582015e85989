package workbench

import (
	"context"
	"errors"
	"strconv"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/sweep"
)

// Flows runs more than one run: the trials of a sweep, and what a chain needs to
// know of those that are done.
type Flows struct{ w *Workbench }

// NewFlows runs them by a workbench.
func NewFlows(w *Workbench) Flows { return Flows{w} }

// SweepOutcome is what a sweep came to.
type SweepOutcome struct {
	Outcome
	Board event.SweepChanged
}

// Sweep runs the trials of a profile on the nodes of its cluster, which is brought up
// when it is not there. When ctx ends, the trials that run go on, and the next Sweep
// goes on with them. again begins anew what is done.
func (f Flows) Sweep(ctx context.Context, plan *planning.Plan, goal Goal, again bool) (SweepOutcome, error) {
	w := f.w
	out := SweepOutcome{Outcome: Outcome{Cluster: plan.Cluster}}
	if _, is := w.jobs[plan.Provider]; is {
		if err := sweep.JobsOf(plan.Profile, traits(plan.Provider).InTurn); err != nil {
			return out, err
		}
	}
	id, err := w.sweepID(plan.Profile, again)
	if err != nil {
		return out, err
	}
	goal.Sweep = id
	d, err := w.begin(ctx, plan, goal)
	if err != nil {
		return out, err
	}
	defer d.release()
	out.Board, err = d.sweep(ctx)
	d.watch.Release()
	if lost, unsavedErr := w.results.Unsaved(plan.Cluster, d.s.life); goal.Down && ctx.Err() == nil && unsavedErr == nil && len(lost) > 0 {
		out.Outcome, err = d.keep(err, lost[0].Run)
		return out, err
	}
	if ctx.Err() != nil {
		d.goal.Down = false // the trials go on
	}
	out.Outcome, err = d.finish(ctx, err)
	return out, err
}

// sweepID is the id of the sweep of a profile that was begun last.
func (w *Workbench) sweepID(p *profiles.Profile, again bool) (string, error) {
	return sweep.Newest(p, again, (&drive{w: w}).sweepOwner().Past)
}

// isTrial reports whether the newest run of a cluster is a trial of a sweep.
func (w *Workbench) isTrial(c store.Cluster, id string) bool {
	run, todo, err := w.unfinishedRun(c.Name)
	if err != nil || !todo || id == "" {
		return false
	}
	_, data, err := w.runRecord(run.ID)
	return err == nil && data.Trial != nil && data.Trial.Sweep == id
}

// sweep gets the nodes ready and runs the trials. Where trials of an earlier process
// go on, nothing is changed under them.
func (d *drive) sweep(ctx context.Context) (event.SweepChanged, error) {
	if !d.plan.OK() {
		return event.SweepChanged{}, d.plan.Refusal()
	}
	owner := d.sweepOwner()
	owner.Billed = d.w.biller(d.plan.Provider)
	owner.Changed = d.plan.ChangedSince(func() (*transfer.Tree, error) { return d.w.tree(ctx, d.plan) })
	sweeping := func(slots []sweep.Slot) *sweep.Sweep {
		return sweep.New(owner, d.plan.Profile, d.goal.Sweep, slots)
	}
	going, err := sweeping(nil).Going()
	if err != nil {
		return event.SweepChanged{}, err
	}
	j, isJobs := d.jobs()
	switch p, lands := j.landing(); {
	case isJobs && lands && going && len(d.data.Envs) > 0:
		err = d.landOn(ctx, p)
	case isJobs && lands:
		_, err = d.land(ctx, p)
	case isJobs:
		err = d.nameReplicas()
	case going && len(d.data.Envs) == d.plan.Nodes:
		err = d.step(ctx, event.StepCluster, units.Count(d.plan.Nodes, "node")+" on "+d.plan.Provider, d.up)
		d.arrived = err == nil
	default:
		err = d.toLaunch(ctx)
	}
	if err == nil {
		d.watch, err = d.w.locks.ClaimSoon(ctx, d.plan.Cluster, locks.Watch)
	}
	if err != nil {
		return event.SweepChanged{}, err
	}
	if err := d.setPhase(event.PhaseReady); err != nil {
		return event.SweepChanged{}, err
	}
	d.lock.Release() // another dlwb may take the cluster down meanwhile
	d.lock = nil
	slots, err := d.slots()
	if err != nil {
		return event.SweepChanged{}, err
	}
	d.beside = len(slots)
	return sweeping(slots).Run(ctx)
}

// jobs is the backend of a drive whose provider takes whole jobs; false: it has nodes.
func (d *drive) jobs() (jobs, bool) {
	p, is := d.w.jobs[d.plan.Provider]
	return jobs{p, d.w}, is
}

// slots are the places for trials on the nodes. One that is a job has nodes of its own.
func (d *drive) slots() ([]sweep.Slot, error) {
	s := d.plan.Profile.Sweep
	if _, is := d.jobs(); is {
		return sweep.Slots(make([]int, sweep.AtOnce(s, traits(d.plan.Provider).InTurn)), 1, 0), nil
	}
	slots := sweep.Slots(d.data.GPUs, s.Nodes, s.GPUs)
	if len(slots) == 0 {
		return nil, profiles.Errors{d.plan.Profile.Fault("sweep.gpus", "sweep.gpus "+strconv.Itoa(s.GPUs), "no node has so many: they have "+units.Numbers(d.data.GPUs), "", "lower it")}
	}
	if s.Parallel > 0 {
		slots = slots[:min(len(slots), s.Parallel)]
	}
	return slots, nil
}

// sweepOwner is what a sweep needs of this drive.
func (d *drive) sweepOwner() sweep.Owner {
	w := d.w
	return sweep.Owner{
		Past: func(run string) (sweep.Past, bool, error) {
			_, err := w.db.Run(run)
			if errors.Is(err, store.ErrNotFound) {
				return sweep.Past{}, false, nil
			}
			r, data, err := w.runRecord(run)
			if err != nil || data.Trial == nil {
				return sweep.Past{}, false, err
			}
			st, err := w.storyOf(run)
			past := sweep.Past{Label: *data.Trial, Started: st.Started, Ended: st.Ended, Billed: st.Billed.Of(), Began: r.StartedAt, Former: r.Life != d.s.life}
			return past, true, err
		},
		Launch: d.launchTrial,
		Watch:  d.watchTrial,
		Stop: func(ctx context.Context, run, why string) error {
			on, err := w.reachRun(d.record, run)
			if err != nil {
				return err
			}
			return w.stopRun(ctx, on, nil, run, follow.Asked+why)
		},
		Values: func(run, metric string) (values []float64) {
			points, err := w.history.Points(run, metric)
			for _, p := range points {
				values = append(values, float64(p.Value))
			}
			if err != nil {
				return nil
			}
			return values
		},
		Publish: func(b event.Body) error { return w.publish(d.s, b) },
	}
}

// launchTrial starts a trial on its part of the nodes, which nobody else changes
// meanwhile.
func (d *drive) launchTrial(ctx context.Context, run string, label sweep.Label, p *profiles.Profile) error {
	lock, err := d.w.locks.ClaimWhile(ctx, d.plan.Cluster, locks.Change, d.launchable)
	if err != nil {
		return err
	}
	defer lock.Release()
	if j, is := d.jobs(); is {
		t, plan := *d, *d.plan
		plan.Profile = p
		t.plan, t.trial, t.outcome, t.goal.Detach = &plan, &label, Outcome{}, true
		err := t.handInAs(ctx, j, run)
		d.arrived = d.arrived || t.arrived
		return err
	}
	_, _, err = d.part(label, p).launchAs(ctx, run)
	return err
}

// launchable says why nothing may be launched on the cluster as it is now.
func (d *drive) launchable() error {
	c, err := d.w.db.ClusterLife(d.s.life)
	if phase := event.Phase(c.Phase); err == nil && (c.EndedAt != nil || phase != event.PhaseReady && phase != event.PhaseRunning) {
		return &sweep.HaltError{Err: &event.Fault{What: "launch a trial on cluster " + c.Name, Node: -1, Why: "the cluster is " + c.Phase,
			Next: d.again() + " goes on with the trials that wait, on machines that are ready"}}
	}
	return err
}

// watchTrial follows a trial to its end. A life that is over has told all that there
// is of its trials.
func (d *drive) watchTrial(ctx context.Context, id string) (event.RunEnded, error) {
	run, _, err := d.w.runRecord(id)
	if err != nil {
		return event.RunEnded{}, err
	}
	st, err := d.w.storyOf(id)
	if err != nil {
		return event.RunEnded{}, err
	}
	if st.Ended != nil && (st.Over() || run.Life != d.s.life) {
		return *st.Ended, nil
	}
	c, err := d.w.db.ClusterLife(run.Life)
	if err != nil {
		return event.RunEnded{}, err
	}
	ended, err := d.w.takeOver(ctx, c, run)
	if st, storyErr := d.w.storyOf(id); err != nil && ctx.Err() == nil && storyErr == nil && st.Ended != nil {
		_ = d.w.publish(scope{cluster: c.Name, life: c.ID, run: id}, event.Noticed{Level: "warning", Text: err.Error(), Next: event.NextOf(err)})
		return *st.Ended, nil // it has ended; what failed is told
	}
	return ended, err
}

// part is a drive of some of the nodes, for one trial.
func (d *drive) part(label sweep.Label, p *profiles.Profile) *drive {
	t := *d
	plan := *d.plan
	plan.Profile, plan.Nodes = p, len(label.Slot.Nodes)
	t.plan, t.trial, t.link, t.recorded, t.outcome = &plan, &label, d.link.part(label.Slot.Nodes), nil, Outcome{}
	t.data.Cluster = t.link.cluster
	t.data.Envs, t.data.GPUs = []environment.Result{}, nil
	for i, n := range label.Slot.Nodes {
		t.data.Envs = append(t.data.Envs, d.data.Envs[n])
		numbers, gpus := d.gpusOf(n), d.data.GPUs[n]
		if label.Slot.GPUs != nil {
			gpus = len(label.Slot.GPUs)
			numbers = nil
			for _, g := range label.Slot.GPUs {
				numbers = append(numbers, d.gpusOf(n)[g])
			}
		}
		t.data.GPUs = append(t.data.GPUs, gpus)
		if own := &t.data.Cluster.Nodes[i]; own.SimulatedGPUs == 0 && (gpus > 0 || traits(d.plan.Provider).SharedHost) {
			own.GPUs = append([]int{}, numbers...)
		}
	}
	return &t
}

// gpusOf are the numbers of the GPUs that a node has for this cluster.
func (d *drive) gpusOf(node int) []int {
	if own := d.data.Cluster.Nodes[node].GPUs; own != nil {
		return own
	}
	first, all := 0, make([]int, d.data.GPUs[node])
	if traits(d.plan.Provider).SharedHost {
		first = node * len(all)
	}
	for i := range all {
		all[i] = first + i
	}
	return all
}

// part is a link to some of the nodes, over the same connections.
func (l *link) part(nodes []int) *link {
	p := &link{w: l.w, life: l.life, job: l.job, cluster: l.cluster, ctx: l.ctx, cancel: l.cancel}
	p.cluster.Nodes, p.nodes = []cloud.Node{}, []*remote.Node{}
	for _, n := range nodes {
		if n < len(l.nodes) {
			p.cluster.Nodes, p.nodes = append(p.cluster.Nodes, l.cluster.Nodes[n]), append(p.nodes, l.nodes[n])
		}
	}
	return p
}

// ofRun is the link to the nodes that a run has. Those of jobs share out no nodes.
func (l *link) ofRun(run string) *link {
	if _, is := l.w.jobs[l.cluster.Provider]; is {
		return l
	}
	if _, data, err := l.w.runRecord(run); err == nil && data.Trial != nil {
		return l.part(data.Trial.Slot.Nodes)
	}
	return l
}

// reachRun gives what carries one run: of a trial, its part of the nodes.
func (w *Workbench) reachRun(c store.Cluster, run string) (carrier, error) {
	on, err := w.reach(c)
	if l, is := on.(*link); is && err == nil {
		return l.ofRun(run), nil
	}
	return on, err
}

// Board is the leaderboard of the sweep of a profile that was begun last, as it
// is on record.
func (f Flows) Board(p *profiles.Profile) (event.SweepChanged, error) {
	id, err := f.w.sweepID(p, false)
	if err != nil {
		return event.SweepChanged{}, err
	}
	d := &drive{w: f.w}
	return sweep.New(d.sweepOwner(), p, id, nil).Recorded()
}

// DoneWith finds the newest run of a key that ended well and whose results are home.
func (f Flows) DoneWith(key string) (run string, done bool) {
	w := f.w
	rows, err := w.db.Runs("")
	for _, r := range rows {
		if r.ExitCode == nil || *r.ExitCode != 0 || err != nil {
			continue
		}
		if _, data, err := w.runRecord(r.ID); err != nil || data.Key != key || key == "" {
			continue
		}
		if at, err := w.results.Of(r.ID); err == nil && at.Lost == "" && at.Files > 0 {
			return r.ID, true
		}
	}
	return "", false
}
