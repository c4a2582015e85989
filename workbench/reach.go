package workbench

import (
	"context"
	"errors"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

// lookAgain is how often a node is looked for besides what its connection
// tells: that it can't be reached may have been told before anybody listened.
const lookAgain = 3 * time.Second

func (t *watch) keepLooking(ctx context.Context, i int, n *remote.Node) {
	for {
		err := n.Connect(ctx)
		if ctx.Err() != nil {
			return
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		t.reach(i, err == nil, why)
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return
		}
	}
}

// tolerate drops the errors that are no failure of the watch: our own end, and
// those of a node that is proven gone. Where a node was, another machine may
// answer by now, and that is no answer of the node's.
func (t *watch) tolerate(ctx context.Context, node int, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	var own *event.Fault
	if errors.As(err, &own) {
		return err // what came can't be stored here
	}
	if !t.lost()[node] {
		t.writeOff(ctx)
	}
	if t.lost()[node] || ctx.Err() != nil {
		return nil
	}
	return err
}

// reach notes whether a node can be reached. A failed look proves nothing: the
// node is unknown from then on, not gone.
func (t *watch) reach(node int, connected bool, why string) {
	t.mu.Lock()
	_, was := t.gone[node]
	if connected {
		delete(t.gone, node)
	} else if !was {
		t.gone[node] = time.Now()
	}
	t.mu.Unlock()
	if connected == was { // a change
		state := cloud.Unknown
		if connected {
			state = cloud.Alive
		}
		_ = t.w.publish(t.s, event.NodeChanged{Node: node, State: state, Why: why})
	}
}
