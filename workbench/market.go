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
	"github.com/dlwb/dlwb/workbench/planning"
)

// Offers lists the machines that a provider has, the best first.
func (w *Workbench) Offers(ctx context.Context, provider string, q cloud.Query) (cloud.Offers, error) {
	p, err := w.provider(provider)
	if err != nil {
		return cloud.Offers{}, err
	}
	market, ok := p.(cloud.Offerer)
	if !ok {
		return cloud.Offers{}, &event.Fault{What: "list the machines of provider " + provider, Node: -1,
			Why: "there is no choice: its machines are those that are there"}
	}
	return market.Offers(ctx, q)
}

// Markets are the providers whose machines can be chosen.
func (w *Workbench) Markets() []string {
	var kinds []string
	for _, kind := range w.kinds() {
		if _, ok := w.providers[kind].(cloud.Offerer); ok {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Hunt looks everywhere for what was left behind without a record here: by a
// dlwb that was killed and whose state directory is gone, or on another
// machine.
func (w *Workbench) Hunt(ctx context.Context, progress func(text string)) (map[string]cloud.Hunt, error) {
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
	known := func(life string) bool { return slices.Contains(lives, life) }
	found := map[string]cloud.Hunt{}
	for _, kind := range w.kinds() {
		c, ok := w.providers[kind].(cloud.Collector)
		if !ok {
			continue
		}
		if found[kind], err = c.Orphans(ctx, known, func(_ int, text string) { progress(text) }); err != nil {
			return found, err
		}
	}
	return found, nil
}

// Collect removes an orphan that Hunt found, and proves it.
func (w *Workbench) Collect(ctx context.Context, provider string, o cloud.Orphan, progress func(text string)) (cloud.Receipt, error) {
	p, err := w.provider(provider)
	if err != nil {
		return cloud.Receipt{}, err
	}
	c, ok := p.(cloud.Collector)
	if !ok {
		return cloud.Receipt{}, &event.Fault{What: "remove what was left behind", Node: -1, Why: "provider " + provider + " leaves nothing"}
	}
	receipt, err := c.Collect(ctx, o, func(_ int, text string) { progress(text) })
	if !receipt.Proven() {
		err = &UnresolvedError{receipt, o.PerHour, err}
	}
	return receipt, err
}

// StopMachines stops the machines of a cluster and keeps their disks. A run
// that is going on is stopped first and its log brought home.
func (w *Workbench) StopMachines(ctx context.Context, cluster string) error {
	return w.suspend(ctx, cluster, func(c store.Cluster) { w.endRun(ctx, c) },
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
	lock, err := w.claimChange(ctx, c.Name)
	if err != nil {
		return err
	}
	defer lock.release()
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

// Kinds are the names of the providers that this workbench has.
func (w *Workbench) Kinds() []string { return w.kinds() }

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
