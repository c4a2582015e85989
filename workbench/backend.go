package workbench

import (
	"context"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
)

// backend carries the runs of clusters. There are two: nodes, which makes one of
// any provider of machines with ssh, and jobs, of any that takes whole jobs.
type backend interface {
	// Check looks for what would stand in the way and changes nothing.
	Check(ctx context.Context, spec cloud.Spec) cloud.Preflight
	// steps are the names of the steps that lead to training.
	steps() []string
	// toLaunch goes through them, as far as the goal of the drive says, and sets
	// what carries the run. The run is on record before anything of it begins.
	toLaunch(ctx context.Context, d *drive) error
	// reach gives what carries the runs of a life of a cluster.
	reach(c store.Cluster) (carrier, error)
	// probe says what is known of the nodes, one for each.
	probe(ctx context.Context, c cloud.Cluster) ([]cloud.Status, error)
	// Down removes a life of a cluster and proves it.
	Down(ctx context.Context, life cloud.Life, progress cloud.Progress) (cloud.Receipt, error)
}

// carrier is what carries the runs of one life of a cluster.
type carrier interface {
	// replicas are the parts of a run.
	replicas(run string) ([]job.Replica, error)
	// gone tells which of them are proven to exist no more; one for each node.
	gone(ctx context.Context) []bool
	// settle finds out what became of a launch of which nobody told the end, and
	// tells it: that the run goes on, or, with over, how it ended.
	settle(ctx context.Context, s scope, run store.Run) (ended event.RunEnded, over bool, err error)
	// observe begins what is stored of the nodes whether something runs or not.
	observe(s scope)
	// resume goes on with what another dlwb may have left half done of a run's
	// record.
	resume(s scope)
	// beside goes on while a run is watched; nil: nothing does.
	beside(s scope, data runData) func(context.Context, *follow.Watch) func(context.Context)
	// fetch brings home what a run wrote, as a step. silent are nodes that did not
	// answer just now; nil: nobody knows of any.
	fetch(ctx context.Context, s scope, silent []bool) error
}

// backend finds a backend by the name of its provider.
func (w *Workbench) backend(kind string) (backend, error) {
	if p, is := w.jobs[kind]; is {
		return jobs{p, w}, nil
	}
	p, err := w.provider(kind)
	return nodes{p, w}, err
}

// checkWith asks a provider what would stand in the way; one that is not there
// finds nothing.
func (w *Workbench) checkWith(ctx context.Context, kind string, spec cloud.Spec) cloud.Preflight {
	b, err := w.backend(kind)
	if err != nil {
		return cloud.Preflight{}
	}
	spec.Held = w.heldOf(spec.Name)
	return b.Check(ctx, spec)
}

// stepsOf are the names of the steps that lead to training with a provider.
func (w *Workbench) stepsOf(kind string) []string {
	b, err := w.backend(kind)
	if err != nil {
		return nil
	}
	return b.steps()
}

// upNow is how many nodes a cluster has now, and the path of the profile that made it.
func (w *Workbench) upNow(cluster string) (nodes int, madeBy string) {
	c, err := w.db.Cluster(cluster)
	if err != nil || c.EndedAt != nil {
		return 0, ""
	}
	d, _ := w.clusterData(c)
	return len(d.Cluster.Nodes), c.ProfilePath
}

// reach gives what carries the runs of a cluster.
func (w *Workbench) reach(c store.Cluster) (carrier, error) {
	b, err := w.backend(c.Provider)
	if err != nil {
		return nil, err
	}
	return b.reach(c)
}

// stopRun stops all of a run but what is lost; lost may be nil.
func (w *Workbench) stopRun(ctx context.Context, c carrier, lost []bool, run, why string) error {
	replicas, err := c.replicas(run)
	if err != nil {
		return err
	}
	return follow.Stop(ctx, replicas, lost, run, why, w.graceOf(run))
}

// nodes makes a backend of a provider of machines with ssh: the steps that make
// them ready and launch the ranks there, and a link to them.
type nodes struct {
	cloud.Provider
	w *Workbench
}

func (nodes) steps() []string {
	return []string{event.StepCluster, event.StepEnvironment, event.StepSync, event.StepLaunch}
}

func (nodes) toLaunch(ctx context.Context, d *drive) error {
	err := d.toLaunch(ctx)
	if d.link != nil {
		d.via = d.link
	}
	return err
}

func (n nodes) reach(c store.Cluster) (carrier, error) {
	l, err := n.w.open(c)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (n nodes) probe(ctx context.Context, c cloud.Cluster) ([]cloud.Status, error) {
	return n.Probe(ctx, c)
}

// The link is what carries the runs on nodes.

func (l *link) replicas(run string) ([]job.Replica, error) { return l.parts(run), nil }

func (l *link) gone(ctx context.Context) []bool { return l.w.proveGone(ctx, l) }

func (l *link) settle(ctx context.Context, s scope, run store.Run) (event.RunEnded, bool, error) {
	return l.w.settleLaunch(ctx, s, l, run)
}

func (l *link) observe(s scope) { l.w.observe(s, l) }

func (l *link) resume(s scope) { l.w.resumeRecipe(l, s) }

func (l *link) beside(s scope, data runData) func(context.Context, *follow.Watch) func(context.Context) {
	return func(ctx context.Context, t *follow.Watch) func(context.Context) {
		return l.w.results.KeepCheckpoints(ctx, l.site(s, nil), s.run, t, data.Checkpoints, data.Again)
	}
}

func (l *link) fetch(ctx context.Context, s scope, silent []bool) error {
	return l.stateHome(ctx, s.run, l.w.results.Step(ctx, l.site(s, silent), s.run))
}
