package workbench

import (
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/money"
)

// Removal is what the removal of a cluster, or stopping its machines, comes to. It
// only reads what is on record.
func (w *Workbench) Removal(cluster string) (event.Removal, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return event.Removal{Cluster: cluster}, err
	}
	d, err := w.clusterData(c)
	if err != nil {
		return event.Removal{Cluster: c.Name}, err
	}
	a, err := w.books.Of(c.ID)
	if err != nil {
		return event.Removal{Cluster: c.Name}, err
	}
	r := event.Removal{
		Cluster: c.Name, Provider: c.Provider, Nodes: len(d.Cluster.Nodes), Instance: d.Cluster.Instance, Place: d.Cluster.Zone,
		Leased: traits(c.Provider).Leased, PerHour: a.Rate(now()), Spent: a.Spent(now()), Disks: money.Disks(d.Cluster.Costs), Ends: a.Ends,
		Stopped: event.Phase(c.Phase) == event.PhaseStopped, Forwards: w.tunnels.Count(c.Name),
	}
	if r.Place == "" {
		r.Place = d.Cluster.Region
	}
	runs, err := w.runs(c.Name)
	if err != nil {
		return r, err
	}
	for _, run := range runs {
		results, err := w.results.Of(run.ID)
		if err != nil {
			return r, err
		}
		r.Runs = append(r.Runs, event.RunLeft{RunResults: results, Live: run.EndedAt == nil})
	}
	return r, nil
}

// neededStill says why the record of a run is still needed; empty when it may be removed.
func (w *Workbench) neededStill(r store.Run) string {
	c, err := w.db.ClusterLife(r.Life)
	if err != nil || c.EndedAt != nil {
		return "" // nothing can be going on
	}
	if r.EndedAt == nil {
		return "it is going on"
	}
	if newest, todo, err := w.unfinishedRun(c.Name); err != nil || todo && newest.ID == r.ID {
		return "its results are still to be brought home"
	}
	return w.results.NeededBy(r)
}
