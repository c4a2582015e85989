// Package tunnel leads from ports of this machine to nodes and back: forwards to
// ports, to Jupyter and to TensorBoard, and the lines by which the user's own ssh
// finds the nodes.
package tunnel

import (
	"context"
	"sync"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

// Cluster is a cluster as tunnels to one of its nodes need it.
type Cluster struct {
	Name   string
	Life   int64
	Mark   string       // of its life, which no other cluster has
	Number int          // of the node
	Node   *remote.Node // where tunnels lead to
	// SharedHost is set where the nodes are this machine.
	SharedHost bool
	Code       string   // the code directory, below the home
	Python     string   // empty: not set up yet
	Env        []string // in which Python runs
}

// Owner is what Tunnels need of the owner of clusters.
type Owner struct {
	// Find turns what a person typed into a cluster that is up, for tunnels to one of
	// its nodes.
	Find func(cluster string, node int) (Cluster, error)
	// Listed are the forwards that the profile of a cluster lists.
	Listed func(cluster string) ([]string, error)
	// Publish tells an event of a life of a cluster.
	Publish func(cluster string, life int64, b event.Body) error
	// Background runs something until the owner ends.
	Background func(func(context.Context))
}

// Tunnels are the open tunnels of this process, and those that the keeper holds for it.
type Tunnels struct {
	ctx   context.Context // that of the owner: tunnels outlive the call that opens them
	dir   string          // where local ports are remembered
	owner Owner

	recording sync.Mutex // of ports, and of what the keeper is to hold

	mu   sync.Mutex
	keep bool // the keeper is to hold what is opened

	open map[key]*tunnel
}

// New makes a set of tunnels, none of them open.
func New(ctx context.Context, dir string, owner Owner) *Tunnels {
	return &Tunnels{ctx: ctx, dir: dir, owner: owner, open: map[key]*tunnel{}}
}

// Count is how many tunnels to a cluster are open, here or in the keeper.
func (t *Tunnels) Count(cluster string) (n int) {
	kept := t.keptOf(cluster)
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, held := range t.open {
		if k.cluster == cluster && !held.opened.Kept {
			n++
		}
	}
	return n + len(kept)
}

func (t *Tunnels) publish(c Cluster, b event.Body) error { return t.owner.Publish(c.Name, c.Life, b) }
