package workbench

import (
	"context"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/environment"
)

// wheels lets the nodes fetch each package once, where that is faster: nodes
// of one's own stand behind one line to the package index, which they would
// have to share. Machines of EC2 have a line each, as wide as the one between
// them: there every node fetches for itself, and waits for no other. Nil is
// that.
func (d *drive) wheels() *environment.Group {
	if len(d.link.nodes) < 2 || d.plan.Provider != "hosts" && d.plan.Provider != "local" {
		return nil
	}
	names := make([]string, len(d.link.nodes))
	for i, n := range d.link.nodes {
		names[i] = n.Name()
	}
	place := func(dir environment.Dir) remote.Place {
		return remote.Place{Node: d.link.nodes[dir.Node], Dir: dir.Path}
	}
	return environment.NewGroup(names, func(ctx context.Context, from environment.Dir, to []environment.Dir, most int64) []error {
		places := make([]remote.Place, len(to))
		for i, dir := range to {
			places[i] = place(dir)
		}
		return remote.Share(ctx, place(from), places, most)
	})
}
