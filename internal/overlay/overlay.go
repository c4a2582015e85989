// Package overlay builds dlwb with files of a test laid over the repository: a
// provider or an engine that only tests have.
package overlay

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Edit is what is changed in one file: texts that stand there once, and what
// comes in their place.
type Edit struct {
	File    string
	Changes map[string]string
}

// Build builds dlwb with new and changed files laid over the repository, and
// gives the path of the program. Paths are those in the repository.
func Build(t testing.TB, files []map[string]string, edits ...Edit) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "dlwb")
	build := exec.Command("go", "build", "-overlay", lay(t, files, edits), "-o", program, ".")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func lay(t testing.TB, files []map[string]string, edits []Edit) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	put := func(rel, text string) {
		path := filepath.Join(dir, strings.ReplaceAll(rel, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, rel)] = path
	}
	for _, set := range files {
		for rel, text := range set {
			put(rel, text)
		}
	}
	for _, e := range edits {
		text, err := os.ReadFile(filepath.Join(root, e.File))
		if err != nil {
			t.Fatal(err)
		}
		changed := string(text)
		for old, with := range e.Changes {
			if strings.Count(changed, old) != 1 {
				t.Fatalf("%s has %q %d times", e.File, old, strings.Count(changed, old))
			}
			changed = strings.Replace(changed, old, with, 1)
		}
		put(e.File, changed)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
