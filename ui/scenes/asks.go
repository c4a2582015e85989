package scenes

import (
	"context"

	"github.com/dlwb/dlwb/workbench"
)

// AskDown implements ui.Bench.
func (s *Stage) AskDown(_ context.Context, cluster string) (workbench.Question, error) {
	return s.removal(cluster).Question(), s.AskErr
}

// AskStop implements ui.Bench.
func (s *Stage) AskStop(_ context.Context, run string) (workbench.Question, error) {
	return workbench.RunInfo{ID: run, Cluster: "charlm", WorldSize: 2, StartedAt: s.now()}.StopQuestion(), nil
}

// AskStopMachines implements ui.Bench.
func (s *Stage) AskStopMachines(_ context.Context, cluster string) (workbench.Question, error) {
	return s.removal(cluster).StopQuestion(), nil
}

// removal is what the removal of a cluster comes to, by the events that were
// played or the list of what exists.
func (s *Stage) removal(cluster string) workbench.Removal {
	r := workbench.Removal{Cluster: cluster, Provider: "local"}
	for _, c := range s.HomeIs.Clusters {
		if c.Name == cluster {
			r.Provider, r.Nodes, r.PerHour, r.Spent, r.Instance = c.Provider, len(c.Nodes), c.PricePerHour, c.Spent, c.Instance
			if c.Run != "" {
				r.Runs = []workbench.RunLeft{{ID: c.Run, Live: c.Phase == workbench.PhaseRunning, Results: []string{"outputs"}}}
			}
		}
	}
	for _, e := range s.played {
		switch b := e.Body.(type) {
		case workbench.ClusterUp:
			r.Provider, r.Nodes, r.PerHour, r.Instance, r.Place, r.Ends = b.Provider, len(b.Nodes), b.PricePerHour, b.Instance, b.Zone, b.Ends
			r.Disks = 0
			for _, c := range b.Costs[min(1, len(b.Costs)):] {
				r.Disks += c.PerHour
			}
		case workbench.RunStarted:
			r.Runs = []workbench.RunLeft{{ID: e.Run, Live: true, Results: []string{"outputs"}}}
		case workbench.RunEnded:
			r.Runs[0].Live = false
		case workbench.ResultsFetched:
			r.Runs[0].Saved = &b
		}
	}
	return r
}
