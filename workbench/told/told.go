// Package told reads events back from the store, and says what of one is stored.
package told

import (
	"encoding/json"
	"reflect"

	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// bodyTypes maps the names of events to their types.
var bodyTypes = func() map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for _, b := range event.Bodies {
		m[b.Body.EventName()] = reflect.TypeOf(b.Body)
	}
	return m
}()

// Decode reads an event back. An event of a name that this dlwb does not know
// comes from a newer one and is skipped, not an error.
func Decode(e store.Event) (event.Event, bool) {
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

// All reads those that this dlwb knows, in order.
func All(rows []store.Event) []event.Event {
	events := make([]event.Event, 0, len(rows))
	for _, r := range rows {
		if e, ok := Decode(r); ok {
			events = append(events, e)
		}
	}
	return events
}

// Kept is what is stored of a body: a ticket is not.
func Kept(b event.Body) event.Body {
	if opened, ok := b.(event.ForwardOpened); ok {
		opened.Entry = ""
		return opened
	}
	return b
}
