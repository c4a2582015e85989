//go:build unix

package testbed

import (
	"os"
	"syscall"
)

// lock waits until nobody else has the file; closing it gives it back.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
