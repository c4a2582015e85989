//go:build unix

package fakeecr

import (
	_ "embed" // the program
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/testprogram"
)

//go:embed docker.py
var program string

// answers answers the questions whether it is there, without waiting for a Python.
const answers = `#!/bin/sh
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
case $1 in
version | info | --version) [ -e "$here/does-$1" ] || { echo "Docker version 27.0"; exit; } ;;
esac
exec python3 "$here/docker.py" "$@"
`

// Docker is a program of tests in place of docker: it builds nothing, and pushes a
// manifest that names all that it was to build from.
type Docker struct {
	Dir string // where it is
	log string
}

// NewDocker makes one.
func NewDocker(t testing.TB) *Docker {
	t.Helper()
	d := &Docker{Dir: t.TempDir()}
	d.log = filepath.Join(d.Dir, "calls")
	for name, text := range map[string]string{"docker": answers, "docker.py": program} {
		if err := testprogram.Write(filepath.Join(d.Dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// Path is a PATH that begins with the directory of the program.
func (d *Docker) Path() string { return d.Dir + ":" + os.Getenv("PATH") }

// Does sets what the program does at one of its commands in place of that: prints a text
// and fails; or, with "sleep", waits with a child until it is ended.
func (d *Docker) Does(t testing.TB, command, what string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.Dir, "does-"+command), []byte(what), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Calls are its command lines but for questions, each in a line, with what of the context
// it was given and of its settings behind them.
func (d *Docker) Calls(command string) (all []string) {
	text, _ := os.ReadFile(d.log)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, command+" ") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}
