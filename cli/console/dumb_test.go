//go:build unix

package console

import "testing"

func TestATerminalOfWhichNothingIsKnownGetsNoEscapes(t *testing.T) {
	for name, dumb := range map[string]bool{"dumb": true, "": true, "xterm": false, "linux": false} {
		t.Setenv("TERM", name)
		if Dumb() != dumb {
			t.Errorf("TERM=%q: %v", name, Dumb())
		}
	}
}
