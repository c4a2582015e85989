package wholefile

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestReadersSeeTheOldContentOrTheNewOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	texts := []string{strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<16)}
	if err := Write(path, []byte(texts[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for _, text := range texts {
		writers.Go(func() {
			for range 20 {
				if err := Cache(path, []byte(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		if b, err := os.ReadFile(path); err != nil || string(b) != texts[0] && string(b) != texts[1] {
			t.Fatalf("%d bytes of a mixture, %v", len(b), err)
		}
	}
	writers.Wait()
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

func TestAFileThatCantBePlacedLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d things are left", len(left))
	}
}

func TestTheModeIsTheOneAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	for _, mode := range []os.FileMode{0o600, 0o755} {
		if err := Write(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%v, %v; want %v", info.Mode(), err, mode)
		}
	}
}
