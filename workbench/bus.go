package workbench

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
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
	body, err := json.Marshal(kept(b))
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

// bodyTypes maps the names of events to their types.
var bodyTypes = func() map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for _, b := range event.Bodies {
		m[b.Body.EventName()] = reflect.TypeOf(b.Body)
	}
	return m
}()

// decode reads an event back. An event of a name that this dlwb does not know
// comes from a newer one and is skipped, not an error.
func decode(e store.Event) (event.Event, bool) {
	t, ok := bodyTypes[e.Name]
	if !ok {
		return event.Event{}, false
	}
	v := reflect.New(t)
	if err := json.Unmarshal(e.Body, v.Interface()); err != nil {
		return event.Event{}, false
	}
	return event.Event{Seq: e.Seq, Time: e.Time, Cluster: e.Cluster, Run: e.Run, Body: v.Elem().Interface().(event.Body)}, true
}

func decodeAll(rows []store.Event) []event.Event {
	events := make([]event.Event, 0, len(rows))
	for _, r := range rows {
		if e, ok := decode(r); ok {
			events = append(events, e)
		}
	}
	return events
}

// kept is what is stored of a body: a ticket is not.
func kept(b event.Body) event.Body {
	if opened, ok := b.(event.ForwardOpened); ok {
		opened.Entry = ""
		return opened
	}
	return b
}
