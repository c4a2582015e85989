package results

import (
	"fmt"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// Of says where the results of a run are.
func (f *Fetcher) Of(run string) (event.RunResults, error) {
	row, err := f.owner.Run(run)
	if err != nil {
		return event.RunResults{}, err
	}
	told, err := f.owner.Told(run)
	if err != nil {
		return event.RunResults{}, err
	}
	r := event.RunResults{Run: run, Dir: f.Dir(row)}
	r.Files, r.Bytes = f.readHome(run).below(r.Dir)
	if told.Got != nil {
		r.Dir, r.Files, r.Bytes = told.Got.Dir, told.Got.Files, told.Got.Bytes
	}
	r.Home = told.Ended != nil && told.Fetched && told.Lost == nil
	if told.Lost != nil {
		r.Lost = told.Lost.Why
	}
	if c, err := f.db.ClusterLife(row.Life); err == nil && c.EndedAt == nil && r.Lost == "" {
		r.AtStake = atStake(row, told)
	}
	return r, nil
}

// atStake is what of a run is on its machines only.
func atStake(r Run, told Told) string {
	switch {
	case !told.Started:
		return ""
	case told.Ended == nil:
		return "run " + r.ID + " is going on: what it writes is brought home at its end"
	case told.Fetched && told.Got != nil && told.Got.Unfetched > 0:
		return fmt.Sprintf("%s of run %s could not be read there, or not whole; dlwb pull %s tries again", units.Count(told.Got.Unfetched, "file"), r.ID, r.ID)
	case told.Fetched:
		return ""
	case len(r.Paths) == 0:
		return "whatever run " + r.ID + " wrote to DLWB_RESULTS did not come home, if anything; dlwb pull " + r.ID + " tries again"
	}
	return fmt.Sprintf("the results of run %s did not come home; dlwb pull %s tries again", r.ID, r.ID)
}

// Missing tells that what a run wrote goes with its machines, and what kept it from
// coming home, as far as that is known; nil: nothing of it is at stake.
func (f *Fetcher) Missing(id string, why error) *event.Noticed {
	r, err := f.Of(id)
	run, runErr := f.owner.Run(id)
	if err != nil || runErr != nil || r.AtStake == "" {
		return nil
	}
	n := &event.Noticed{Level: "warning", Text: "the results of run " + id + " did not come home before its nodes were removed",
		Next: "what did come lies in " + r.Dir}
	if len(run.Paths) == 0 {
		n.Text = "what run " + id + " wrote to DLWB_RESULTS, if anything, did not come home before its nodes were removed"
	}
	if r.Files == 0 {
		n.Next = "nothing of it is here"
	}
	if why != nil {
		n.Text += ": " + event.FaultOf(why).Why
	}
	return n
}

// Unsaved lists the runs of a life of a cluster of which something would be lost
// with its machines, the newest first.
func (f *Fetcher) Unsaved(cluster string, life int64) ([]event.RunResults, error) {
	runs, err := f.db.Runs(cluster)
	if err != nil {
		return nil, err
	}
	var all []event.RunResults
	for _, row := range runs {
		if row.Life != life {
			continue
		}
		r, err := f.Of(row.ID)
		if err != nil {
			return nil, err
		}
		if r.AtStake != "" {
			all = append(all, r)
		}
	}
	return all, nil
}

// NeededBy says that an earlier run on the same nodes needs the record of this
// one: what it wrote is told from what this one wrote by it. Empty: none does.
func (f *Fetcher) NeededBy(r store.Run) string {
	unsaved, err := f.Unsaved(r.Cluster, r.Life)
	if err != nil {
		return ""
	}
	for _, u := range unsaved {
		if other, err := f.db.Run(u.Run); err == nil && other.StartedAt.Before(r.StartedAt) {
			return "the results of run " + u.Run + " are not home, and its record tells them apart: dlwb pull " + u.Run
		}
	}
	return ""
}
