package workbench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/inputs"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/naming"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/sweep"
)

// Goal says how far to go with a plan.
type Goal struct {
	// Until is the last step to do; empty means StepFetch.
	Until string
	// Down removes the cluster in the end, whatever the run came to.
	Down bool
	// Keep leaves machines that this drive made also when they could not be
	// reached after they came up.
	Keep bool
	// RemoveOnFailure removes a cluster that this drive made when a step
	// before training fails; without it a cluster that came up stays, and only
	// one that did not is removed.
	RemoveOnFailure bool
	// Detach ends the drive when the ranks are started.
	Detach bool
	// Force sets up the environment again although nothing changed.
	Force bool
	// Sweep is the id of the sweep whose trials are run instead of a run; the
	// drive ends before the launch.
	Sweep string
	// Key says what a run of a chain is made of: one with the same is not run again.
	Key string
	// RerunOf is the run that is done again; empty for one of its own.
	RerunOf string
}

// Outcome is what a drive came to.
type Outcome struct {
	Cluster string
	Run     string
	Started bool            // events tell the story, failures too
	Ended   *event.RunEnded // nil when no run ended while we looked
	Receipt *cloud.Receipt  // nil when nothing was removed
}

// drive is one way through the steps.
type drive struct {
	w    *Workbench
	plan *planning.Plan
	goal Goal

	lock       *locks.Claim // nil while somebody else may change the cluster
	watch      *locks.Claim // of the run, from before its launch until its results are home
	s          scope
	record     store.Cluster
	data       clusterData
	made       bool               // this drive began the cluster
	idle       bool               // the cluster was up, as this very profile has it
	arrived    bool               // its machines are up and were reached
	booted     bool               // its machines were there before, and have booted again
	lostRun    string             // the run that this drive goes on with, after it failed or lost machines
	command    string             // of the run, without what is added for going on
	engineName string             // of the run that was launched last
	ckpts      map[int]string     // by node, what the run goes on from, below the code directory
	behind     bool               // it goes on behind a screen, and whoever leaves that leaves what runs
	link       *link              // to the nodes
	via        carrier            // of the run
	modules    []string           // that are loaded on the machine of a Landing
	active     context.CancelFunc // ends the word to the nodes that somebody is at work
	outcome    Outcome
	trial      *sweep.Label // what is launched is a trial; nil: it is a run
	beside     int          // how many of them run at once

	ahead <-chan readCode // the code, which is being read already; nil: it is not

	recorded chan struct{} // closed when the recipe of the run is written
}

// Do goes through the steps of a plan as far as the goal says. What happens is
// told by events; the error is the failure that ended it. When ctx ends during
// training, the run goes on and Do returns ctx's error; before that, machines
// that did not come up whole are removed again, and others stay.
func (w *Workbench) Do(ctx context.Context, plan *planning.Plan, goal Goal) (Outcome, error) {
	d, err := w.begin(ctx, plan, goal)
	if err != nil {
		return Outcome{Cluster: plan.Cluster}, err
	}
	defer d.release()
	return d.finish(ctx, d.steps(ctx))
}

// StartPlan is Do in the background, behind a screen. Close ends the watching of it:
// a run that trains goes on, and its cluster stays, whatever the goal says.
func (w *Workbench) StartPlan(ctx context.Context, plan *planning.Plan, goal Goal) error {
	d, err := w.begin(ctx, plan, goal)
	if err != nil {
		return err
	}
	d.behind = true
	w.background(func(ctx context.Context) {
		defer d.release()
		_, _ = d.finish(ctx, d.steps(ctx)) // events tell what came of it
	})
	return nil
}

// begin takes the cluster and writes down that it exists before anything is
// made.
func (w *Workbench) begin(ctx context.Context, plan *planning.Plan, goal Goal) (*drive, error) {
	if plan.Trusted.Profile() == nil || plan.Trusted.Profile() != plan.Profile {
		return nil, planning.ErrNotLetThrough
	}
	lock, err := w.locks.ClaimSoon(ctx, plan.Cluster, locks.Change)
	if err != nil {
		return nil, err
	}
	d := &drive{w: w, plan: plan, goal: goal, lock: lock, outcome: Outcome{Cluster: plan.Cluster, Started: true}}
	if err := d.enter(ctx); err != nil {
		d.release()
		return nil, err
	}
	return d, nil
}

