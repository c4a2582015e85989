//go:build unix

package apart

import (
	"context"
	"os/exec"
)

// guard starts a program beside itself and waits for the end of its own input. Then it
// interrupts the program, and kills it where that is not enough: all by their process
// group, whose number is nobody else's while one of them lives. A program that is told to
// ignore interrupts from its start hears of them when it asks for them, as one in Go does.
const guard = `trap '' INT; "$@" </dev/null & exec >/dev/null 2>&1; cat; kill -INT 0; sleep 2; kill -KILL 0`

// Guarded is the command that runs a program apart, whose output ends with the program's.
// Where its input ends the program is interrupted, and killed when that does not end it:
// so it also ends when this process was killed and could end nothing.
func Guarded(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", guard, "sh"}, argv...)...)
	Set(cmd)
	return cmd
}
