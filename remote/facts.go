package remote

import (
	"context"

	"github.com/dlwb/dlwb/remote/wire"
)

// Facts tells what the node is, as far as it knows.
func (n *Node) Facts(ctx context.Context) (wire.NodeFacts, error) {
	var f wire.NodeFacts
	err := n.Ask(ctx, wire.Facts, wire.FactsRequest{}, &f)
	return f, err
}