// release gives the cluster back to whoever wants to change it.
func (d *drive) release() {
	d.lock.Release()
	d.lock = nil
}

// enter finds the cluster's record or begins a new one.
func (d *drive) enter(ctx context.Context) error {
	w, p := d.w, d.plan
	c, err := w.db.Cluster(p.Cluster)
	if err == nil && c.EndedAt == nil && halfGone(c) {
		if _, err := w.remove(ctx, c.ID); err != nil {
			return err
		}
		c, err = w.db.Cluster(p.Cluster)
	}
	switch {
	case err == nil && c.EndedAt == nil:
		_, d.idle = w.madeBy(p.Cluster, p.Profile)
		if err := d.reenter(ctx, c); err != nil {
			return err
		}
		// Another one may have been killed while it took the cluster down.
		if c, err = w.updateCluster(c.ID, func(c *store.Cluster) { c.Phase = string(event.PhaseStarting) }); err != nil {
			return err
		}
	case err == nil || errors.Is(err, store.ErrNotFound):
		c = store.Cluster{
			Name: p.Cluster, Provider: p.Provider, Phase: string(event.PhaseStarting), Profile: p.Name,
			ProfilePath: p.Path, ProfileSource: p.Profile.Source, CreatedAt: now(),
		}
		if c.Data, err = json.Marshal(clusterData{Life: naming.NewLife()}); err != nil {
			return err
		}
		if c.ID, err = w.db.BeginCluster(c); err != nil {
			return err
		}
		d.made = true
	default:
		return err
	}
	d.record = c
	d.s = scope{cluster: c.Name, life: c.ID}
	if d.data, err = w.clusterData(c); err != nil {
		return err
	}
	w.rememberProfile(p)
	err = w.publish(d.s, event.PlanMade{
		Profile: p.Name, Path: p.Path, Provider: p.Provider, Nodes: p.Nodes, Engine: p.EngineText(),
		Command: p.Profile.Run.Command, PricePerHour: p.PricePerHour, Steps: p.Steps, Until: d.goal.Until,
	})
	for _, text := range planning.SharedWith(c.ProfilePath, p.Profile) {
		err = errors.Join(err, w.publish(d.s, event.Noticed{Level: "warning", Text: text}))
	}
	return err
}

// halfGone reports whether a teardown of paid machines was begun and not
// finished. What AWS still shows of them is no basis for anything: it may be
// gone already.
func halfGone(c store.Cluster) bool {
	return traits(c.Provider).Leased && (event.Phase(c.Phase) == event.PhaseStopping || event.Phase(c.Phase) == event.PhaseUnresolved)
}

// reenter checks that a plan may go on with a cluster that exists. What a dlwb
// that was killed had left to do for its last run is done first.
func (d *drive) reenter(ctx context.Context, c store.Cluster) error {
	if c.Provider != d.plan.Provider {
		return &event.Fault{What: "use cluster " + c.Name, Node: -1,
			Why:  fmt.Sprintf("it was made by provider %s and the profile says %s", c.Provider, d.plan.Provider),
			Next: "dlwb down " + c.Name + ", or give the profile another name"}
	}
	if event.Phase(c.Phase) == event.PhaseStopped {
		return &event.Fault{What: "use cluster " + c.Name, Node: -1, Why: "its machines are stopped", Next: "dlwb start " + c.Name + ", then again"}
	}
	if d.goal.Until == event.StepCluster || d.w.isTrial(c, d.goal.Sweep) {
		return nil
	}
	run, goesOn, err := d.w.leftover(ctx, c)
	if err != nil || !goesOn {
		return err
	}
	return &event.Fault{What: "start on cluster " + c.Name, Node: -1, Why: "run " + run.ID + " is going on there",
		Next: fmt.Sprintf("dlwb attach %s shows it, dlwb stop %s ends it", c.Name, run.ID)}
}

