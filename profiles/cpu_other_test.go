//go:build !unix

package profiles

import "time"

var began = time.Now()

// worked is the time that has passed, where nobody tells the processor's.
func worked() time.Duration { return time.Since(began) }
