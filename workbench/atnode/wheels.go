package atnode

import (
	"context"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/remote/transfer"
)

// Wheels lets nodes fetch each package once, where they share one line to the package
// index. It is nil where each has a line of its own, as wide as the one between them:
// there every node fetches for itself, and waits for no other.
func Wheels(nodes []*remote.Node, shared bool) *environment.Group {
	if len(nodes) < 2 || !shared {
		return nil
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name()
	}
	place := func(dir environment.Dir) transfer.Place {
		return transfer.Place{Node: nodes[dir.Node], Dir: dir.Path}
	}
	return environment.NewGroup(names, func(ctx context.Context, from environment.Dir, to []environment.Dir, most int64) []error {
		places := make([]transfer.Place, len(to))
		for i, dir := range to {
			places[i] = place(dir)
		}
		return transfer.Share(ctx, place(from), places, most)
	})
}
