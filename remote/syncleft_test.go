//go:build unix

package remote

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// halfDone is what applies of this node's have not put in its place.
func halfDone(n *shellNode) []string {
	found, _ := filepath.Glob(filepath.Join(n.home, ".dlwb/sync/*/new.*"))
	return found
}

// One that was killed removes nothing itself; one on another machine with the
// same home may be at work.
func TestWhatAKilledSyncHasLeftGoesWithALaterOne(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
	writeFiles(t, dir, map[string]string{"a": "1"})
	syncTest(t, dir, n)
	if found := halfDone(n); len(found) != 0 {
		t.Errorf("%q is left of a sync that has ended", found)
	}
	states, err := filepath.Glob(filepath.Join(n.home, ".dlwb/sync/*"))
	if err != nil || len(states) != 1 {
		t.Fatalf("%q %v", states, err)
	}
	for name, age := range map[string]time.Duration{"new.1": 49 * time.Hour, "new.2": time.Hour} {
		left := filepath.Join(states[0], name)
		writeFiles(t, left, map[string]string{"seen": "half"})
		then := time.Now().Add(-age)
		check(t, os.Chtimes(left, then, then))
	}
	writeFiles(t, dir, map[string]string{"a": "22"})
	syncTest(t, dir, n)
	if found := halfDone(n); len(found) != 1 || filepath.Base(found[0]) != "new.2" {
		t.Errorf("%q is left", found)
	}
}
