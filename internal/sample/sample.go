// Package sample keeps long matrices of tests short: make test runs a part of each
// that still holds its rule, make test-long the whole.
package sample

import (
	"os"
	"testing"
)

// IsWhole reports whether tests play all of what they have.
func IsWhole() bool { return os.Getenv("DLWB_LONG") != "" }

// Of gives how much a test does: all, or in make test only some, which the test's
// log says. internal/tools/long.sh finds the tests that call it.
func Of(t testing.TB, some, all int, what string) int {
	t.Helper()
	if IsWhole() {
		return all
	}
	t.Logf("a sample: %d instead of %d %s; make test-long runs all", some, all, what)
	return some
}
