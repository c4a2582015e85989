package workbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/planning"
)

// jobs makes a backend of a provider that takes whole jobs. Its clusters have no
// machines that anybody could log in to: nodes are names for the replicas.
type jobs struct {
	cloud.JobProvider
	w *Workbench
}

func (j jobs) steps() []string { return j.Steps() }

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
	if until := d.goal.Until; until == event.StepCluster || until == event.StepEnvironment || until == event.StepSync {
		return noStep(d.plan.Provider, until)
	}
	var err error
	if d.watch, err = d.w.claimSoon(ctx, d.plan.Cluster, lockWatch); err != nil {
		return err
	}
	id := newRunID(d.plan.Name)
	made, err := planning.LayRanks(d.plan.Profile, j.site(d.plan, id))
	if err != nil {
		return err
	}
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
	submitted, err := d.submit(ctx, j, life, id, made)
	if err == nil {
		d.data.Cluster.Lacks, d.data.Cluster.PricePerHour, d.data.Cluster.Costs = submitted.Lacks, submitted.PricePerHour, submitted.Costs
		data.Ref, data.PricePerHour = submitted.Ref, submitted.PricePerHour
		err = errors.Join(d.saveData(), d.w.putRun(run, data), d.w.publish(d.s, clusterUp(d.data.Cluster)))
	}
	if err == nil {
		err = d.w.publish(d.s, startedOf(run, data))
	}
	if err != nil {
		d.w.abandon(d.s, on, run, data, err)
		return err
	}
	d.arrived, d.outcome.Run = true, id
	return d.setPhase(event.PhaseReady)
}

// startedOf is the event of a run that was launched.
func startedOf(run store.Run, data runData) event.RunStarted {
	return event.RunStarted{Engine: run.Engine, WorldSize: run.WorldSize, Nodes: data.Nodes,
		Command: run.Command, Python: data.Python, Ranks: data.Ranks}
}

// site is what the ranks of a job are laid out on.
func (j jobs) site(p *planning.Plan, run string) planning.Site {
	s := planning.Site{Nodes: make([]engine.Node, p.Nodes), Python: "python3", Run: run, Port: p.Profile.Run.MasterPort}
	for i := range s.Nodes {
		s.Nodes[i].Host = fmt.Sprintf("replica%d", i)
	}
	if python := p.Profile.Environment.Python; python != "" {
		s.Python = python
	}
	return s
}

// recordJob puts a run on record before it is handed in.
func (d *drive) recordJob(id string, made engine.Plan) (store.Run, runData, error) {
	p := d.plan.Profile
	data := runData{Ranks: planning.RankInfos(made), Nodes: d.plan.Nodes, Forward: p.Forward, Stall: p.Limits.Stall.Seconds(),
		RankAtFault: -1, NodeAtFault: -1}
	for _, m := range p.Metrics {
		data.Metrics = append(data.Metrics, [2]string{m.Name, m.Regex})
	}
	run := store.Run{
		ID: id, Cluster: d.plan.Cluster, Life: d.s.life, Profile: d.plan.Name, Engine: made.Engine,
		Command: p.Run.Command, WorldSize: made.WorldSize, StartedAt: now(), Dir: d.w.runDir(id),
	}
	if len(d.data.Cluster.Nodes) == 0 {
		d.data.Cluster = cloud.Cluster{Name: d.plan.Cluster, Provider: d.plan.Provider, CreatedAt: now()}
		for i := range d.plan.Nodes {
			d.data.Cluster.Nodes = append(d.data.Cluster.Nodes, cloud.Node{Index: i, Name: fmt.Sprintf("replica%d", i)})
		}
		if err := d.saveData(); err != nil {
			return run, data, err
		}
	}
	if err := os.MkdirAll(run.Dir, 0o700); err != nil {
		return run, data, err
	}
	d.s.run = id
	return run, data, d.w.putRun(run, data)
}

// submit hands a run in and tells each step of that.
func (d *drive) submit(ctx context.Context, j jobs, life cloud.Life, id string, made engine.Plan) (cloud.Submitted, error) {
	work, err := d.jobOf(ctx, id, made)
	if err != nil {
		return cloud.Submitted{}, err
	}
	t := &stepTeller{d: d, ctx: ctx}
	submitted, err := j.Submit(ctx, life, work, t.enter, func(node int, text string) { d.say(t.name, node, text) })
	if err != nil {
		err = &event.Fault{What: "hand in the job", Node: -1, Why: err.Error(), Next: event.NextOf(err)}
	}
	return submitted, errors.Join(err, t.end(err))
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
	for _, text := range append(warnings, tree.Warnings...) {
		_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: text})
	}
	work := cloud.Job{Run: id, Replicas: d.plan.Nodes, Command: made.Command, Env: planning.Environ(planning.EnvOfRun(d.plan.Profile.Run.Env, id), true),
		Code: cloud.Code{Dir: d.plan.Code.Dir, Paths: tree.Paths()}}
	for node, procs := range made.Nodes {
		for _, proc := range procs {
			for _, rank := range proc.Ranks {
				work.Ranks = append(work.Ranks, cloud.JobRank{Rank: rank, Replica: node, Env: proc.Env})
			}
		}
	}
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
		ctx, cancel := context.WithTimeout(on.w.ctx, lookLimit)
		defer cancel()
		found, err := on.Find(ctx, on.life, run)
		if err != nil || found.Ref == "" {
			return nil, err
		}
		data.Ref = found.Ref
	}
	return on.Open(on.life, data.Ref), nil
}

func (on *jobCarrier) gone(context.Context) []bool { return make([]bool, len(on.made.Nodes)) }

// settle asks the provider whether it has a job for the run.
func (on *jobCarrier) settle(ctx context.Context, s scope, run store.Run) (event.RunEnded, bool, error) {
	w := on.w
	found, err := on.Find(ctx, on.life, run.ID)
	if err != nil {
		return event.RunEnded{}, false, &event.Fault{What: "look for the job of run " + run.ID, Node: -1, Why: err.Error(),
			Next: "dlwb attach " + s.cluster + " looks again"}
	}
	_, data, err := w.runRecord(run.ID)
	if err != nil {
		return event.RunEnded{}, false, err
	}
	if found.Ref == "" {
		ended := unstarted(nil)
		ended.Duration = since(run.StartedAt)
		return ended, true, w.recordEnd(s, run, data, ended)
	}
	data.Ref, data.PricePerHour = found.Ref, found.PricePerHour
	d := &drive{w: w, s: s, record: on.c}
	if d.data, err = w.clusterData(on.c); err != nil {
		return event.RunEnded{}, false, err
	}
	d.data.Cluster.Lacks, d.data.Cluster.PricePerHour, d.data.Cluster.Costs = found.Lacks, found.PricePerHour, found.Costs
	err = errors.Join(w.putRun(run, data), d.saveData(), w.publish(s, clusterUp(d.data.Cluster)), w.publish(s, startedOf(run, data)))
	return event.RunEnded{}, false, err
}

func (on *jobCarrier) observe(scope) {}

func (on *jobCarrier) resume(scope) {}

// beside: checkpoints stay with the job.
func (on *jobCarrier) beside(scope, string) func(context.Context, *follow.Watch) func(context.Context) {
	return nil
}

// fetch tells why no results are brought home.
func (on *jobCarrier) fetch(_ context.Context, s scope, _ []bool) error {
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
