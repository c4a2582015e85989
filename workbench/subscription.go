package workbench

import (
	"context"
	"slices"

	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/reading"
	"github.com/dlwb/dlwb/workbench/told"
)

// Subscribe opens the stream of a cluster: first all that happened in its
// present life, then what happens. The cluster need not exist yet.
func (w *Workbench) Subscribe(cluster string) *reading.Subscription {
	return w.source().Subscribe(cluster)
}

// source is where readers read.
func (w *Workbench) source() reading.Source {
	return reading.Source{Context: w.ctx, Dir: w.dir, Store: w.db, History: w.history, News: w.newsChannel, Log: w.logPath, Progress: w.runProgress}
}

// RunEvents returns everything of a run of the past, as Subscribe would have
// given it, and the receipt of its cluster when that was torn down.
func (w *Workbench) RunEvents(_ context.Context, run string) ([]event.Event, error) {
	r, err := w.db.Run(run)
	if err != nil {
		return nil, w.names().UnknownRun(run, err)
	}
	nodes := 0
	if _, data, err := w.runRecord(run); err == nil {
		nodes = data.Nodes
	}
	events, err := w.source().OfRun(r, nodes)
	if err != nil {
		return nil, err
	}
	receipt, err := w.lastReceipt(r.Life)
	return append(events, receipt...), err
}

// lastReceipt is the event of what the last teardown of a life came to; none
// where there was no teardown.
func (w *Workbench) lastReceipt(life int64) (last []event.Event, err error) {
	rows, err := w.db.SinceLife(life, 0, 0)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(e store.Event) bool { return e.Name != (event.ReceiptMade{}).EventName() })
	return told.All(rows[max(len(rows)-1, 0):]), nil
}
