//go:build !race

package profiles

// raceFactor is how much slower the race detector makes the parser; it is off.
const raceFactor = 1
