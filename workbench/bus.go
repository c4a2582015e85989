package workbench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/told"
)

// scope is what events belong to: one life of a cluster, perhaps a run on it.
type scope struct {
	cluster string
	life    int64
	run     string
}

// publish writes an event to the store, from where every reader of every
// process gets it. Callers that act on what they publish return its error; those
// that only tell (progress, warnings) drop it, and go on without having told.
func (w *Workbench) publish(s scope, b event.Body) error {
	b = w.called(s.life, b).Body(b)
	body, err := json.Marshal(told.Kept(b))
	if err != nil {
		return fmt.Errorf("write event %s: %w", b.EventName(), err)
	}
	_, err = w.db.Append(store.Event{
		Time: now(), Cluster: s.cluster, Life: s.life, Run: s.run, Name: b.EventName(), Body: body,
	})
	slog.Debug("event", "name", b.EventName(), "cluster", s.cluster, "run", s.run, "error", err)
	if err != nil {
		return err
	}
	w.changed()
	w.said.Note(b)
	return nil
}

// called is what the user calls the nodes of a life, as far as there are any.
func (w *Workbench) called(life int64, b event.Body) event.Names {
	if up, is := b.(event.ClusterUp); is {
		return w.roster.Note(life, up.Nodes)
	}
	return w.roster.Of(life, func() []cloud.Node {
		c, err := w.db.ClusterLife(life)
		if err != nil {
			return nil
		}
		d, err := w.clusterData(c)
		if err != nil {
			return nil // it is not up yet
		}
		return d.Cluster.Nodes
	})
}

// tellWaits tells what a step waits for, whenever nothing was heard of it for a
// while, until quiet is called.
func (w *Workbench) tellWaits(ctx context.Context, s scope, step string) (quiet func()) {
	return w.said.Tell(ctx, func(text string) {
		_ = w.publish(s, event.StepProgress{Step: step, Node: -1, Text: text})
	})
}
