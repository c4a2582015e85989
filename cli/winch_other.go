//go:build !unix

package cli

import "time"

// sizeChanges tells that the terminal may have another size: here no signal
// says so, and it is looked at again and again.
func sizeChanges() (<-chan time.Time, func()) {
	tick := time.NewTicker(500 * time.Millisecond)
	return tick.C, tick.Stop
}
