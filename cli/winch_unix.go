//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// sizeChanges tells that the terminal may have another size.
func sizeChanges() (<-chan os.Signal, func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	return changed, func() { signal.Stop(changed) }
}
