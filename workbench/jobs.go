package workbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/atnode"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/naming"
	"github.com/dlwb/dlwb/workbench/planning"
)

// jobs makes a backend of a provider that takes whole jobs. Its clusters have no
// machines that anybody could log in to: nodes are names for the replicas.
type jobs struct {
	cloud.JobProvider
	w *Workbench
}

func (j jobs) steps() []string {
	if _, lands := j.landing(); lands {
		return append([]string{event.StepEnvironment, event.StepSync}, j.Steps()...)
	}
	return j.Steps()
}

func (j jobs) probe(_ context.Context, c cloud.Cluster) ([]cloud.Status, error) {
	return make([]cloud.Status, len(c.Nodes)), nil // what a job's replicas do, its run tells
}

func (j jobs) reach(c store.Cluster) (carrier, error) {
	life, err := j.w.lifeOf(c)
	if err != nil {
		return nil, err
	}
	d, err := j.w.clusterData(c)
	return &jobCarrier{jobs: j, c: c, life: life, made: d.Cluster}, err
}

// noStep says that a goal makes no sense without machines.
func noStep(kind, until string) error {
	return &event.Fault{What: "go as far as the step " + until, Node: -1,
		Why: "provider " + kind + " takes whole jobs: there are no machines to get ready before one runs", Next: "dlwb run"}
}

// toLaunch hands the run in as a job.
func (j jobs) toLaunch(ctx context.Context, d *drive) error {
	p, lands := j.landing()
	if until := d.goal.Until; until == event.StepCluster || !lands && (until == event.StepEnvironment || until == event.StepSync) {
		return noStep(d.plan.Provider, until)
	}
	if lands {
		if through, err := d.land(ctx, p); through || err != nil {
			return err
		}
	}
	var err error
	if d.watch, err = d.w.locks.ClaimSoon(ctx, d.plan.Cluster, locks.Watch); err != nil {
		return err
	}
	return d.handInAs(ctx, j, naming.NewRun(d.plan.Name))
}

// handInAs lays out the ranks of a run and hands it in under an id.
func (d *drive) handInAs(ctx context.Context, j jobs, id string) error {
	site, err := d.jobSite(ctx, j, id)
	if err != nil {
		return err
	}
	made, err := planning.LayRanks(d.plan.Profile, site)
	if err == nil {
		err = d.carried(made)
	}
	if err != nil {
		return err
	}
	return d.handIn(ctx, j, id, site, made)
}

// carried refuses what jobs do not carry yet, and would lose without a word: what an
// engine needs beside its ranks, and ranks in a container of ours.
func (d *drive) carried(made engine.Plan) error {
	f := &event.Fault{What: "start the ranks by provider " + d.plan.Provider, Node: -1}
	f.Why, f.Next = planning.MoreThanRanks(d.plan.Provider, made)
	switch {
	case f.Why != "":
	case slices.ContainsFunc(d.data.Envs, func(e environment.Result) bool { return len(e.Wrap) > 0 }):
		f.Why, f.Next = planning.NoContainer, planning.NextWithoutContainer
	default:
		return nil
	}
	return f
}

// handIn puts the run on record, hands it in and waits until it has begun. From
// the moment when the service has it, it goes on without this dlwb: whoever
// leaves leaves it in the queue.
func (d *drive) handIn(ctx context.Context, j jobs, id string, site planning.Site, made engine.Plan) error {
	run, data, err := d.recordJob(id, made)
	if err != nil {
		return err
	}
	life, err := d.w.lifeOf(d.record)
	if err != nil {
		return err
	}
	on := &jobCarrier{jobs: j, c: d.record, life: life, made: d.data.Cluster}
	d.via = on
	t := &stepTeller{d: d, ctx: ctx}
	submitted, err := d.submit(ctx, j, life, t, site, made)
	if err == nil {
		err = d.recordSubmitted(submitted, run, &data)
	}
	if err != nil {
		d.w.abandon(d.s, on, run, data, err)
		return err
	}
	d.arrived, d.outcome.Run = true, id
	if err := d.setPhase(event.PhaseReady); err != nil || d.goal.Detach {
		return errors.Join(err, t.end(nil))
	}
	return on.await(ctx, t, run, data)
}

