package atnode

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/remote"
)

// heldLimit bounds how long a connection to a node that a cluster has is waited for:
// where none can be had, its provider says why.
const heldLimit = 3 * time.Second

// Held are the nodes with a connection to each, for their provider to ask them: one that
// this process or the keeper holds, or one that is made now and stays.
func Held(ctx context.Context, nodes []cloud.Node, links []*remote.Node) []cloud.Held {
	ctx, cancel := context.WithTimeout(ctx, heldLimit)
	defer cancel()
	held := make([]cloud.Held, len(nodes))
	var all sync.WaitGroup
	for i, n := range links {
		all.Go(func() {
			if n.Connect(ctx) == nil {
				held[i] = cloud.Held{Node: nodes[i], Run: (&Station{n}).Run}
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(held, func(h cloud.Held) bool { return h.Run == nil })
}
