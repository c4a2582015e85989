//go:build unix

package workbench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/workbench/statedir"
)

func TestStateThatAnotherUserCanChangeIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		mode os.FileMode
	}{{"", 0o777}, {"", 0o777 | os.ModeSticky}, {"runs", 0o777}, {"keys", 0o777}, {"forwards", 0o777}, {"dlwb.sqlite", 0o666}} {
		dir := filepath.Join(t.TempDir(), "state")
		w, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, c.name)
		if c.name == "keys" || c.name == "forwards" {
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(at, c.mode); err != nil {
			t.Fatal(err)
		}
		w, err = Open(Options{Dir: dir})
		if err == nil {
			_ = w.Close()
			t.Errorf("%q with mode %o was opened", c.name, c.mode)
		} else if !strings.Contains(err.Error(), "can be written by other users") || !strings.Contains(err.Error(), "chmod go-w "+at) {
			t.Errorf("%q with mode %o: %v", c.name, c.mode, err)
		}
	}
}

func TestStateIsClosedToOtherUsers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAStateDirectoryThatCanNotBeMadeSaysWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if w, err := Open(Options{Dir: filepath.Join(file, "dlwb")}); err == nil {
		_ = w.Close()
		t.Error("it was opened")
	} else if !strings.Contains(err.Error(), "set DLWB_HOME") {
		t.Error(err)
	}
}

// With a relative one each directory had a state of its own: a cluster that goes on
// would be listed in the directory that it was started from, and nowhere else.
func TestAHomeThatIsNoAbsolutePathHoldsNoState(t *testing.T) {
	t.Setenv("DLWB_HOME", "")
	t.Setenv("XDG_STATE_HOME", "state")
	t.Setenv("HOME", "home")
	if dir, err := statedir.Default(); err == nil || !strings.Contains(err.Error(), "set DLWB_HOME") {
		t.Errorf("%q, %v", dir, err)
	}
}

// A project that is looked at could bring the directory that a relative one names, and
// in it the decision that it is trusted.
func TestAStateDirectoryIsNamedByAWholePath(t *testing.T) {
	for value, why := range map[string]string{"state": "relative", "./state": "relative", "../state": "relative", "~/state": "only a shell expands", "~": "only a shell expands"} {
		t.Setenv("DLWB_HOME", value)
		if dir, err := statedir.Default(); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "DLWB_HOME") {
			t.Errorf("DLWB_HOME=%s is %q, %v", value, dir, err)
		}
	}
	whole := t.TempDir()
	t.Setenv("DLWB_HOME", whole+"/a/../state//")
	if dir, err := statedir.Default(); err != nil || dir != filepath.Join(whole, "state") {
		t.Errorf("%q, %v", dir, err)
	}
}
