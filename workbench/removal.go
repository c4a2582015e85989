package workbench

import (
	"context"

	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/money"
)

// AskDown is the question whether a cluster may be removed. It only reads what
// is on record.
func (w *Workbench) AskDown(_ context.Context, cluster string) (event.Question, error) {
	r, err := w.removal(cluster)
	return r.Question(), err
}

// removal is what the removal of a cluster comes to.
func (w *Workbench) removal(cluster string) (event.Removal, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return event.Removal{Cluster: cluster}, err
	}
	d, err := w.clusterData(c)
	if err != nil {
		return event.Removal{Cluster: c.Name}, err
	}
	a, err := w.account(c.ID)
	if err != nil {
		return event.Removal{Cluster: c.Name}, err
	}
	r := event.Removal{
		Cluster: c.Name, Provider: c.Provider, Nodes: len(d.Cluster.Nodes), Instance: d.Cluster.Instance, Place: d.Cluster.Zone,
		Leased: traits(c.Provider).Leased, PerHour: a.Rate(), Spent: a.Spent(now()), Disks: money.Disks(d.Cluster.Costs), Ends: a.Ends,
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
		results, err := w.ResultsOf(run.ID)
		if err != nil {
			return r, err
		}
		r.Runs = append(r.Runs, event.RunLeft{RunResults: results, Live: run.EndedAt == nil})
	}
	return r, nil
}

// AskStopMachines is the question whether the machines of a cluster may be
// stopped.
func (w *Workbench) AskStopMachines(_ context.Context, cluster string) (event.Question, error) {
	r, err := w.removal(cluster)
	return r.StopQuestion(), err
}

// AskStop is the question whether a run may be ended.
func (w *Workbench) AskStop(_ context.Context, run string) (event.Question, error) {
	r, err := w.FindRun(run)
	return r.StopQuestion(), err
}
