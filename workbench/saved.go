package workbench

import (
	"errors"
	"fmt"

	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// ResultsOf says where the results of a run are.
func (w *Workbench) ResultsOf(run string) (event.RunResults, error) {
	row, data, err := w.runRecord(run)
	if err != nil {
		return event.RunResults{}, err
	}
	st, err := w.storyOf(run)
	if err != nil {
		return event.RunResults{}, err
	}
	r := event.RunResults{Run: run, Dir: w.resultsDir(run, data)}
	r.Files, r.Bytes = w.readHome(run).below(r.Dir)
	if st.results != nil {
		r.Dir, r.Files, r.Bytes = st.results.Dir, st.results.Files, st.results.Bytes
	}
	r.Home = st.ended != nil && st.fetched && st.lost == nil
	if st.lost != nil {
		r.Lost = st.lost.Why
	}
	if c, err := w.db.ClusterLife(row.Life); err == nil && c.EndedAt == nil && r.Lost == "" {
		r.AtStake = atStake(run, data, st)
	}
	return r, nil
}

// atStake is what of a run is on its machines only.
func atStake(run string, data runData, st story) string {
	switch {
	case !st.started:
		return ""
	case st.ended == nil:
		return "run " + run + " is going on: what it writes is brought home at its end"
	case st.fetched:
		return ""
	case len(data.Results) == 0:
		return "whatever run " + run + " wrote: the profile names no results.paths"
	}
	return fmt.Sprintf("the results of run %s did not come home; dlwb pull %s tries again", run, run)
}

// unsaved lists the runs of a cluster's present life of which something would be
// lost with its machines, the newest first.
func (w *Workbench) unsaved(cluster string) ([]event.RunResults, error) {
	c, err := w.db.Cluster(cluster)
	if errors.Is(err, store.ErrNotFound) {
		return nil, w.unknownCluster(cluster, err)
	}
	if err != nil {
		return nil, err
	}
	runs, err := w.db.Runs(cluster)
	if err != nil {
		return nil, err
	}
	var all []event.RunResults
	for _, row := range runs {
		if row.Life != c.ID {
			continue
		}
		r, err := w.ResultsOf(row.ID)
		if err != nil {
			return nil, err
		}
		if r.AtStake != "" {
			all = append(all, r)
		}
	}
	return all, nil
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
	return w.neededBy(r)
}

// neededBy says that an earlier run on the same nodes needs the record of this
// one: what it wrote is told from what this one wrote by it.
func (w *Workbench) neededBy(r store.Run) string {
	unsaved, err := w.unsaved(r.Cluster)
	if err != nil {
		return ""
	}
	for _, u := range unsaved {
		if other, err := w.db.Run(u.Run); err == nil && other.StartedAt.Before(r.StartedAt) {
			return "the results of run " + u.Run + " are not home, and its record tells them apart: dlwb pull " + u.Run
		}
	}
	return ""
}
