//go:build !unix

package console

import "time"

// SizeChanges tells that the terminal may have another size: here no signal
// says so, and it is looked at again and again.
func SizeChanges() (<-chan time.Time, func()) {
	tick := time.NewTicker(500 * time.Millisecond)
	return tick.C, tick.Stop
}
