//go:build race

package cli

// raced is whether the race detector looks on.
const raced = true
