//go:build race

package ui_test

import "testing"

// drawsOnly leaves a test that draws thousands of frames, one after the other, to
// the part of make test that is without the race detector.
func drawsOnly(t *testing.T) {
	t.Helper()
	t.Skip("it only draws: make test runs it by itself, without -race")
}