// steps goes through the steps up to the goal.
func (d *drive) steps(ctx context.Context) error {
	if !d.plan.OK() {
		return d.plan.Refusal()
	}
	defer func() { d.watch.Release() }()
	b, err := d.w.backend(d.plan.Provider)
	if err != nil {
		return err
	}
	if err := b.toLaunch(ctx, d); err != nil {
		return err
	}
	if d.reached(event.StepLaunch) || d.goal.Detach {
		d.awaitRecipe(ctx)
		return nil
	}
	err = d.train(ctx)
	d.awaitRecipe(ctx) // the nodes may go next
	if err != nil {
		return err
	}
	if err := d.startAgain(ctx); err != nil {
		return err
	}
	if d.goal.Until == event.StepTrain {
		return nil
	}
	if err := d.via.fetch(ctx, d.s, d.outcome.Ended.GivenUp()); err != nil {
		return &unfetchedError{err}
	}
	return nil
}

// reached reports whether the goal is a step, or one before it.
func (d *drive) reached(step string) bool {
	return d.goal.Until != "" && slices.Index(event.Steps, d.goal.Until) <= slices.Index(event.Steps, step)
}

// keepActive tells the nodes that somebody is at work on them, until the steps
// before training are through.
func (d *drive) keepActive() {
	if d.active == nil {
		ctx, cancel := context.WithCancel(d.link.ctx)
		d.active = cancel
		link := d.link
		d.w.background(func(context.Context) { link.keepActive(ctx) })
	}
}

// toLaunch goes through the steps before training, as far as the goal says.
func (d *drive) toLaunch(ctx context.Context) error {
	defer func() {
		if d.active != nil {
			d.active()
			d.active = nil
		}
	}()
	d.readAhead(ctx)
	justCode := d.justCode(ctx)
	if !justCode {
		d.ahead = nil // it may take long to come to it
	}
	for _, s := range []struct {
		name, text string
		do         func(context.Context) (string, bool, error)
	}{
		{event.StepCluster, units.Count(d.plan.Nodes, "node") + " on " + d.plan.Provider, d.up},
		{event.StepEnvironment, d.plan.Environment, d.prepare},
		{event.StepSync, d.plan.Code.Dir, d.sync},
		{event.StepData, d.plan.DataText(), d.bring},
		{event.StepLaunch, d.plan.Profile.Run.Command, d.launch},
	} {
		if s.name == event.StepLaunch && d.goal.Sweep != "" {
			return d.setPhase(event.PhaseReady)
		}
		if justCode && s.name != event.StepSync || s.name == event.StepData && !inputs.Given(d.plan.Profile) {
			continue
		}
		if err := d.step(ctx, s.name, s.text, s.do); err != nil {
			return err
		}
		d.arrived = true // after the first step
		if s.name == d.goal.Until {
			return d.setPhase(event.PhaseReady)
		}
	}
	return nil
}

// justCode reports whether nothing but the code is to come to the nodes, and all
// of them can be reached: a sync of a cluster that is up. Else the steps before
// it say what is wrong, or mend it.
func (d *drive) justCode(ctx context.Context) bool {
	if d.goal.Until != event.StepSync || !d.idle || len(d.data.Cluster.Nodes) != d.plan.Nodes {
		return false
	}
	l, err := d.w.open(d.record)
	if err == nil {
		err = l.each(ctx, func(ctx context.Context, _ int, n *remote.Node) error { return n.Connect(ctx) })
	}
	if err != nil {
		return false
	}
	d.link = l
	d.keepActive()
	return true
}

// step runs one step and tells how it went.
func (d *drive) step(ctx context.Context, name, text string, do func(context.Context) (string, bool, error)) error {
	began := time.Now()
	if err := d.w.publish(d.s, event.StepStarted{Step: name, Text: text}); err != nil {
		return err
	}
	quiet := d.w.tellWaits(ctx, d.s, name)
	said, skipped, err := do(ctx)
	quiet()
	ended := event.StepEnded{Step: name, OK: err == nil, Skipped: skipped, Duration: since(began), Text: said}
	if err != nil {
		ended.Failure = d.faultOf(err)
		ended.Text = ended.Failure.Why
	}
	return errors.Join(err, d.w.publish(d.s, ended))
}

// say tells progress from inside a step.
func (d *drive) say(step string, node int, text string) {
	_ = d.w.publish(d.s, event.StepProgress{Step: step, Node: node, Text: text})
}

