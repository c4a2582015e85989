package workbench

import (
	"context"
	"os"
	"sync"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/results"
)

func (j jobs) keeper() (cloud.Keeper, bool) {
	k, is := j.JobProvider.(cloud.Keeper)
	return k, is
}

// keeps reports whether a service keeps what the runs of a cluster write.
func (w *Workbench) keeps(c store.Cluster) bool {
	_, is := w.jobs[c.Provider].(cloud.Keeper)
	return is
}

// keepsOf reports whether a Keeper keeps what a run writes: of some it does so only
// where the profile names a place.
func (w *Workbench) keepsOf(c store.Cluster, run string) bool {
	_, data, err := w.runRecord(run)
	return err != nil || data.OwnDir != "" || traits(c.Provider).Kept
}

// keptSite is where a run of a Keeper has its results.
func (on *jobCarrier) keptSite(k cloud.Keeper, s scope) results.Site {
	return results.Site{
		Cluster: s.cluster, Own: planning.PlaceVar(on.c.Provider), Names: on.w.called(s.life, nil),
		Gone:       func(context.Context) []bool { return nil },
		KeepActive: func(context.Context) {},
		Publish:    func(b event.Body) error { return on.w.publish(s, b) },
		Kept: func(ctx context.Context, into *os.Root) ([]string, error) {
			_, data, err := on.w.runRecord(s.run)
			if err != nil {
				return nil, err
			}
			if data.Ref == "" {
				found, err := on.Find(ctx, on.life, s.run, cloud.Untold)
				if err != nil || found.Ref == "" {
					return nil, err
				}
				data.Ref = found.Ref
			}
			return k.Bring(ctx, on.life, data.Ref, into)
		},
	}
}

// besideKept tells of the checkpoints that a service keeps of a run while it goes on.
func (on *jobCarrier) besideKept(k cloud.CheckpointStore, s scope) func(context.Context, *follow.Watch) func(context.Context) {
	look := func(ctx context.Context) ([]cloud.Checkpoint, error) {
		_, data, err := on.w.runRecord(s.run)
		if err != nil || data.Ref == "" {
			return nil, err
		}
		return k.Checkpoints(ctx, on.life, data.Ref)
	}
	return func(ctx context.Context, _ *follow.Watch) func(context.Context) {
		ctx, stop := context.WithCancel(ctx)
		var busy sync.WaitGroup
		busy.Go(func() {
			results.FollowKept(ctx, look, on.w.books.Checkpoint(s.life, s.run, now()), func(b event.Body) error { return on.w.publish(s, b) })
		})
		return func(context.Context) { stop(); busy.Wait() }
	}
}

// bringKept brings home what runs have left at a Keeper whose ends came too late to be
// waited for: their cluster is gone by now, and what they wrote is not. What does not
// come is said: it can be had later.
func (w *Workbench) bringKept(ctx context.Context, c store.Cluster, runs []string) {
	if !w.keeps(c) {
		return
	}
	for _, run := range runs {
		if !w.keepsOf(c, run) {
			continue
		}
		st, err := w.storyOf(run)
		if err == nil && st.Started && !st.Fetched {
			var on carrier
			if on, err = w.reach(c); err == nil {
				err = on.fetch(ctx, scope{cluster: c.Name, life: c.ID, run: run}, nil)
			}
		}
		if err != nil {
			_ = w.publish(scope{cluster: c.Name, life: c.ID, run: run}, event.Noticed{Level: "warning",
				Text: "what run " + run + " wrote did not come home: " + err.Error(), Next: "dlwb pull " + run})
		}
	}
}
