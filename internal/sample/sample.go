// Package sample keeps make test short enough to wait for. Of long matrices a test runs
// a part that still holds the rule, and make test-long the whole. Stories that take long
// are left to make test-stories; RACE=1 make test, which has to pass before anything
// lands, plays them too.
package sample

import (
	"os"
	"testing"
)

// IsWhole reports whether tests play all of what they have.
func IsWhole() bool { return os.Getenv("DLWB_LONG") != "" }

// IsLight reports whether this is a make test that nobody asked for more
// (internal/tools/test.sh). A test that is named to go test runs.
func IsLight() bool { return os.Getenv("DLWB_LIGHT") != "" && !IsWhole() }

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

// Part gives how much a test does: all, or in a light make test some of it.
func Part(t testing.TB, some, all int, what string) int {
	t.Helper()
	if !IsLight() {
		return all
	}
	t.Logf("a part: %d instead of %d %s; make test-stories runs all", some, all, what)
	return some
}

// Leave leaves a test to make test-stories where make test is light.
// internal/tools/test.sh counts the tests that call it.
func Leave(t testing.TB) {
	t.Helper()
	if IsLight() {
		t.Skip("NOT RUN: make test-stories runs it, and so does RACE=1 make test")
	}
}
