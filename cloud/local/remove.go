//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/shellword"
)

// removeNodes removes the directories of all nodes.
func removeNodes(dir string, in intent) error {
	var failed error
	for i := range in.Count {
		failed = errors.Join(failed, removeTree(nodeDir(dir, i)), removeTemp(in.tempDir(i)))
	}
	return failed
}

// removeRest removes what is left in a cluster's directory, the intent last,
// and the directory itself.
func removeRest(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	var failed error
	for _, e := range entries {
		if e.Name() != intentFile {
			failed = errors.Join(failed, removeTree(filepath.Join(dir, e.Name())))
		}
	}
	if failed != nil {
		return failed
	}
	return removeTree(dir)
}

// removeTemp removes a node's temporary directory, if it is really the node's:
// its parent is open to everyone.
func removeTemp(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	if !isOwnDir(fi) {
		return fmt.Errorf("remove %s: it is not the directory that dlwb made there; look at it", path)
	}
	return removeTree(path)
}

// removeTree removes a file or a directory with all that is in it. It follows
// no link, and does not go into another file system: what is mounted there
// belongs to somebody else.
func removeTree(path string) error {
	mounts, err := mountsBelow(path)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("remove %s: %s is mounted there; unmount it first (umount %s)", path, mounts[0], shellword.Quote(mounts[0]))
	}
	if os.RemoveAll(path) == nil {
		return nil
	}
	if err := loosen(path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// loosen gives the owner all rights on every directory of a tree. It works
// below an os.Root, so that no link can lead it out.
func loosen(path string) error {
	fi, err := os.Lstat(path)
	if err != nil || !fi.IsDir() {
		return err
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	return loosenIn(root, ".")
}

func loosenIn(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	_ = d.Close()
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		below := filepath.Join(dir, e.Name())
		err = errors.Join(err, root.Chmod(below, 0o700), loosenIn(root, below))
	}
	return err
}

// countFiles lists everything at and below a path; nothing when it is not
// there.
func countFiles(path string) ([]string, error) {
	var left []string
	err := filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		left = append(left, p)
		return nil
	})
	if err != nil {
		return left, fmt.Errorf("look for what is left in %s: %w", path, err)
	}
	return left, nil
}

// usableInPath reports whether a directory can stand in PATH.
func usableInPath(dir string) bool { return !strings.ContainsAny(dir, ":\n") }
