//go:build unix

// Package cputime tells tests what they have worked: bounds of the clock break
// when others have the processor.
package cputime

import (
	"syscall"
	"time"
)

// Worked is the processor time that this process has had.
func Worked() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