// recordSubmitted puts on record what the service has made of a run.
func (d *drive) recordSubmitted(made cloud.Submitted, run store.Run, data *runData) error {
	c := &d.data.Cluster
	c.Lacks, c.PricePerHour, c.Costs = made.Lacks, made.PricePerHour, made.Costs
	data.Ref, data.PricePerHour = made.Ref, made.PricePerHour
	up := clusterUp(*c)
	if _, is := d.w.jobs[d.record.Provider].(cloud.Biller); is {
		up.Job, up.Stay = run.ID, made.Stay.Seconds()
	}
	return errors.Join(d.saveData(), d.w.putRun(run, *data), d.w.publish(d.s, up))
}

// await waits until a job that was handed in has begun, and tells that.
func (on *jobCarrier) await(ctx context.Context, t *stepTeller, run store.Run, data runData) error {
	err := on.Await(ctx, on.life, data.Ref, t.enter, t.say)
	if err != nil && ctx.Err() == nil {
		next := cmp.Or(event.NextOf(err), "dlwb attach "+on.c.Name+" looks again")
		if never := new(cloud.NeverBegan); errors.As(err, &never) || t.d.goal.Down { // else its removal would call it stopped
			on.w.abandon(t.d.s, on, run, data, err)
		}
		err = &event.Fault{What: "wait for the job of run " + run.ID, Node: -1, Why: err.Error(), Next: next}
	}
	if err = errors.Join(err, t.end(err)); err != nil {
		return err
	}
	on.observe(t.d.s)
	return on.w.publish(t.d.s, startedOf(run, data))
}

// startedOf is the event of a run that was launched.
func startedOf(run store.Run, data runData) event.RunStarted {
	return event.RunStarted{Engine: run.Engine, WorldSize: run.WorldSize, Nodes: data.Nodes,
		Command: run.Command, Python: data.Python, Ranks: data.Ranks}
}

// jobSite is what the ranks of a job are laid out on: what is known of its
// machines before they are.
func (d *drive) jobSite(ctx context.Context, j jobs, run string) (s planning.Site, err error) {
	p := d.plan.Profile
	s = planning.Site{Nodes: make([]engine.Node, d.plan.Nodes), Python: "python3", Run: run, Port: p.Run.MasterPort, Unplaced: true, Beside: d.plan.Beside, Sources: planning.Sources(p)}
	if s.Port == 0 {
		s.PortIs = job.Port
	}
	shape := cloud.Shape{}
	if of, knows := j.JobProvider.(cloud.Shaper); knows {
		shape = of.Shape(planning.Spec(p))
	}
	for i := range s.Nodes {
		s.Nodes[i] = engine.Node{Host: job.HostOf(i), GPUs: shape.GPUs}
	}
	s.Threads = shape.Cores
	if python := p.Environment.Python; python != "" {
		s.Python = python
	}
	if len(d.data.Envs) > 0 {
		env := d.data.Envs[0]
		s.Python, s.Torch, s.OldTorch = env.Python, env.Torch != "", env.Mended != ""
		s.NoMPI, err = d.withoutMPI(ctx, run)
	}
	return s, err
}

