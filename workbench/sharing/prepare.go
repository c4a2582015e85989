package sharing

import (
	"context"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/environment"
)

// Prepare makes the environment of each place for the code once, for each processor,
// and has the other nodes that find it there look at it then.
func (all Nodes) Prepare(ctx context.Context, nodes []*remote.Node, spec environment.Spec, prepare func(context.Context, int, environment.Spec) error) error {
	processors := all.processors(ctx, nodes)
	turn := func(joins bool) error {
		g, ctx := errgroup.WithContext(ctx)
		for i := range nodes {
			if own := all.spec(i, spec, processors); own.Joins == joins {
				g.Go(func() error { return prepare(ctx, i, own) })
			}
		}
		return g.Wait()
	}
	if err := turn(false); err != nil {
		return err
	}
	return turn(true)
}

// spec is what is asked for on one node.
func (all Nodes) spec(node int, spec environment.Spec, processors []string) environment.Spec {
	spec.Node = node
	builder := all.builder(node, processors)
	switch first := all.FilesOf(node); {
	case first != node && spec.Kind == environment.Docker:
		spec.Variant = all[node].Name // images are the machine's
		return spec
	case processors[first] != processors[builder]:
		spec.Variant = processors[builder]
	}
	if spec.Joins = builder != node; spec.Joins {
		spec.Group, spec.Force = nil, false
	}
	return spec
}

// builder is the node that makes the environment which a node uses: the first one
// with the same place for it and the same processor.
func (all Nodes) builder(node int, processors []string) int {
	for i := range node {
		if all.FilesOf(i) == all.FilesOf(node) && processors[i] == processors[node] {
			return i
		}
	}
	return node
}

// processors are what the nodes run on, as uname says it, where some share the place
// of their code: what is made on one need not run on another. Empty: it does not
// matter, or is not known.
func (all Nodes) processors(ctx context.Context, nodes []*remote.Node) []string {
	kinds := make([]string, len(nodes))
	if len(Some(nodes, all.FirstAtCode)) == len(nodes) {
		return kinds
	}
	var asked sync.WaitGroup
	for i, n := range nodes {
		asked.Go(func() {
			if r, err := n.Exec(ctx, remote.Cmd{Line: "uname -m"}); err == nil && r.ExitCode == 0 {
				kinds[i] = strings.TrimSpace(string(r.Stdout))
			}
		})
	}
	asked.Wait()
	return kinds
}
