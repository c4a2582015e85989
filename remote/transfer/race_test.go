//go:build race

package transfer

// raceCosts is how many times the memory a program takes that the race detector
// looks into.
const raceCosts = 4
