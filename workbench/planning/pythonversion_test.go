package planning

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

// A file that uv and pyenv read, and dlwb does not follow, is told.
func TestAPythonThatTheProjectAsksForAndTheProfileDoesNotIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		file, profile string
		warns         bool
	}{
		"a version":                  {"3.12\n", "environment: {venv: requirements.txt}\n", true},
		"several":                    {"3.12.1\r\n3.11.4\r\n", "environment: system\n", true},
		"the profile asks, too":      {"3.12\n", "environment: {venv: requirements.txt, python: '3.11'}\n", false},
		"a name of pyenv's":          {"lab\n", "environment: {venv: requirements.txt}\n", false},
		"no file":                    {"", "environment: {venv: requirements.txt}\n", false},
		"an image has its own":       {"3.12\n", "environment: {docker: pytorch/pytorch}\n", false},
		"conda reads its own file":   {"3.12\n", "environment: {conda: lab}\n", false},
		"jobs have that of an image": {"3.12\n", "provider: kubernetes\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "dlwb.yaml")
			if err := os.WriteFile(path, []byte(c.profile+"run: {command: train.py}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if c.file != "" {
				if err := os.WriteFile(filepath.Join(dir, ".python-version"), []byte(c.file), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p, err := profiles.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(pythonWarnings(p), "\n")
			if c.warns != strings.Contains(got, "environment.python: \"3.12") || !c.warns && got != "" {
				t.Errorf("%q", got)
			}
		})
	}
}
