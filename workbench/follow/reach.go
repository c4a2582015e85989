package follow

import (
	"context"
	"errors"
	"time"

	"github.com/dlwb/dlwb/workbench/event"
)

// tolerate drops the errors that are no failure of the watch: our own end, and
// those of a node that is proven gone. Where a node was, another machine may
// answer by now, and that is no answer of the node's.
func (t *Watch) tolerate(ctx context.Context, node int, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	var own *event.Fault
	if errors.As(err, &own) {
		return err // what came can't be stored here
	}
	if !t.Lost()[node] {
		t.writeOff(ctx)
	}
	if t.Lost()[node] || ctx.Err() != nil {
		return nil
	}
	return err
}

// reach notes whether a node can be reached. A failed look proves nothing: the
// node is unknown from then on, not gone. That it lets nobody in may show only when
// it is tried again: that is told, since somebody has to log in.
func (t *Watch) reach(node int, connected bool, why string) {
	barred := false
	if !connected {
		barred, _ = t.refuses(node)
	}
	t.mu.Lock()
	_, was := t.gone[node]
	news := connected == was || barred && !t.nodes[node].barred
	t.nodes[node].barred = barred
	if connected {
		delete(t.gone, node)
		t.nodes[node].silent, t.nodes[node].refuses = time.Time{}, false
	} else if !was {
		t.gone[node] = time.Now()
	}
	switch {
	case len(t.gone) == len(t.nodes):
		t.company = time.Time{}
	case t.company.IsZero():
		t.company = time.Now()
	}
	t.mu.Unlock()
	if news {
		state := event.Unknown
		if connected {
			state = event.Alive
		}
		_ = t.owner.Publish(event.NodeChanged{Node: node, State: state, Why: why})
	}
}
