//go:build linux

package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// Another node may say where MPI's daemon lies, and can put files into the home.
func TestADaemonIsOneThatNoOtherNodeCanHavePutThere(t *testing.T) {
	dir := t.TempDir()
	home, bin, opt, open := filepath.Join(dir, "home"), filepath.Join(dir, "bin"), filepath.Join(dir, "opt"), filepath.Join(dir, "open")
	code := filepath.Join(home, "dlwb", "c", "code")
	env := filepath.Join(home, ".dlwb", "env", "bin")
	for _, d := range []string{bin, opt, open, code, env} {
		if err := errors.Join(os.MkdirAll(d, 0o755), testprogram.Write(filepath.Join(d, "orted"), []byte("#!/bin/sh\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(filepath.Join(code, "orted"), filepath.Join(opt, "prted")), os.Chmod(filepath.Join(open, "orted"), 0o777),
		os.WriteFile(filepath.Join(opt, "away"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", bin+":"+env)
	t.Chdir(code)
	for told, want := range map[string]string{
		"orted":                             filepath.Join(bin, "orted"),
		bin + "/orted":                      filepath.Join(bin, "orted"),
		env + "/orted":                      filepath.Join(env, "orted"),
		opt + "/orted":                      filepath.Join(opt, "orted"),
		dir + "/gone/orted":                 filepath.Join(bin, "orted"), // node 0 has it elsewhere
		code + "/orted":                     "",
		"./orted":                           "",
		opt + "/prted":                      "", // leads into the home
		open + "/orted":                     "", // anybody can change it
		dir + "/gone/prted":                 "",
		home + "/../home/dlwb/c/code/orted": "",
	} {
		got, err := ownDaemon(told)
		if err != nil {
			got = ""
		}
		if got != want {
			t.Errorf("%s: got %q, %v, want %q", told, got, err, want)
		}
	}
}
