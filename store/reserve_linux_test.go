package store

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A disk on which no byte is free opens the store all the same, once: what costs money
// is on record there, and has to be removed.
func TestAStoreOpensOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size=16m"); err != nil {
		t.Skipf("a small disk can't be mounted (that needs root): %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path := filepath.Join(dir, "dlwb.sqlite")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(dir, "filler"))
	s, err = Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.BeginCluster(Cluster{Name: "a"}); err != nil {
		t.Errorf("it can't be written: %v", err)
	}
	_ = s.Close()

	// Where there is nothing to give up, the disk is named.
	fill(t, filepath.Join(dir, "more"))
	if _, err = Open(path); err == nil {
		t.Fatal("it opens without any room")
	}
	if text := err.Error(); !strings.Contains(text, "disk") {
		t.Errorf("what to do is not said: %v", err)
	}
	if _, err = Open(filepath.Join(dir, "new", "dlwb.sqlite")); err == nil || !strings.Contains(err.Error(), "free some disk space") || strings.Contains(err.Error(), "writable") {
		t.Errorf("a new one: %v", err)
	}
	for _, name := range []string{"filler", "more"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if s, err = Open(path); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if st, err := os.Stat(reserveOf(path)); err != nil || st.Size() != reserveSize {
		t.Errorf("the room is not kept again: %v", err)
	}
}

// fill writes until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
