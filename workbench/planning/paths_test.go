package planning

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPathsAreWhatLiesInAProjectAndNothingBeyondIt(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"train.py", "scripts/tune.py", "a/b/c/deep.py", ".git/config", "__pycache__/x.pyc"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "secret.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got := Paths(dir)
	slices.Sort(got)
	if want := []string{"a/", "a/b/", "a/b/c/", "scripts/", "scripts/tune.py", "train.py"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Paths(filepath.Join(dir, "nowhere")); got != nil {
		t.Errorf("%q of a directory that is not there", got)
	}
}

func TestPathsOfAGreatDirectoryAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range mostPaths + 100 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("shard-", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(Paths(dir)); n != mostPaths {
		t.Errorf("%d paths, want %d", n, mostPaths)
	}
}
