package workbench

import (
	"context"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/results"
)

// What the room of results is given of the driver.

// ResultsOf says where the results of a run are.
func (w *Workbench) ResultsOf(run string) (event.RunResults, error) { return w.results.Of(run) }

// Pull brings the results of a run home again. To is the directory for them;
// empty: where they go by themselves.
func (w *Workbench) Pull(ctx context.Context, run, to string) (event.ResultsFetched, error) {
	return w.results.Pull(ctx, run, to)
}

// runWithResults is a run as its results need it.
func (w *Workbench) runWithResults(id string) (results.Run, error) {
	r, d, err := w.runRecord(id)
	var life clusterData
	if err == nil && d.S3 != "" {
		life, err = w.dataOfLife(r.Life)
	}
	return results.Run{ID: id, Cluster: r.Cluster, Life: r.Life, LifeID: life.Life, Paths: d.Results, OwnDir: d.OwnDir, Checkpoints: d.Checkpoints, S3: d.S3, To: d.To, Lost: seconds(d.Lost)}, err
}

// dataOfLife is what the store keeps of a life of a cluster, also of one that is over.
func (w *Workbench) dataOfLife(life int64) (clusterData, error) {
	c, err := w.db.ClusterLife(life)
	if err != nil {
		return clusterData{}, err
	}
	return w.clusterData(c)
}

// toldOf is what was told of a run, as far as its results are concerned.
func (w *Workbench) toldOf(run string) (results.Told, error) {
	st, err := w.storyOf(run)
	return results.Told{Started: st.Started, Ended: st.Ended, Fetched: st.Fetched, Got: st.Results, Lost: st.Lost}, err
}

// readable says why files of the nodes of a cluster can't be read. A record that
// can't be read says nothing of that.
func (w *Workbench) readable(c store.Cluster) error {
	made, err := w.clusterData(c)
	if err != nil {
		return nil
	}
	return lacks("bring results home", made.Cluster, job.Files)
}

// reachResults connects to where a run is.
func (w *Workbench) reachResults(c store.Cluster, run string) (results.Site, error) {
	if w.keeps(c) {
		on, err := w.reach(c)
		if err != nil {
			return results.Site{}, err
		}
		at := on.(*jobCarrier)
		k, _ := at.keeper()
		return at.keptSite(k, scope{cluster: c.Name, life: c.ID, run: run}), nil
	}
	l, err := w.openDisk(c)
	if err != nil {
		return results.Site{}, err
	}
	return l.ofRun(run).site(scope{cluster: c.Name, life: c.ID, run: run}, nil), nil
}

// openDisk connects to the machines on whose disks the runs of a cluster write.
func (w *Workbench) openDisk(c store.Cluster) (*link, error) {
	p, is := w.jobs[c.Provider].(cloud.Landing)
	if !is {
		return w.open(c)
	}
	on, err := jobs{p, w}.reach(c)
	if err != nil {
		return nil, err
	}
	return on.(*jobCarrier).landed(w.ctx)
}

// site is where a run is that this link leads to. It tells events of the scope.
// silent are nodes that did not answer just now; nil: nobody knows of any.
func (l *link) site(s scope, silent []bool) results.Site {
	return results.Site{
		Cluster: s.cluster, Nodes: l.nodes, Disks: l.cluster.Nodes, Leased: traits(l.cluster.Provider).Leased, Gone: l.gone, Silent: silent, Names: l.w.called(s.life, nil),
		KeepActive: func(ctx context.Context) { l.w.background(func(context.Context) { l.keepActive(ctx) }) },
		Publish:    func(b event.Body) error { return l.w.publish(s, b) },
	}
}
