//go:build linux

package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What says that somebody leaves, and can't be removed, keeps nobody for ever: a disk may
// have become one that is only read.
func TestWhoLeavesDoesNotWaitForEver(t *testing.T) {
	h := &Host{Home: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(h.at(leavingFile), "stuck"), 0o700); err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		h.leave("life", 200*time.Millisecond)()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(30 * time.Second):
		t.Error("it waits still")
	}
}
