package workbench

import (
	"context"
	"slices"
	"sort"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
)

// Home says what exists: profiles that were used, clusters that are not gone,
// runs.
func (w *Workbench) Home(ctx context.Context) (event.Home, error) {
	var h event.Home
	clusters, err := w.Clusters(ctx)
	if err != nil {
		return h, err
	}
	runs, err := w.Runs()
	if err != nil {
		return h, err
	}
	seen, err := w.db.Profiles()
	if err != nil {
		return h, err
	}
	for _, p := range seen {
		info := event.ProfileInfo{Name: p.Name, Path: p.Path, Provider: p.Provider, UsedAt: p.UsedAt}
		if _, err := profiles.Load(p.Path); err != nil {
			info.Fault = err.Error()
		}
		h.Profiles = append(h.Profiles, info)
	}
	h.Clusters, h.Runs = clusters, runs
	return h, nil
}

// Clusters lists the clusters that are not gone, running ones first.
func (w *Workbench) Clusters(ctx context.Context) ([]event.ClusterInfo, error) {
	rows, err := w.db.LiveClusters()
	if err != nil {
		return nil, err
	}
	infos := []event.ClusterInfo{}
	for _, c := range rows {
		info, err := w.clusterInfo(ctx, c)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	sort.SliceStable(infos, func(i, j int) bool {
		return infos[i].Phase == event.PhaseRunning && infos[j].Phase != event.PhaseRunning
	})
	return infos, nil
}

func (w *Workbench) clusterInfo(ctx context.Context, c store.Cluster) (event.ClusterInfo, error) {
	d, err := w.clusterData(c)
	if err != nil {
		return event.ClusterInfo{}, err
	}
	info := event.ClusterInfo{
		Name: c.Name, Provider: c.Provider, Phase: w.phaseOf(c, len(d.Cluster.Nodes)), Profile: c.Profile, ProfilePath: c.ProfilePath,
		Nodes: d.Cluster.Nodes, CreatedAt: c.CreatedAt,
		Region: d.Cluster.Region, Instance: d.Cluster.Instance, Spot: d.Cluster.Spot,
		Costs: d.Cluster.Costs,
	}
	if run, live, err := w.liveRun(c.Name); err == nil && live {
		info.Run = run.ID
		if info.Phase == event.PhaseReady || info.Phase == event.PhaseStarting {
			info.Phase = event.PhaseRunning
		}
	}
	info.Owner = w.holder(c.Name)
	info.States = w.statesOf(ctx, c.ID, d.Cluster)
	return info, w.settleAccount(c, &info)
}

// holder is the process that changes a cluster or watches it; 0 for none.
func (w *Workbench) holder(cluster string) int {
	if pid := w.locks.Holder(cluster, locks.Change); pid != 0 {
		return pid
	}
	return w.locks.Holder(cluster, locks.Watch)
}

// settleAccount fills in what the events of a cluster's life say of its money
// and its end. A machine that the provider proves to be gone, and that nobody
// has told of, is told of now: every reader then knows.
func (w *Workbench) settleAccount(c store.Cluster, info *event.ClusterInfo) error {
	a, err := w.books.Of(c.ID)
	if err != nil {
		return err
	}
	if event.Phase(c.Phase) == event.PhaseReady && !w.locks.Held(c.Name, locks.Change) {
		for i, s := range info.States {
			if s == cloud.Gone && !a.Gone(i) {
				e := event.NodeChanged{Node: i, State: cloud.Gone, Why: "its provider says so"}
				if err := w.publish(scope{cluster: c.Name, life: c.ID}, e); err != nil {
					return err
				}
			}
		}
		if a, err = w.books.Of(c.ID); err != nil {
			return err
		}
	}
	info.Checkpoint = w.books.Checkpoint(c.ID, info.Run, now())
	info.PricePerHour, info.Spent, info.Ends = a.Rate(now()), a.Spent(now()), a.Ends
	info.Lived = a.Lived(c.CreatedAt, now()).Seconds()
	if info.Phase == event.PhaseReady && a.AllGone() {
		info.Phase = event.PhaseEnded
	}
	if b, ok := a.Next(); ok && info.Phase != event.PhaseStopped && info.Phase != event.PhaseEnded {
		info.Next = &b
	}
	return nil
}

const (
	// statesLimit bounds the question to a provider for a list: a list that
	// waits for a cloud that does not answer is worse than one that says
	// unknown.
	statesLimit = 3 * time.Second
	// statesAge is how old an answer of a cloud may be in a list.
	statesAge = 10 * time.Second
)

// seenStates is what a provider said of a cluster's nodes, and when.
type seenStates struct {
	at     time.Time
	states []cloud.State
}

// statesOf asks what the nodes of a cluster are doing. What costs money is
// asked over a network, and not every time that somebody looks.
func (w *Workbench) statesOf(ctx context.Context, life int64, c cloud.Cluster) []cloud.State {
	w.mu.Lock()
	seen := w.seen[life]
	w.mu.Unlock()
	if traits(c.Provider).Leased && len(seen.states) == len(c.Nodes) && time.Since(seen.at) < statesAge {
		return slices.Clone(seen.states)
	}
	states := slices.Repeat([]cloud.State{cloud.Unknown}, len(c.Nodes))
	p, err := w.backend(c.Provider)
	if err != nil || len(c.Nodes) == 0 {
		return states
	}
	ctx, cancel := context.WithTimeout(ctx, statesLimit)
	defer cancel()
	if statuses, err := p.probe(ctx, c); err == nil {
		for i, s := range statuses[:min(len(statuses), len(states))] {
			if s.State != "" {
				states[i] = s.State
			}
		}
	}
	w.mu.Lock()
	w.seen[life] = seenStates{time.Now(), slices.Clone(states)}
	w.mu.Unlock()
	return states
}

// phaseOf is where a cluster is in its life. Its record says what was begun;
// whether somebody is still at it, the lock says.
func (w *Workbench) phaseOf(c store.Cluster, nodes int) event.Phase {
	p := event.Phase(c.Phase)
	switch {
	case p != event.PhaseStarting && p != event.PhaseStopping, w.locks.Held(c.Name, locks.Change):
		return p
	case p == event.PhaseStarting && nodes > 0:
		return event.PhaseReady
	}
	// Begun and left: what there is of it, nobody knows until down has looked.
	return event.PhaseUnresolved
}

// Runs lists all runs, newest first.
func (w *Workbench) Runs() ([]event.RunInfo, error) {
	rows, err := w.runs("")
	if err != nil {
		return nil, err
	}
	infos := make([]event.RunInfo, len(rows))
	for i, r := range rows {
		infos[i] = w.runInfo(r)
	}
	return infos, nil
}

func (w *Workbench) runInfo(r store.Run) event.RunInfo {
	info := event.RunInfo{
		ID: r.ID, Cluster: r.Cluster, Profile: r.Profile, Engine: r.Engine, Command: r.Command,
		WorldSize: r.WorldSize, StartedAt: r.StartedAt, EndedAt: r.EndedAt, ExitCode: r.ExitCode,
		Verdict: event.Verdict(r.Verdict), Cause: r.Cause, Dir: r.Dir, Note: r.Note, Starred: r.Starred,
	}
	if _, d, err := w.runRecord(r.ID); err == nil {
		info.Ranks, info.Duration = d.Ranks, d.Duration
		info.Cost = d.PricePerHour * info.Took(now()).Hours()
	}
	info.Duration = info.Took(now()).Seconds()
	info.LastLoss = w.history.LastLoss(r.ID)
	return info
}