// recordJob puts a run on record before it is handed in.
func (d *drive) recordJob(id string, made engine.Plan) (store.Run, runData, error) {
	p := d.plan.Profile
	data := runData{Ranks: planning.RankInfos(made), Nodes: d.plan.Nodes, Forward: p.Forward, Stall: p.Limits.Stall.Seconds(), Grace: planning.Grace(p).Seconds(),
		Trial: d.trial, Key: d.goal.Key, RankAtFault: -1, NodeAtFault: -1}
	for _, m := range p.Metrics {
		data.Metrics = append(data.Metrics, [2]string{m.Name, m.Regex})
	}
	run := store.Run{
		ID: id, Cluster: d.plan.Cluster, Life: d.s.life, Profile: d.plan.Name, Engine: made.Engine,
		Command: p.Run.Command, WorldSize: made.WorldSize, StartedAt: now(), Dir: d.w.runDir(id),
	}
	if len(d.data.Envs) > 0 {
		data.Python, data.Checkpoints = d.data.Envs[0].Python, planning.OfRun([]string{p.Results.Checkpoints}, id)[0]
	}
	kept, away := planning.Kept(p)
	if len(d.data.Envs) > 0 {
		kept, away = true, p.Results.S3
	}
	if kept {
		data.OwnDir, data.Results, data.S3 = planning.OwnDir(d.plan.Cluster, id), planning.OfRun(d.plan.Results, id), away
	}
	err := d.nameReplicas()
	if err == nil {
		err = os.MkdirAll(run.Dir, 0o700)
	}
	if err == nil {
		data.To, err = p.ResultsTo(id)
	}
	if err != nil {
		return run, data, err
	}
	d.s.run = id
	return run, data, d.w.putRun(run, data)
}

// nameReplicas gives a cluster of jobs its nodes, which are names.
func (d *drive) nameReplicas() error {
	if len(d.data.Cluster.Nodes) == d.plan.Nodes {
		return nil
	}
	d.data.Cluster = cloud.Cluster{Name: d.plan.Cluster, Provider: d.plan.Provider, CreatedAt: now()}
	for i := range d.plan.Nodes {
		d.data.Cluster.Nodes = append(d.data.Cluster.Nodes, cloud.Node{Index: i, Name: fmt.Sprintf("replica%d", i)})
	}
	return d.saveData()
}

// submit hands a run in and tells each step of that.
func (d *drive) submit(ctx context.Context, j jobs, life cloud.Life, t *stepTeller, site planning.Site, made engine.Plan) (cloud.Submitted, error) {
	id := site.Run
	work, err := d.jobOf(ctx, id, made)
	if err != nil {
		return cloud.Submitted{}, err
	}
	if _, lands := j.landing(); lands {
		given, err := d.inputEnv(ctx, -1, d.link.nodes[0], id)
		if err != nil {
			return cloud.Submitted{}, err
		}
		work.Env = append(given, work.Env...)
		work = d.handed(work, id)
		if err := planning.Resuming(work.Procs, d.plan.Profile, site); err != nil {
			return cloud.Submitted{}, err
		}
	}
	submitted, err := j.Submit(ctx, life, work, t.enter, t.say)
	if err != nil {
		f := &event.Fault{What: "hand in the job", Node: -1, Why: err.Error(), Next: event.NextOf(err)}
		f.Command, f.LastLines = event.SaidOf(err)
		err = errors.Join(cloud.AsRefused(err, f), t.end(f))
	}
	return submitted, err
}

// jobOf is a run as a job.
func (d *drive) jobOf(ctx context.Context, id string, made engine.Plan) (cloud.Job, error) {
	tree, err := d.w.treeAtOnce(ctx, d.plan)
	if err != nil {
		return cloud.Job{}, err
	}
	warnings, err := tree.Read(ctx)
	if err != nil {
		return cloud.Job{}, &event.Fault{What: "read the code", Node: -1, Why: err.Error()}
	}
	for _, text := range d.plan.NotActedOn {
		warnings = append(warnings, "ignored: "+text)
	}
	for _, text := range append(warnings, tree.Warnings...) {
		_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: text})
	}
	work := cloud.Job{Run: id, Trial: d.trial != nil, Replicas: d.plan.Nodes, Command: made.Command, Spec: planning.Spec(d.plan.Profile), Engine: made.Engine, Env: planning.Environ(planning.EnvOfRun(d.plan.Profile.Run.Env, id), true),
		Keep: planning.OfRun(d.plan.Results, id), Code: cloud.Code{Dir: d.plan.Code.Dir, Paths: tree.Paths(), Links: tree.Links(), Empty: tree.Empty()}}
	work.Procs, work.Ranks = planning.Parts(made)
	work.Files, work.Ports, work.Leads, work.Restarts = planning.Files(made), made.Ports, made.Leads, made.Restarts
	return work, nil
}

