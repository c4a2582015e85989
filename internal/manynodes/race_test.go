//go:build race

package manynodes

// raced is whether the race detector looks on.
const raced = true
