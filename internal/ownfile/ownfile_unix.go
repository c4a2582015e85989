//go:build unix

package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// mostLinks bounds how many symbolic links are followed, as the kernel does.
const mostLinks = 40

// MakeDir makes a directory that is the user's alone, 0700, where there is none.
// One that is there must pass Check; if others could read it, they can't any
// more.
func MakeDir(path string) error {
	if err := Check(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if err := Check(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return &Error{path, path, "is not a directory", "move it away, or name another directory"}
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(path, 0o700)
	}
	return nil
}

// Check returns an *Error when somebody else can change what lies at path, and
// fs.ErrNotExist when nothing lies there and nobody else could put something
// there.
func Check(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	return (&walk{asked: abs, links: mostLinks}).to(abs)
}

// walk goes down to a path and looks at everything on the way.
type walk struct {
	asked string
	links int // that may still be followed
}

func (w *walk) to(path string) error {
	rest := strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	if rest[0] == "" {
		rest = nil
	}
	at := "/"
	for {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return w.follow(at, info, rest)
		}
		if len(rest) == 0 {
			return w.end(at, info)
		}
		if err := w.parent(at, info); err != nil {
			return err
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
	}
}

// follow goes on where a link leads.
func (w *walk) follow(at string, info fs.FileInfo, rest []string) error {
	if owner := ownerOf(info); !trusted(owner) {
		return w.fault(at, "is a link of "+userName(owner), "name the place itself, or remove the link")
	}
	if w.links--; w.links < 0 {
		return w.fault(at, "leads through too many links", "name the place itself")
	}
	target, err := os.Readlink(at)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(at), target)
	}
	return w.to(filepath.Join(append([]string{target}, rest...)...))
}

// parent looks at a directory on the way.
func (w *walk) parent(at string, info fs.FileInfo) error {
	if owner := ownerOf(info); !trusted(owner) && !unmapped(owner) {
		return w.fault(at, "belongs to "+userName(owner), "name a place below a directory of yours or of root's")
	}
	if info.Mode()&fs.ModeSticky == 0 && writableByOthers(info) {
		return w.fault(at, "can be written by other users", "chmod go-w "+at+", or name another place")
	}
	return nil
}

// end looks at the path itself, links followed.
func (w *walk) end(at string, info fs.FileInfo) error {
	if owner := ownerOf(info); owner != os.Geteuid() {
		return w.fault(at, "belongs to "+userName(owner)+", and this is "+userName(os.Geteuid()), "name another place, or run as its owner")
	}
	if writableByOthers(info) {
		return w.fault(at, "can be written by other users", "look at what lies there, then chmod go-w "+at)
	}
	return nil
}

func (w *walk) fault(at, why, next string) error { return &Error{w.asked, at, why, next} }

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// trusted are the owners who could do anything anyway.
func trusted(uid int) bool { return uid == 0 || uid == os.Geteuid() }

// unmapped reports whether an owner is one that this user namespace has no
// number for: in a container without root that is what the real root is shown
// as, who owns / and /home.
func unmapped(uid int) bool {
	const whole = "0 0 4294967295"
	maps, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || strings.Join(strings.Fields(string(maps)), " ") == whole {
		return false
	}
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	return err == nil && strings.TrimSpace(string(overflow)) == strconv.Itoa(uid)
}

// writableByOthers leaves out a group that is its owner's alone: where umask is
// 002, everything that a user makes is writable by a group of the same name.
func writableByOthers(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	return mode&0o002 != 0 || mode&0o020 != 0 && !privateGroup(int(info.Sys().(*syscall.Stat_t).Gid))
}

// privateGroup reports whether a group is this user's own: it has the user's
// name, and is the one that the user logs in with.
func privateGroup(gid int) bool {
	me, err := user.Current()
	if err != nil || me.Gid != strconv.Itoa(gid) {
		return false
	}
	group, err := user.LookupGroupId(me.Gid)
	return err == nil && group.Name == me.Username
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("user %s (%d)", u.Username, uid)
	}
	return fmt.Sprintf("user %d", uid)
}
