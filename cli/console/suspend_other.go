//go:build !unix

package console

import (
	"context"
	"os"
)

// CannotSuspend says why this program can't be put aside with Ctrl-Z.
func CannotSuspend() string { return "this system has no job control" }

// Continued has a value whenever this process goes on after it was stopped, which it
// never is on this system.
func Continued(context.Context) <-chan os.Signal { return nil }
