//go:build linux

package outlet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"syscall"

	"github.com/dlwb/dlwb/remote/wire"
)

// Aside moves things to where they belong: see wire.AsideRequest. Done twice, it
// does nothing the second time.
func Aside(_ context.Context, r wire.AsideRequest) (a wire.AsideAnswer, err error) {
	dir, err := dirOf(r.Dir)
	if err != nil {
		return a, err
	}
	aside, err := dirOf(r.Aside)
	if err != nil {
		return a, err
	}
	for _, name := range r.Names {
		if err := makeWay(dir, aside, name); err != nil {
			return a, err
		}
	}
	if r.Stage == "" {
		return a, nil
	}
	stage, err := stageOf(r.Dir, r.Stage)
	switch {
	case err != nil:
	case r.Drop:
		err = drop(stage)
	default:
		err = unstage(stage, dir, aside)
	}
	return a, err
}

// unstage puts everything of a stage in its place.
func unstage(stage, dir, aside string) error {
	whole := filepath.Join(stage, wire.StageWhole)
	entries, err := os.ReadDir(whole)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was done before
	}
	for _, e := range entries {
		if err = makeWay(dir, aside, e.Name()); err == nil {
			err = os.Rename(filepath.Join(whole, e.Name()), filepath.Join(dir, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(err, os.RemoveAll(stage))
}

// makeWay moves one thing of a directory to another one.
func makeWay(dir, aside, name string) error {
	if !isName(name) {
		return wire.Faultf(wire.Wrong, "%.60q is no name of a thing in a directory", name)
	}
	from := filepath.Join(dir, name)
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(aside, 0o755); err != nil {
		return err
	}
	to := filepath.Join(aside, name)
	for n := 2; exists(to); n++ {
		to = filepath.Join(aside, fmt.Sprintf("%s.%d", name, n))
	}
	return move(from, to)
}

// isName reports whether a name is that of one thing in a directory.
func isName(name string) bool {
	return name != "." && filepath.IsLocal(name) && path.Base(name) == name
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// move renames. Where the two are on different disks, mv copies, with all that a
// file has.
func move(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	if said, mvErr := exec.Command("mv", "--", from, to).CombinedOutput(); mvErr != nil {
		return fmt.Errorf("%w; mv says: %.200s", err, said)
	}
	return nil
}
