//go:build !race

package transfer

const raceCosts = 1
