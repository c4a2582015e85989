package workbench

import (
	"context"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/told"
	"github.com/dlwb/dlwb/workbench/witness"
)

// watchRun follows a run until it has ended, and records how. silent are the
// replicas that did not answer just now; nil: nobody knows of any.
func (w *Workbench) watchRun(ctx context.Context, s scope, on carrier, id string, silent []bool) (event.RunEnded, error) {
	run, data, err := w.runRecord(id)
	if err != nil {
		return event.RunEnded{}, err
	}
	replicas, err := on.replicas(id)
	if err != nil {
		return event.RunEnded{}, err
	}
	s.run = id
	owner := w.watchOwner(s, run, &data)
	owner.Gone, owner.Beside = on.gone, on.beside(s, data)
	watched := w.watched(run, data, replicas, silent)
	watched.Names = w.called(s.life, nil)
	owner.Alone = func(ctx context.Context) (proof, doubt string) { return w.alone(ctx, s) }
	return follow.ToEnd(ctx, watched, owner)
}

// alone asks what lies on the way to the nodes of a cluster of which none is heard, and
// the nodes of the other clusters.
func (w *Workbench) alone(ctx context.Context, s scope) (proof, doubt string) {
	all, err := w.db.Clusters()
	if err != nil {
		return "", ""
	}
	var others []witness.Other
	var nodes []cloud.Node
	for _, c := range all {
		d, err := w.clusterData(c)
		switch {
		case err != nil || c.EndedAt != nil:
		case c.ID == s.life:
			nodes = d.Cluster.Nodes
		default:
			others = append(others, witness.Of(d.Cluster)...)
		}
	}
	return witness.Ask(ctx, nodes, others)
}

// watchOwner is what a watch needs of this workbench. The record of the run that
// it is given is kept up to date.
func (w *Workbench) watchOwner(s scope, run store.Run, data *runData) follow.Owner {
	return follow.Owner{
		Store: w.db, Changed: w.changed,
		Publish: func(b event.Body) error { return w.publish(s, b) },
		Events: func(after int64) ([]event.Event, int64, error) {
			rows, err := w.db.RunEvents(run.ID, after, 0)
			if len(rows) > 0 {
				after = rows[len(rows)-1].Seq
			}
			return told.All(rows), after, err
		},
		Progress: func(progress event.ProgressChanged, pace follow.Pace) error {
			data.Progress, data.Pace = progress, pace
			return w.putRun(run, *data)
		},
		Superseded: func() (bool, error) {
			c, err := w.db.ClusterLife(s.life)
			if err != nil {
				return false, err
			}
			st, err := w.storyOf(run.ID)
			return st.Ended != nil || event.Phase(c.Phase) == event.PhaseGone, err
		},
		End: func(e event.RunEnded) error { return w.recordEnd(s, run, *data, e) },
	}
}

// watched is a run as it is watched.
func (w *Workbench) watched(run store.Run, data runData, replicas []job.Replica, silent []bool) follow.Run {
	r := follow.Run{
		ID: run.ID, Cluster: run.Cluster, StartedAt: run.StartedAt, Replicas: replicas, Ranks: data.Ranks,
		Stall: seconds(data.Stall), Lost: seconds(data.Lost), Grace: seconds(data.Grace), Metrics: userMetrics(data.Metrics), Silent: silent,
		Progress: data.Progress, Pace: data.Pace, Dir: w.runDir(run.ID),
		Code: planning.RemoteCode(run.Cluster), Results: data.Results, Own: data.OwnDir, Leads: data.Leads,
	}
	for _, rank := range data.Ranks {
		r.Logs = append(r.Logs, follow.Log{Number: rank.Rank, Path: w.logPath(run.ID, rank.Rank), Replica: rank.Node, Name: logName(rank.Rank)})
	}
	if engine.HasLauncher(run.Engine) {
		for n := range data.Nodes {
			number := event.LauncherLog(n)
			r.Logs = append(r.Logs, follow.Log{Number: number, Path: w.logPath(run.ID, number), Replica: n, Name: "agent.log"})
		}
	}
	return r
}

func userMetrics(pairs [][2]string) []metrics.UserMetric {
	var user []metrics.UserMetric
	for _, p := range pairs {
		user = append(user, metrics.UserMetric{Name: p[0], Regex: p[1]})
	}
	return user
}
