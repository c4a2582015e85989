package atnode

import (
	"context"
	"fmt"
	"net"

	"github.com/dlwb/dlwb/cloud"
)

// Way is how a node is reached that TCP does not lead to; nil where it does.
func Way(c cloud.Cluster, n cloud.Node, provider func(kind string) (cloud.Provider, error)) func(context.Context) (net.Conn, error) {
	if n.Way == "" || n.Way == cloud.ByOwnSSH {
		return nil
	}
	return func(ctx context.Context) (net.Conn, error) {
		p, err := provider(c.Provider)
		if err != nil {
			return nil, err
		}
		by, can := p.(cloud.Reacher)
		if !can {
			return nil, fmt.Errorf("the provider of cluster %s knows no way %q", c.Name, n.Way)
		}
		return by.Reach(ctx, c, n)
	}
}