// stepTeller tells the steps of a Submit, each ended by the next.
type stepTeller struct {
	d     *drive
	ctx   context.Context
	name  string
	text  string
	began time.Time
	quiet func()
}

func (t *stepTeller) enter(name, text string) {
	_ = t.end(nil)
	t.name, t.text, t.began = name, text, time.Now()
	_ = t.d.w.publish(t.d.s, event.StepStarted{Step: name, Text: text})
	t.quiet = t.d.w.tellWaits(t.ctx, t.d.s, name)
}

// say tells progress of the step that goes on.
func (t *stepTeller) say(node int, text string) { t.d.say(t.name, node, text) }

// end ends the step that goes on.
func (t *stepTeller) end(failure error) error {
	if t.name == "" {
		return nil
	}
	t.quiet()
	ended := event.StepEnded{Step: t.name, OK: failure == nil, Duration: since(t.began), Text: t.text}
	if failure != nil {
		ended.Failure = t.d.faultOf(failure)
		ended.Text = ended.Failure.Why
	}
	t.name = ""
	return t.d.w.publish(t.d.s, ended)
}

// jobCarrier carries the runs of one life of a cluster that has jobs.
type jobCarrier struct {
	jobs
	c    store.Cluster
	life cloud.Life
	made cloud.Cluster
}

// replicas opens a job by its reference, or where none is on record, by the run.
func (on *jobCarrier) replicas(run string) ([]job.Replica, error) {
	_, data, err := on.w.runRecord(run)
	if err != nil {
		return nil, err
	}
	if data.Ref == "" {
		ctx, cancel := context.WithTimeout(on.w.ctx, follow.StateLimit)
		defer cancel()
		found, err := on.Find(ctx, on.life, run, cloud.Untold)
		if err != nil || found.Ref == "" {
			return nil, err
		}
		data.Ref = found.Ref
	}
	return on.entered(data.Ref, on.Open(on.life, data.Ref)), nil
}

func (on *jobCarrier) gone(context.Context) []bool { return make([]bool, len(on.made.Nodes)) }

// settle asks the provider whether it has a job for the run, and waits until
// that has begun.
func (on *jobCarrier) settle(ctx context.Context, s scope, run store.Run) (event.RunEnded, bool, error) {
	w := on.w
	t := &stepTeller{d: &drive{w: w, s: s, record: on.c}, ctx: ctx}
	found, err := on.Find(ctx, on.life, run.ID, func(node int, text string) {
		if t.name == "" {
			t.enter(on.Steps()[0], "the job of run "+run.ID)
		}
		t.say(node, text)
	})
	if err != nil {
		err = &event.Fault{What: "look for the job of run " + run.ID, Node: -1, Why: err.Error(),
			Next: "dlwb attach " + s.cluster + " looks again"}
	}
	if err = errors.Join(err, t.end(err)); err != nil {
		return event.RunEnded{}, false, err
	}
	_, data, err := w.runRecord(run.ID)
	if err != nil {
		return event.RunEnded{}, false, err
	}
	if found.Ref == "" {
		ended := follow.Unstarted(nil)
		ended.Duration = since(run.StartedAt)
		return ended, true, w.recordEnd(s, run, data, ended)
	}
	if t.d.data, err = w.clusterData(on.c); err != nil {
		return event.RunEnded{}, false, err
	}
	if err := t.d.recordSubmitted(found, run, &data); err != nil {
		return event.RunEnded{}, false, err
	}
	return event.RunEnded{}, false, on.await(ctx, t, run, data)
}

