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
	held, release := hold(code)
	defer release()
	for _, name := range namesIn(code, ".") {
		if len(name) > len(stagePrefix) && name[:len(stagePrefix)] == stagePrefix {
			removeAbandoned(code, name, held)
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
func removeAbandoned(code *os.Root, name string, held bool) {
	f, err := code.Open(name)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.IsDir() || !abandoned(f, info, held) {
		return
	}
	if there, err := code.Stat(name); err == nil && os.SameFile(info, there) {
		_ = code.RemoveAll(name)
	}
}

// abandoned reports whether nobody holds a stage, and takes hold of it. held says that
// nobody is just making one.
func abandoned(f *os.File, info os.FileInfo, held bool) bool {
	old := time.Since(info.ModTime()) > stageAge
	if strings.HasSuffix(f.Name(), newSuffix) && !(held && strings.HasSuffix(f.Name(), heldSuffix)) {
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

// holdMost is how long the lock of a code directory is waited for.
const holdMost = 10 * time.Second

// hold takes the lock of a code directory, for as long as a stage is made or abandoned
// ones are removed, and gives what lets go of it. Where a file system has no locks, or
// somebody hangs who has this one, it is not held.
func hold(code *os.Root) (held bool, release func()) {
	f, err := code.Open(".")
	if err != nil {
		return false, func() {}
	}
	release = func() { _ = f.Close() }
	for end := time.Now().Add(holdMost); ; time.Sleep(time.Millisecond) {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return true, release
		case err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(end):
			return false, release
		}
	}
}
