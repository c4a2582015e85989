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

// billLimit bounds the wait for what a run has cost: without it, the rate and the time tell.
const billLimit = 10 * time.Second

// askBill asks what a run has cost that is over, where its service bills it by itself and
// nobody has asked. Until that is final, somebody who comes later asks.
func (on *jobCarrier) askBill(ctx context.Context, run string) {
	b, is := on.JobProvider.(cloud.Biller)
	st, err := on.w.storyOf(run)
	if !is || err != nil || st.Ended == nil || st.Billed != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, billLimit)
	defer cancel()
	on.w.billed(ctx, b, run)
}

// billed asks what the job of a run has cost, and tells it once that is final.
func (w *Workbench) billed(ctx context.Context, b cloud.Biller, id string) (usd float64, final bool) {
	run, err := w.db.Run(id)
	if errors.Is(err, store.ErrNotFound) {
		return 0, true // it is on record before it is handed in
	}
	c, lifeErr := w.db.ClusterLife(run.Life)
	data, dataErr := w.clusterData(c)
	if errors.Join(err, lifeErr, dataErr) != nil {
		return 0, false
	}
	usd, final, err = b.Billed(ctx, cloud.Life{Name: c.Name, ID: data.Life, Ledger: ledger.Of(w.db, c.ID)}, id)
	final = final && err == nil && w.publish(scope{cluster: c.Name, life: c.ID, run: id}, event.RunBilled{Cost: usd}) == nil
	return usd, final
}

// biller is billed for the trials of a sweep; nil: they are not paid for one by one.
func (d *drive) biller() func(context.Context, string) (float64, bool) {
	if d.plan != nil {
		if b, is := d.w.jobs[d.plan.Provider].(cloud.Biller); is {
			return func(ctx context.Context, run string) (float64, bool) { return d.w.billed(ctx, b, run) }
		}
	}
	return nil
}
