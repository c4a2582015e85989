//go:build !race

package manynodes

const raced = false
