package inputs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

// A data set, or a file, that is named by a link is what the link leads to: a change
// there is a change.
func TestTheIdentityOfWhatALinkLeadsTo(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "v1", "train.csv")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("1,2\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	of := func(path string) string {
		id, err := Identity([]Channel{{Channel: profiles.Channel{Name: "train", From: "data"}, Path: path}})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	links := map[string]string{"dir": filepath.Dir(file), "file": file, "again": filepath.Join(dir, "dir")}
	before := map[string]string{}
	for _, name := range []string{"dir", "file", "again"} {
		at := filepath.Join(dir, name)
		if err := os.Symlink(links[name], at); err != nil {
			t.Fatal(err)
		}
		if before[name] = of(at); before[name] != of(links[name]) {
			t.Errorf("%s: the data are not those that it leads to", name)
		}
	}
	if err := os.WriteFile(file, []byte("1,2\n3,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, was := range before {
		if of(filepath.Join(dir, name)) == was {
			t.Errorf("%s: what it leads to has changed, and its identity has not", name)
		}
	}
	if _, err := Identity([]Channel{{Path: filepath.Join(dir, "none")}}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
