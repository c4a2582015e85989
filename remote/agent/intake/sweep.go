//go:build linux

package intake

import (
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stageAge and partAge are from when on what a crash has left is removed,
	// where nobody can tell whether its owner is alive.
	stageAge = 12 * time.Hour
	partAge  = 14 * 24 * time.Hour
)

// sweep removes what crashes have left in a code directory.
func sweep(code *os.Root) {
	for _, name := range namesIn(code, ".") {
		if len(name) > len(stagePrefix) && name[:len(stagePrefix)] == stagePrefix {
			removeAbandoned(code, name)
		}
	}
	for _, name := range namesIn(code, largeDir) {
		if info, err := code.Lstat(path.Join(largeDir, name)); err == nil && time.Since(info.ModTime()) > partAge {
			_ = code.Remove(path.Join(largeDir, name))
		}
	}
}

// removeAbandoned removes a stage that nobody holds any more. It holds it meanwhile,
// and looks whether it still is the one of that name: two may sweep at a time.
func removeAbandoned(code *os.Root, name string) {
	f, err := code.Open(name)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.IsDir() || !abandoned(f, info) {
		return
	}
	if there, err := code.Stat(name); err == nil && os.SameFile(info, there) {
		_ = code.RemoveAll(name)
	}
}

// abandoned reports whether nobody holds a stage, and takes hold of it.
func abandoned(f *os.File, info os.FileInfo) bool {
	old := time.Since(info.ModTime()) > stageAge
	if strings.HasSuffix(f.Name(), newSuffix) {
		return old
	}
	switch unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) {
	case nil:
		return true
	case unix.EWOULDBLOCK:
		return false
	}
	return old // there are no locks on this disk
}
