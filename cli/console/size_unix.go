//go:build unix

package console

import (
	"os"
	"os/signal"
	"syscall"
)

// SizeChanges tells that the terminal may have another size.
func SizeChanges() (<-chan os.Signal, func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	return changed, func() { signal.Stop(changed) }
}
