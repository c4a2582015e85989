//go:build unix

package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nobody is a user other than the one who runs the tests.
const nobody = 61234

func make700(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDirectoryThatIsMissingIsMadeForTheUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := Check(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	if err := MakeDir(dir); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d, info.Mode(), err)
		}
	}
}

func TestDirectoryThatOthersCouldReadIsClosed(t *testing.T) {
	dir := make700(t, filepath.Join(t.TempDir(), "state"))
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(dir); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("it is %v", info.Mode())
	}
}

func TestWhatOthersCanChangeIsRefused(t *testing.T) {
	type place struct {
		name string
		lay  func(t *testing.T, root string) (asked string)
		says string
		root bool // only root can lay it out
	}
	chmod := func(t *testing.T, path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	chown := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Lchown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []place{
		{"one that all can write", func(t *testing.T, root string) string {
			d := make700(t, root+"/state")
			chmod(t, d, 0o777)
			return d
		}, "can be written by other users", false},
		{"one that all can write, with the sticky bit", func(t *testing.T, root string) string {
			d := make700(t, root+"/state")
			chmod(t, d, 0o777|os.ModeSticky)
			return d
		}, "can be written by other users", false},
		{"one that a group can write", func(t *testing.T, root string) string {
			d := make700(t, root+"/state")
			if err := os.Chown(d, -1, nobody); err != nil {
				t.Fatal(err)
			}
			chmod(t, d, 0o770)
			return d
		}, "can be written by other users", true},
		{"one below a directory that all can write", func(t *testing.T, root string) string {
			d := make700(t, root+"/open/state")
			chmod(t, root+"/open", 0o777)
			return d
		}, "open can be written by other users", false},
		{"a missing one below a directory that all can write", func(t *testing.T, root string) string {
			chmod(t, make700(t, root+"/open"), 0o777)
			return root + "/open/state"
		}, "open can be written by other users", false},
		{"a file that all can write", func(t *testing.T, root string) string {
			if err := os.WriteFile(root+"/file", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			chmod(t, root+"/file", 0o666)
			return root + "/file"
		}, "can be written by other users", false},
		{"a link to one that all can write", func(t *testing.T, root string) string {
			chmod(t, make700(t, root+"/real"), 0o777)
			if err := os.Symlink("real", root+"/state"); err != nil {
				t.Fatal(err)
			}
			return root + "/state"
		}, "can be written by other users", false},
		{"links in a circle", func(t *testing.T, root string) string {
			if err := os.Symlink("state", root+"/state"); err != nil {
				t.Fatal(err)
			}
			return root + "/state"
		}, "too many links", false},
		{"another user's directory", func(t *testing.T, root string) string {
			d := make700(t, root+"/state")
			chown(t, d)
			return d
		}, "belongs to user 61234", true},
		{"one below another user's directory", func(t *testing.T, root string) string {
			d := make700(t, root+"/theirs/state")
			chmod(t, root+"/theirs", 0o755)
			chown(t, root+"/theirs")
			return d
		}, "theirs belongs to user 61234", true},
		{"another user's link to a directory of one's own", func(t *testing.T, root string) string {
			make700(t, root+"/real")
			if err := os.Symlink("real", root+"/state"); err != nil {
				t.Fatal(err)
			}
			chown(t, root+"/state")
			return root + "/state"
		}, "is a link of user 61234", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && os.Getuid() != 0 {
				t.Skip("files of another user can only be made by root")
			}
			asked := c.lay(t, t.TempDir())
			before, _ := os.Stat(asked)
			var fault *Error
			if err := Check(asked); !errors.As(err, &fault) || !strings.Contains(err.Error(), c.says) || fault.Next == "" {
				t.Errorf("looked at: %v, want %q and what to do", err, c.says)
			}
			if err := MakeDir(asked); !errors.As(err, &fault) {
				t.Errorf("made: %v", err)
			}
			if after, _ := os.Stat(asked); before != nil && after.Mode() != before.Mode() || before == nil && after != nil {
				t.Errorf("it was changed from %v to %v", before, after)
			}
		})
	}
}

func TestLinkOfOnesOwnAndAStickyParentAreFine(t *testing.T) {
	root := t.TempDir()
	if err := os.Chmod(make700(t, root+"/shared"), 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	make700(t, root+"/shared/mine")
	if err := os.Symlink(root+"/shared/mine", root+"/state"); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(root + "/state"); err != nil {
		t.Error(err)
	}
}
