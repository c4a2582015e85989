package ownimage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// room is a private directory of this machine for the making of one image: what is built
// from, and the password of the registry for as long as something is pulled or pushed.
type room struct {
	dir  string
	lock *flock.Flock
}

// roomName is how rooms are called below the directory for temporary files.
const roomName = "dlwb-image-"

// young is the age up to which a room without a holder may be about to get one.
const young = time.Minute

// newRoom makes a room, and removes those of dlwbs that were killed: who lives has a lock
// in its own.
func newRoom() (*room, error) {
	sweep(os.TempDir())
	dir, err := os.MkdirTemp("", roomName)
	if err != nil {
		return nil, &Error{Why: "there is no room for the making of the image: " + err.Error(), Next: "make room there, or set TMPDIR to another place"}
	}
	r := &room{dir: dir, lock: flock.New(filepath.Join(dir, "lock"))}
	_, err = r.lock.TryLock()
	if err := errors.Join(err, os.Mkdir(r.context(), 0o700), os.Mkdir(r.login(), 0o700)); err != nil {
		r.remove()
		return nil, err
	}
	return r, nil
}

// sweep removes the rooms below a directory in which nobody lives. Those of other users
// can't be entered.
func sweep(below string) {
	all, _ := fs.Glob(os.DirFS(below), roomName+"*")
	for _, name := range all {
		dir := filepath.Join(below, name)
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < young {
			continue
		}
		lock := flock.New(filepath.Join(dir, "lock"))
		if free, err := lock.TryLock(); err == nil && free {
			_ = os.RemoveAll(dir)
			_ = lock.Close()
		}
	}
}

func (r *room) context() string    { return filepath.Join(r.dir, "context") }
func (r *room) dockerfile() string { return filepath.Join(r.dir, "Dockerfile") }

// login is the directory of docker's settings with the password in them, authFile the
// file that podman has it in, and digestFile where it writes what it pushed.
func (r *room) login() string      { return filepath.Join(r.dir, "login") }
func (r *room) authFile() string   { return filepath.Join(r.login(), "config.json") }
func (r *room) digestFile() string { return filepath.Join(r.dir, "digest") }

// logout removes the password.
func (r *room) logout() { _ = os.Remove(r.authFile()) }

func (r *room) remove() {
	_ = os.RemoveAll(r.dir)
	_ = r.lock.Close()
}
