//go:build !unix

package apart

import (
	"context"
	"os/exec"
)

// Guarded is the command that runs a program. Nothing ends it here when this process is
// killed.
func Guarded(ctx context.Context, argv []string) *exec.Cmd {
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}
