//go:build !unix

// Package cputime tells tests what they have worked.
package cputime

import "time"

var began = time.Now()

// Worked is the time that has passed, where nobody tells the processor's.
func Worked() time.Duration { return time.Since(began) }
