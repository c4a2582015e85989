package workbench

import (
	"context"
	"errors"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/ledger"
)

// biller asks what the job of a run has cost, and tells it once that is final; nil: jobs
// of this provider are not paid for one by one.
func (w *Workbench) biller(provider string) func(ctx context.Context, run string) (usd float64, final bool) {
	b, is := w.jobs[provider].(cloud.Biller)
	if !is {
		return nil
	}
	return func(ctx context.Context, id string) (float64, bool) {
		run, err := w.db.Run(id)
		if errors.Is(err, store.ErrNotFound) {
			return 0, true // it is on record before it is handed in
		}
		st, stErr := w.storyOf(id)
		if st.Billed != nil {
			return st.Billed.Cost, true
		}
		c, lifeErr := w.db.ClusterLife(run.Life)
		data, dataErr := w.clusterData(c)
		if errors.Join(err, stErr, lifeErr, dataErr) != nil {
			return 0, false
		}
		usd, final, err := b.Billed(ctx, cloud.Life{Name: c.Name, ID: data.Life, Ledger: ledger.Of(w.db, c.ID)}, id)
		return usd, final && err == nil && w.publish(scope{cluster: c.Name, life: c.ID, run: id}, event.RunBilled{Cost: usd}) == nil
	}
}

// billLimit bounds the wait for what runs have cost: without it, rate and time tell.
const billLimit = 10 * time.Second

// askBills asks what runs have cost. Of one whose machines are kept for the next it is not
// final before these are given back.
func (w *Workbench) askBills(ctx context.Context, provider string, runs ...store.Run) {
	ask := w.biller(provider)
	ctx, cancel := context.WithTimeout(ctx, billLimit)
	defer cancel()
	for i := 0; ask != nil && i < len(runs); i++ {
		ask(ctx, runs[i].ID)
	}
}
