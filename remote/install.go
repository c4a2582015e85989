package remote

import (
	"context"

	"github.com/dlwb/dlwb/remote/wire"
)

// Install puts the agent's stubs into ~/.dlwb/bin: what the rest of the system
// calls on a node by a name that stays. Each comes into place whole, so that a
// run which is under way keeps the one it has.
func (n *Node) Install(ctx context.Context) error {
	return n.Ask(ctx, wire.Install, wire.InstallRequest{}, nil)
}

// Uninstall removes what dlwb has put on the node: ~/.dlwb with all runs and
// their logs, the authorized_keys line of the other nodes, and the given
// directories (relative to the home: "dlwb/CLUSTER"). It refuses while
// processes of a run are there: stop that first.
func (n *Node) Uninstall(ctx context.Context, dirs ...string) error {
	return n.Ask(ctx, wire.Uninstall, wire.UninstallRequest{Dirs: dirs}, nil)
}
