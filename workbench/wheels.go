package workbench

import (
	"context"

	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/remote/transfer"
)

// wheels lets the nodes fetch each package once, where they share one line to
// the package index. It is nil where each has a line of its own, as wide as the
// one between them: there every node fetches for itself, and waits for no other.
func (d *drive) wheels() *environment.Group {
	if len(d.link.nodes) < 2 || !traits(d.plan.Provider).SharedUplink {
		return nil
	}
	names := make([]string, len(d.link.nodes))
	for i, n := range d.link.nodes {
		names[i] = n.Name()
	}
	place := func(dir environment.Dir) transfer.Place {
		return transfer.Place{Node: d.link.nodes[dir.Node], Dir: dir.Path}
	}
	return environment.NewGroup(names, func(ctx context.Context, from environment.Dir, to []environment.Dir, most int64) []error {
		places := make([]transfer.Place, len(to))
		for i, dir := range to {
			places[i] = place(dir)
		}
		return transfer.Share(ctx, place(from), places, most)
	})
}
