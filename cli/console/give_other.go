//go:build !unix

package console

import (
	"os"
	"os/exec"
	"os/signal"
)

// hand leaves Ctrl-C to a program that shares the console with this process.
func hand(*exec.Cmd, *os.File) (back func()) {
	signal.Ignore(os.Interrupt)
	return func() { signal.Reset(os.Interrupt) }
}
