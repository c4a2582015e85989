//go:build unix

package ownfile

import "testing"

func TestUserIsNamedWhereTheSystemKnowsTheName(t *testing.T) {
	if got := userName(0); got != "user root (0)" {
		t.Errorf("root is %q", got)
	}
	if got := userName(nobody); got != "user 61234" {
		t.Errorf("a stranger is %q", got)
	}
}
