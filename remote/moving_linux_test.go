package remote_test

import (
	"context"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
)

func init() {
	remote.Moving["pull"] = func(ctx context.Context, n *remote.Node, dir string) (int, error) {
		res, err := transfer.Pull(ctx, n, "code", []string{"out"}, dir, transfer.PullLimits{})
		return res.Files, err
	}
	remote.Moving["look"] = func(ctx context.Context, n *remote.Node, _ string) (int, error) {
		seen, err := transfer.Look(ctx, n, "code", []string{"out"})
		return seen.Len(), err
	}
	remote.Moving["put"] = func(ctx context.Context, n *remote.Node, dir string) (int, error) {
		return 0, transfer.Put(ctx, n, dir, "code", "aside")
	}
	remote.Moving["sync"] = func(ctx context.Context, n *remote.Node, dir string) (int, error) {
		tree, err := transfer.Scan(ctx, dir, transfer.Rules{})
		if err != nil {
			return 0, err
		}
		res, err := transfer.Sync(ctx, []*remote.Node{n}, tree, "code", nil)
		return res.Files, err
	}
}
