package workbench

import (
	"context"
	"slices"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote"
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

// land gets the machine ready on whose disk the job will find its environment
// and its code. through reports that the goal is reached with that.
func (d *drive) land(ctx context.Context, j jobs, p cloud.Landing) (through bool, err error) {
	life, err := d.w.lifeOf(d.record)
	if err == nil {
		err = d.nameReplicas()
	}
	if err != nil {
		return false, err
	}
	m, err := p.Land(ctx, life, planning.Spec(d.plan.Profile))
	if err != nil {
		return false, &event.Fault{What: "reach the machine that jobs are handed in on", Node: -1, Why: err.Error(), Next: event.NextOf(err)}
	}
	shape := p.Shape(planning.Spec(d.plan.Profile))
	d.link, d.before = d.w.stationLink(d.record, d.data.Cluster, m), shape.Before
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
	d.data.GPUs = slices.Repeat([]int{shape.GPUs}, d.plan.Nodes)
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

// enter gives the link to the machines on which the job of a cluster runs, making
// it on first use. Each is reached through the machine of the provider, by a
// command of the provider's.
func (w *Workbench) enter(c store.Cluster, made cloud.Cluster, p cloud.Landing) (*link, error) {
	life, err := w.lifeOf(c)
	if err != nil {
		return nil, err
	}
	run, live, err := w.liveRun(c.Name)
	if err != nil {
		return nil, err
	}
	if !live || run.Life != c.ID {
		return nil, &event.Fault{What: "reach the nodes of cluster " + c.Name, Node: -1, Why: "no job of it runs, and it has nodes while one does", Next: "dlwb run"}
	}
	_, data, err := w.runRecord(run.ID)
	if err == nil && data.Ref == "" {
		err = &event.Fault{What: "reach the nodes of cluster " + c.Name, Node: -1, Why: "its job is being handed in", Next: "try again in a moment"}
	}
	if err != nil {
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
		l.nodes = append(l.nodes, remote.OpenOver(n.Name, remote.Through(func(ctx context.Context) (*remote.Node, []string, error) {
			m, err := p.At(ctx, life)
			if err != nil {
				return nil, nil, err
			}
			argv, err := p.Enter(ctx, life, data.Ref, i)
			return m.(*atnode.Station).Node, argv, err
		})))
	}
	w.links[c.Name] = l
	return l, nil
}

// entered are the replicas of a job with what can be done on their machines.
func (on *jobCarrier) entered(replicas []job.Replica) []job.Replica {
	p, is := on.landing()
	if !is {
		return replicas
	}
	l, err := on.w.enter(on.c, on.made, p)
	if err != nil || len(l.nodes) != len(replicas) {
		return replicas
	}
	all := make([]job.Replica, len(replicas))
	for i, r := range replicas {
		reader, _ := r.(job.FileReader)
		n := atnode.Run{Node: l.nodes[i]}
		if all[i] = (entered{r, n, n, n}); reader != nil {
			all[i] = reading{entered{r, n, n, n}, reader}
		}
	}
	return all
}

// entered is a replica on whose machine commands can be run.
type entered struct {
	job.Replica
	job.Execer
	job.Dialer
	job.Teller
}

// reading is one whose files can be read too.
type reading struct {
	entered
	job.FileReader
}

// handed is a job with what is only done for providers that land.
func (d *drive) handed(work cloud.Job, id string) cloud.Job {
	p := d.plan.Profile
	work.Dir, work.Results, work.Grace, work.LogMost = planning.RemoteCode(d.plan.Cluster), planning.OwnDir(d.plan.Cluster, id), p.Run.Grace, p.Limits.Log
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
