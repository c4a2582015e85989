package workbench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/vitals"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/samples"
)

// observe stores the telemetry of a cluster's nodes for as long as the link is
// there, whether something runs on them or not: an idle GPU costs the same. Of
// several dlwb one does it; the others read what it stores.
func (w *Workbench) observe(s scope, l *link) {
	l.observed.Do(func() {
		w.background(func(context.Context) { w.storeTelemetry(l.ctx, s, l) })
	})
}

// observeRetry is how often a dlwb looks whether it is its turn.
const observeRetry = 2 * time.Second

func (w *Workbench) storeTelemetry(ctx context.Context, s scope, l *link) {
	for ctx.Err() == nil {
		lock, err := w.locks.Claim(s.cluster, locks.Observe)
		if err == nil && lock != nil {
			defer lock.Release()
			o := newObserver(w, s, l)
			o.run(ctx)
			return
		}
		select {
		case <-time.After(observeRetry):
		case <-ctx.Done():
		}
	}
}

// observer stores the telemetry of the nodes of one cluster.
type observer struct {
	w    *Workbench
	s    scope
	l    *link
	kept *samples.Keeper

	mu   sync.Mutex
	hung map[int]bool // nodes whose nvidia-smi does not answer
}

func newObserver(w *Workbench, s scope, l *link) *observer {
	return &observer{w: w, s: s, l: l, kept: samples.NewKeeper(w.db, w.dir, s.cluster, s.life, w.changed), hung: map[int]bool{}}
}

func (o *observer) run(ctx context.Context) {
	var rest sync.WaitGroup
	rest.Go(func() { o.kept.Keep(ctx) })
	for i, r := range o.l.parts("") {
		if teller, can := r.(job.Teller); can {
			rest.Go(func() { o.node(ctx, i, teller) })
		}
		if traits(o.l.cluster.Provider).Leased {
			rest.Go(func() { o.w.nodeLease(ctx, o.s, o.l, i) })
		}
	}
	rest.Wait()
}

// node gathers the samples of one node. An error ends it with a line in the log
// alone: a panel without news says so by itself.
func (o *observer) node(ctx context.Context, node int, teller job.Teller) {
	parser := vitals.NewReader()
	err := teller.Telemetry(ctx, o.kept.Pace, func(frame []byte) {
		if sample, ok := parser.Frame(frame); ok {
			o.take(node, sample)
		}
	})
	slog.Debug("telemetry ended", "cluster", o.s.cluster, "node", node, "error", err)
}

func (o *observer) take(node int, sample metrics.Sample) {
	body, err := json.Marshal(sample)
	if err != nil {
		return
	}
	hung := sample.GPUError == vitals.SMISilent
	o.kept.Take(node, body)
	o.mu.Lock()
	was := o.hung[node]
	o.hung[node] = hung
	o.mu.Unlock()
	switch {
	case hung && !was:
		_ = o.w.publish(o.s, event.Noticed{Level: "warning", Text: o.w.called(o.s.life, nil).In(fmt.Sprintf("nvidia-smi on node%d does not answer: what its GPUs do is unknown from now on", node)),
			Next: "the run goes on; dmesg on the node may tell of a GPU that fell off the bus"})
	case was && !hung:
		_ = o.w.publish(o.s, event.Noticed{Level: "info", Text: o.w.called(o.s.life, nil).In(fmt.Sprintf("nvidia-smi on node%d answers again", node))})
	}
}
