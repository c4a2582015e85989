//go:build race

package profiles

// raceFactor is how much slower the race detector makes the parser.
const raceFactor = 15
