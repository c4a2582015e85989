//go:build linux

package agent

import (
	"context"
	"fmt"
	"os"

	"github.com/dlwb/dlwb/remote/agent/intake"
	"github.com/dlwb/dlwb/remote/wire"
)

func syncDir(ctx context.Context, s *wire.Stream) error { return intake.Serve(ctx, home(), s) }
func takeDir(ctx context.Context, s *wire.Stream) error { return intake.Take(ctx, home(), s) }

func giveDir(ctx context.Context, r wire.ShareGive) (wire.ShareGiven, error) {
	return intake.Give(ctx, home(), r)
}

// passOn NAME PEER…: hands what another node sends to whoever waits for it here.
func passOn(args []string) int {
	if err := intake.Peer(home(), args, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "dlwb peer:", err)
		return exitAbsent
	}
	return 0
}