func (d *drive) saveData() error {
	b, err := json.Marshal(d.data)
	if err != nil {
		return err
	}
	d.record, err = d.w.updateCluster(d.s.life, func(c *store.Cluster) {
		c.Data, c.PricePerHour = b, d.data.Cluster.PricePerHour
	})
	if err == nil {
		if d.record.EndedAt == nil && len(d.data.Cluster.Nodes) > 0 {
			_ = d.w.ssh.Write(d.record.Name, d.data.Cluster) // a convenience: nothing fails with it
		}
	}
	return err
}

func (d *drive) setPhase(p event.Phase) (err error) {
	d.record, err = d.w.updateCluster(d.s.life, func(c *store.Cluster) { c.Phase = string(p) })
	return err
}

// updateCluster changes the record of a cluster, and nothing else of it than
// what change does: whoever calls may have read it long ago. Callers hold the
// cluster's change lock.
func (w *Workbench) updateCluster(life int64, change func(*store.Cluster)) (store.Cluster, error) {
	c, err := w.db.ClusterLife(life)
	if err != nil {
		return c, err
	}
	change(&c)
	_, err = w.db.PutCluster(c)
	w.changed()
	return c, err
}

func (w *Workbench) rememberProfile(p *planning.Plan) {
	if p.Path != "" {
		_ = w.db.PutProfile(store.Profile{Path: p.Path, Name: p.Name, Provider: p.Provider, UsedAt: now()})
	}
}

// finish cleans up as the goal and the outcome demand.
func (d *drive) finish(ctx context.Context, err error) (Outcome, error) {
	if errors.Is(err, follow.ErrSuperseded) {
		return d.outcome, err // the other one tells what becomes of it
	}
	trained := d.outcome.Run != ""
	leave := trained || !d.made || d.stays()
	detached := trained && errors.Is(err, context.Canceled) && (d.behind || !d.goal.Down)
	switch {
	case detached, !d.goal.Down && (err == nil || leave):
		if err != nil && !detached {
			d.tell(err)
			d.settle()
			if !trained {
				d.tellKept()
			}
		}
		return d.outcome, err
	case d.goal.Down && d.keepsResults(err):
		d.tell(err)
		return d.keep(err, d.outcome.Run)
	case err != nil:
		d.tell(err)
	}
	// Removing goes on although the caller may have been interrupted: what
	// costs money or processes is not left behind by an impatient key.
	ctx = context.WithoutCancel(ctx)
	if d.lock == nil {
		lock, lockErr := d.w.claimRemoval(ctx, d.record, d.plan.Profile.Run.Grace)
		if lockErr != nil {
			return d.outcome, errors.Join(err, lockErr)
		}
		d.lock = lock
	}
	receipt, downErr := d.w.removeUnless(ctx, d.s.life, true)
	if unsaved := new(UnsavedError); errors.As(downErr, &unsaved) {
		return d.keep(errors.Join(err, downErr), cmp.Or(unsaved.Run, d.outcome.Run))
	}
	d.outcome.Receipt = &receipt
	if downErr != nil {
		d.outcome.Started = false // no event says this
	}
	return d.outcome, errors.Join(err, downErr)
}

// tell tells a failure as an event. Where that can't be stored, as on a full
// disk, whoever called has to tell it.
func (d *drive) tell(err error) {
	if d.w.publish(d.s, event.Failed{Fault: *d.faultOf(err)}) != nil {
		d.outcome.Started = false
	}
}

// settle gives a cluster that stays after a failure its phase. Where that can't
// be written the phase is found out from the rest of the record, see phaseOf.
func (d *drive) settle() {
	if d.lock != nil && d.link != nil {
		_ = d.setPhase(event.PhaseReady)
	}
}

// environmentSpec is what the profile asks of the environment step.
func (d *drive) environmentSpec() environment.Spec {
	e := d.plan.Profile.Environment
	return environment.Spec{
		Kind: e.Kind, File: e.File, There: e.IsNamed(), Python: e.Python, Optional: e.Optional,
		Before: e.Before, After: e.After, Mounts: e.Mounts, Code: planning.RemoteCode(d.plan.Cluster),
		Force: d.goal.Force, Cluster: d.plan.Cluster,
	}
}
