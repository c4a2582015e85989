package objects

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// All below an address comes, under its own names, and what can't have a file here is
// named; nothing there is no error.
func TestAllBelowAnAddressIsBrought(t *testing.T) {
	address, _ := server(t)
	lay(t, open(t, address), "run/a.csv", "run/deep/b c+ü.csv", "run/dir/", "run/both", "run/both/x", "run//twice", "run/../out", "running/other")
	dir := t.TempDir()
	into, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	left, err := open(t, address+"/run").Bring(t.Context(), into)
	slices.Sort(left)
	if err != nil || len(left) != 3 || !strings.HasPrefix(left[0], "lab/run/../out: ") || !strings.HasPrefix(left[2], "lab/run/both: ") {
		t.Errorf("%q %v", left, err)
	}
	for _, name := range []string{"a.csv", "deep/b c+ü.csv", "both/x"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "run/"+name {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	if left, err := open(t, address+"/none").Bring(t.Context(), into); err != nil || len(left) != 0 {
		t.Errorf("%q %v", left, err)
	}
}

// More than a disk should take is left there, and said; the rest comes.
func TestMoreThanThereIsRoomForIsLeft(t *testing.T) {
	address, _ := server(t)
	lay(t, open(t, address), "run/a", "run/b-is-longer", "run/c")
	was := mostBytes
	mostBytes = 12
	defer func() { mostBytes = was }()
	dir := t.TempDir()
	into, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	left, err := open(t, address+"/run").Bring(t.Context(), into)
	if err != nil || len(left) != 1 || !strings.Contains(left[0], "b-is-longer: with it there are more than") {
		t.Errorf("%q %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "c")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "b-is-longer")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
