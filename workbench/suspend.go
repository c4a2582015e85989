package workbench

import (
	"context"
	"maps"
	"slices"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/planning"
)

// StopMachines stops the machines of a cluster and keeps their disks. A run
// that is going on is stopped first and its log brought home.
func (w *Workbench) StopMachines(ctx context.Context, cluster string) error {
	return w.suspend(ctx, cluster, func(c store.Cluster) { w.endRuns(ctx, c, true) },
		func(ctx context.Context, s cloud.Suspender, life cloud.Life, c cloud.Cluster, progress cloud.Progress) (cloud.Cluster, error) {
			return s.Stop(ctx, life, c, progress)
		})
}

// StartMachines starts the machines of a cluster that were stopped.
func (w *Workbench) StartMachines(ctx context.Context, cluster string) error {
	return w.suspend(ctx, cluster, func(store.Cluster) {},
		func(ctx context.Context, s cloud.Suspender, life cloud.Life, c cloud.Cluster, progress cloud.Progress) (cloud.Cluster, error) {
			return s.Start(ctx, life, c, progress)
		})
}

type suspending func(context.Context, cloud.Suspender, cloud.Life, cloud.Cluster, cloud.Progress) (cloud.Cluster, error)

func (w *Workbench) suspend(ctx context.Context, cluster string, before func(store.Cluster), do suspending) error {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return err
	}
	p, err := w.provider(c.Provider)
	if err != nil {
		return err
	}
	suspender, ok := p.(cloud.Suspender)
	if !ok {
		return &event.Fault{What: "stop the machines of cluster " + c.Name, Node: -1,
			Why: "provider " + c.Provider + " has no machines that can be stopped and started", Next: "dlwb down " + c.Name}
	}
	lock, err := w.locks.ClaimSoon(ctx, c.Name, locks.Change)
	if err != nil {
		return err
	}
	defer lock.Release()
	before(c)
	d := &drive{w: w, s: scope{cluster: c.Name, life: c.ID}, record: c, plan: &planning.Plan{Cluster: c.Name}}
	if d.data, err = w.clusterData(c); err != nil {
		return err
	}
	life, err := w.lifeOf(c)
	if err != nil {
		return err
	}
	was := d.data.Cluster
	w.tunnels.CloseAll(c.Name, "the machines are stopped")
	is, err := do(ctx, suspender, life, was, func(node int, text string) { d.say(event.StepCluster, node, text) })
	if err != nil {
		return &event.Fault{What: "stop or start the machines of cluster " + c.Name, Node: -1, Why: err.Error(), Next: event.NextOf(err)}
	}
	w.unlink(c.Name)
	d.data.Cluster = remember(is, was)
	if err := d.saveData(); err != nil {
		return err
	}
	if is.Stopped {
		if err := d.setPhase(event.PhaseStopped); err != nil {
			return err
		}
		return w.publish(d.s, event.ClusterStopped{PricePerHour: is.PricePerHour, Costs: is.Costs})
	}
	if d.link, err = w.open(d.record); err != nil {
		return err
	}
	d.booted = true
	if err := d.firstContact(ctx); err != nil {
		return err
	}
	if err := w.connect(ctx, d.link); err != nil {
		return err
	}
	if err := d.setPhase(event.PhaseReady); err != nil {
		return err
	}
	return w.publish(d.s, clusterUp(d.data.Cluster))
}

func (w *Workbench) kinds() []string {
	return slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(w.providers)), maps.Keys(w.jobs))))
}

// Meet lets the provider of a plan ask what only a person knows, before a screen
// takes the terminal. Most providers have nothing to ask.
func (w *Workbench) Meet(ctx context.Context, plan *planning.Plan) error {
	g, ok := w.providers[plan.Provider].(cloud.Greeter)
	if !ok {
		return nil
	}
	if err := g.Meet(ctx, planning.Spec(plan.Profile)); err != nil {
		return &event.Fault{What: "bring up the cluster", Node: -1, Why: err.Error(), Next: event.NextOf(err)}
	}
	return nil
}

// traits are what a provider is like.
func traits(provider string) about.Traits { return providers.Named(provider).Traits }

// lives are the ids under which providers know the clusters on record.
func (w *Workbench) lives() ([]string, error) {
	rows, err := w.db.LiveClusters()
	if err != nil {
		return nil, err
	}
	var lives []string
	for _, c := range rows {
		d, err := w.clusterData(c)
		if err != nil {
			return nil, err
		}
		lives = append(lives, d.Life)
	}
	return lives, nil
}
