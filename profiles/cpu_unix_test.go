//go:build unix

package profiles

import (
	"syscall"
	"time"
)

// worked is the processor time that this process has had: what others do on
// the machine does not count.
func worked() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
