package workbench

import (
	"context"
	"slices"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/atnode"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/inputs"
	"github.com/dlwb/dlwb/workbench/planning"
)

// What jobs get whose provider is a Landing: a machine on whose disk their
// environment and their code lie, and ways to the machines on which they run.

// landing is the provider of jobs that land; false: these don't.
func (j jobs) landing() (cloud.Landing, bool) {
	p, is := j.JobProvider.(cloud.Landing)
	return p, is
}

// landOn reaches the machine on whose disk jobs find their environment and their code.
func (d *drive) landOn(ctx context.Context, p cloud.Landing) error {
	life, err := d.w.lifeOf(d.record)
	if err == nil {
		err = d.nameReplicas()
	}
	if err != nil {
		return err
	}
	m, err := p.Land(ctx, life, planning.Spec(d.plan.Profile))
	if err != nil {
		return &event.Fault{What: "reach the machine that jobs are handed in on", Node: -1, Why: err.Error(), Next: event.NextOf(err)}
	}
	d.link, d.modules = d.w.stationLink(d.record, d.data.Cluster, m), p.Shape(planning.Spec(d.plan.Profile)).Modules
	return nil
}

// land gets the machine ready on whose disk the job will find its environment
// and its code. through reports that the goal is reached with that.
func (d *drive) land(ctx context.Context, p cloud.Landing) (through bool, err error) {
	if err := d.landOn(ctx, p); err != nil {
		return false, err
	}
	for _, s := range []struct {
		name, text string
		do         func(context.Context) (string, bool, error)
	}{
		{event.StepEnvironment, d.plan.Environment, d.prepare},
		{event.StepSync, d.plan.Code.Dir, d.sync},
		{event.StepData, d.plan.DataText(), d.bring},
	} {
		if s.name == event.StepData && !inputs.Given(d.plan.Profile) {
			continue
		}
		if err := d.step(ctx, s.name, s.text, s.do); err != nil {
			return false, err
		}
		if s.name == d.goal.Until {
			return true, d.setPhase(event.PhaseReady)
		}
	}
	d.data.GPUs = slices.Repeat([]int{p.Shape(planning.Spec(d.plan.Profile)).GPUs}, d.plan.Nodes)
	return false, d.saveData()
}

// stationLink is a link to the one machine on whose disk the jobs of a cluster
// lie. It is not kept: the provider has the connection.
func (w *Workbench) stationLink(c store.Cluster, made cloud.Cluster, m cloud.Machine) *link {
	n := m.(*atnode.Station).Node
	made.Nodes = []cloud.Node{{Name: n.Name()}}
	l := &link{w: w, life: c.ID, cluster: made, nodes: []*remote.Node{n}}
	l.ctx, l.cancel = context.WithCancel(w.ctx)
	return l
}

// landed is the link to the machine on whose disk the jobs of a cluster lie; nil
// where there is none.
func (on *jobCarrier) landed(ctx context.Context) (*link, error) {
	p, is := on.landing()
	if !is {
		return nil, nil
	}
	m, err := p.At(ctx, on.life)
	if err != nil {
		return nil, err
	}
	return on.w.stationLink(on.c, on.made, m), nil
}

// ways are the ways to the machines of the replicas of a job; nil: there are none.
// One that lands is entered through its machine, by a command of the provider's.
func (j jobs) ways(life cloud.Life, ref string) func(replica int) transport.Opener {
	p, lands := j.landing()
	if !lands {
		return atnode.Ways(j.Open(life, ref))
	}
	return func(i int) transport.Opener {
		return remote.Through(func(ctx context.Context) (*remote.Node, []string, error) {
			m, err := p.At(ctx, life)
			if err != nil {
				return nil, nil, err
			}
			argv, err := p.Enter(ctx, life, ref, i)
			return m.(*atnode.Station).Node, argv, err
		})
	}
}

// enter gives the link to the machines on which the job of a cluster runs, making
// it on first use.
func (w *Workbench) enter(c store.Cluster, made cloud.Cluster, j jobs) (*link, error) {
	life, err := w.lifeOf(c)
	if err != nil {
		return nil, err
	}
	data, err := w.runInside(c)
	if err != nil {
		return nil, err
	}
	way := j.ways(life, data.Ref)
	if way == nil {
		_, err := w.provider(c.Provider)
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.links[c.Name]; l != nil && l.life == c.ID && l.job == data.Ref {
		return l, nil
	}
	l := &link{w: w, life: c.ID, job: data.Ref, cluster: made}
	l.ctx, l.cancel = context.WithCancel(w.ctx)
	for i, n := range made.Nodes {
		l.nodes = append(l.nodes, remote.OpenOver(n.Name, way(i)))
	}
	if e, can := atnode.Entrance(j.Open(life, data.Ref)); can {
		l.dir = e.Dir()
	}
	w.links[c.Name] = l
	return l, nil
}

// runInside is what is known of the job that runs in a cluster.
func (w *Workbench) runInside(c store.Cluster) (runData, error) {
	run, live, err := w.liveRun(c.Name)
	if err != nil {
		return runData{}, err
	}
	if !live || run.Life != c.ID {
		return runData{}, &event.Fault{What: "reach the nodes of cluster " + c.Name, Node: -1, Why: "no job of it runs, and it has nodes while one does", Next: "dlwb run"}
	}
	_, data, err := w.runRecord(run.ID)
	if err == nil && data.Ref == "" {
		err = &event.Fault{What: "reach the nodes of cluster " + c.Name, Node: -1, Why: "its job is being handed in", Next: "try again in a moment"}
	}
	return data, err
}

// entered are the replicas of a job with what can be done on their machines: as long as
// those are the cluster's, which are its newest job's.
func (on *jobCarrier) entered(ref string, replicas []job.Replica) []job.Replica {
	_, lands := on.landing()
	if _, can := atnode.Entrance(replicas); !lands && !can {
		return replicas
	}
	l, err := on.w.open(on.c)
	if err != nil || l.job != ref {
		return replicas
	}
	return atnode.Entered(replicas, l.nodes)
}

// handed is a job with what is only done for providers that land.
func (d *drive) handed(work cloud.Job, id string) cloud.Job {
	p := d.plan.Profile
	work.Dir, work.Results, work.Grace, work.LogMost = planning.RemoteCode(d.plan.Cluster), planning.OwnDir(d.plan.Cluster, id), planning.Grace(p), p.Limits.Log
	if len(d.data.Envs) > 0 {
		work.Env = slices.Concat(d.data.Envs[0].Env, work.Env)
	}
	return work
}

// homeFrom brings home what a run wrote from the disk that its job shares.
func (on *jobCarrier) homeFrom(ctx context.Context, s scope) (done bool, err error) {
	l, err := on.landed(ctx)
	if l == nil || err != nil {
		return l != nil, err
	}
	defer l.cancel()
	return true, l.stateHome(ctx, s.run, on.w.results.Step(ctx, l.site(s, nil), s.run))
}
