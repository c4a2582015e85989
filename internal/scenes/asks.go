package scenes

import (
	"context"

	"github.com/dlwb/dlwb/workbench/cleanup"
	"github.com/dlwb/dlwb/workbench/event"
)

// AskDown implements ui.Bench.
func (s *Stage) AskDown(_ context.Context, cluster string) (event.Question, error) {
	return s.removal(cluster).Question(), s.AskErr
}

// AskStop implements ui.Bench.
func (s *Stage) AskStop(_ context.Context, run string) (event.Question, error) {
	return event.RunInfo{ID: run, Cluster: "charlm", WorldSize: 2, StartedAt: s.now()}.StopQuestion(), nil
}

// AskStopMachines implements ui.Bench.
func (s *Stage) AskStopMachines(_ context.Context, cluster string) (event.Question, error) {
	return s.removal(cluster).StopQuestion(), nil
}

// PlanCleanup implements ui.Bench.
func (s *Stage) PlanCleanup(sel cleanup.Selection) (cleanup.Found, error) {
	var c cleanup.Found
	for _, id := range sel.Runs {
		c.Runs = append(c.Runs, cleanup.Use{Run: id, Log: 180_000, Results: 4_300_000, Points: 1200})
		c.Bytes, c.Points = c.Bytes+4_480_000, c.Points+1200
	}
	return c, s.AskErr
}

// CleanUp implements ui.Bench.
func (s *Stage) CleanUp(c cleanup.Found) error {
	for _, r := range c.Runs {
		if err := s.wish("remove " + r.Run); err != nil {
			return err
		}
	}
	return nil
}

// removal is what the removal of a cluster comes to, by the events that were
// played or the list of what exists.
func (s *Stage) removal(cluster string) event.Removal {
	r := event.Removal{Cluster: cluster, Provider: "local"}
	for _, c := range s.HomeIs.Clusters {
		if c.Name == cluster {
			r.Provider, r.Nodes, r.PerHour, r.Spent, r.Instance = c.Provider, len(c.Nodes), c.PricePerHour, c.Spent, c.Instance
			if c.Run != "" {
				r.Runs = []event.RunLeft{{RunResults: event.RunResults{Run: c.Run, AtStake: atStake(c.Run)}, Live: c.Phase == event.PhaseRunning}}
			}
		}
	}
	for _, e := range s.played {
		switch b := e.Body.(type) {
		case event.ClusterUp:
			r.Provider, r.Nodes, r.PerHour, r.Instance, r.Place, r.Ends = b.Provider, len(b.Nodes), b.PricePerHour, b.Instance, b.Zone, b.Ends
			r.Disks = 0
			for _, c := range b.Costs[min(1, len(b.Costs)):] {
				r.Disks += c.PerHour
			}
		case event.RunStarted:
			r.Runs = []event.RunLeft{{RunResults: event.RunResults{Run: e.Run, AtStake: atStake(e.Run)}, Live: true}}
		case event.RunEnded:
			r.Runs[0].Live = false
		case event.ResultsFetched:
			r.Runs[0].Files, r.Runs[0].Dir, r.Runs[0].AtStake = b.Files, b.Dir, ""
		}
	}
	return r
}

func atStake(run string) string {
	return "run " + run + " is going on: what it writes is brought home at its end"
}
