//go:build !race

package wire

const raceCosts = 1
