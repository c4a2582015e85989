// Package trusttest gives tests trusted profiles. There is no switch in dlwb
// that turns the question off: a test trusts what it has written, in the state
// directory that its dlwb uses, as a user would.
package trusttest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/workbench/trust"
)

// Trust trusts every profile (*.yaml, *.yml) in a directory and below, as it is
// now. What can't be read as a profile stays untrusted: it is refused for that
// reason.
func Trust(state, dir string) {
	gate := trust.New(state)
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && path != dir && path == state:
			return fs.SkipDir
		case !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") || !d.Type().IsRegular():
			return nil
		}
		if s, err := gate.LookAt(context.Background(), path); err == nil && !s.Trusted {
			_ = gate.Trust(s)
		}
		return nil
	})
}

// TrustEnv is Trust for the state directory that a program with this
// environment uses.
func TrustEnv(env []string, dir string) {
	state := ""
	for _, v := range env { // the last one holds
		if value, is := strings.CutPrefix(v, "DLWB_HOME="); is {
			state = value
		}
	}
	if state == "" {
		panic("trusttest: the environment has no DLWB_HOME")
	}
	if _, err := os.Stat(dir); err == nil {
		Trust(state, dir)
	}
}