// observe stores the telemetry of the machines of a job, where they tell any.
func (on *jobCarrier) observe(s scope) {
	l, err := on.w.open(on.c)
	if err != nil {
		l, err = on.outside()
	}
	if err == nil {
		on.w.observe(s, l)
	}
}

// outside is the link to a job on whose machines no command can be run: its service tells
// of them, or they are visited.
func (on *jobCarrier) outside() (*link, error) {
	data, err := on.w.runInside(on.c)
	if err != nil {
		return nil, err
	}
	replicas := on.Open(on.life, data.Ref)
	nodes := atnode.Visits(on.made, replicas)
	if len(nodes) == 0 && !atnode.Tells(replicas) {
		return nil, &event.Fault{What: "reach the machines of cluster " + on.c.Name, Node: -1, Why: "they are not to be reached"}
	}
	on.w.mu.Lock()
	before := on.w.links[on.c.Name]
	if before != nil && before.life == on.c.ID && before.job == data.Ref {
		on.w.mu.Unlock()
		return before, nil
	}
	l := newLink(on.w, on.c.ID, cloud.Cluster{})
	l.job, l.told, l.nodes = data.Ref, replicas, nodes
	on.w.links[on.c.Name] = l
	on.w.mu.Unlock()
	if before != nil {
		on.w.tunnels.CloseAll(on.c.Name, "the job that they led to is over")
		before.close()
	}
	return l, nil
}

func (on *jobCarrier) resume(scope) {}

// beside brings checkpoints home, where the job's disk can be read, or tells of those
// that its service keeps.
func (on *jobCarrier) beside(s scope, data runData) func(context.Context, *follow.Watch) func(context.Context) {
	if k, is := on.JobProvider.(cloud.CheckpointStore); is {
		return on.besideKept(k, s)
	}
	if _, is := on.landing(); !is {
		return nil
	}
	return func(ctx context.Context, t *follow.Watch) func(context.Context) {
		l, err := on.landed(ctx)
		if err != nil {
			return func(context.Context) {}
		}
		return on.w.results.KeepCheckpoints(ctx, l.site(s, nil), s.run, t, data.Checkpoints, false)
	}
}

// fetch brings results home, or tells why none are. What the run has cost is asked first.
func (on *jobCarrier) fetch(ctx context.Context, s scope, _ []bool) error {
	on.w.askBills(ctx, on.c.Provider, store.Run{ID: s.run})
	if done, err := on.homeFrom(ctx, s); done || err != nil {
		return err
	}
	if k, is := on.keeper(); is && on.w.keepsOf(on.c, s.run) {
		return on.w.results.Step(ctx, on.keptSite(k, s), s.run)
	}
	text := "nothing is brought home from jobs of provider " + on.c.Provider
	c, err := on.w.db.ClusterLife(on.c.ID)
	if err != nil {
		return err
	}
	if d, err := on.w.clusterData(c); err == nil {
		if lack := job.LackOf(d.Cluster.Lacks, job.Files); lack != nil {
			text = lack.Why
		}
	}
	return errors.Join(on.w.publish(s, event.StepStarted{Step: event.StepFetch, Text: "what the run wrote"}),
		on.w.publish(s, event.StepEnded{Step: event.StepFetch, OK: true, Skipped: true, Text: text}))
}

// lacks is the error of somebody who needs what the nodes of a cluster can't do;
// nil where they can.
func lacks(what string, c cloud.Cluster, need job.Capability) error {
	lack := job.LackOf(c.Lacks, need)
	if lack == nil {
		return nil
	}
	return &event.Fault{What: what, Node: -1, Why: lack.Why, Next: lack.Next}
}
