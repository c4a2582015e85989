//go:build !race

package remote

const raceCosts = 1
