package store

import (
	"database/sql"
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNotFound is what is returned, wrapped, for a cluster, run, entry or point
// that is not there.
var ErrNotFound = errors.New("not found")

// ErrLive is what BeginCluster returns, wrapped, when the name is taken by a
// cluster that has not ended.
var ErrLive = errors.New("a cluster of this name has not ended")

var errForeign = errors.New("this is an SQLite file of another program")

// VersionError says that the file was written by a newer dlwb.
type VersionError struct{ Have, Known int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("its schema is version %d, this dlwb knows up to %d", e.Have, e.Known)
}

// Error is a failure of the store for a person to read: what was tried, on
// which file, why it failed, and what to do next.
type Error struct {
	What, Path string
	Err        error
	Next       string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("store %s: %s: %v", e.Path, e.What, e.Err)
	if e.Next != "" {
		s += "; " + e.Next
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail puts what was tried, the file and the way out around err.
func (s *Store) fail(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return &Error{What: what, Path: s.path, Err: err, Next: next(err)}
}

func next(err error) string {
	var version *VersionError
	switch {
	case errors.As(err, &version):
		return "use the newer dlwb that wrote it"
	case errors.Is(err, errForeign):
		return "move it away"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some disk space"
	}
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		return "free some disk space; what was stored before is safe"
	case sqlite3.SQLITE_IOERR:
		return "look at the disk: the system could not read or write the file, as when there is no room (df -h says); what was stored before is safe"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Sprintf("another program holds it for longer than %s; try again", busyTimeout)
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return "move the file away to begin with an empty one, and keep it: it knows what was made; dlwb gc then finds what is left in the cloud"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return "make the file and its directory writable for you"
	}
	return ""
}

// code is SQLite's primary result code; extended codes keep it in the low byte.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

func isBusy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// breaks reports whether err is a broken constraint of one kind.
func breaks(err error, constraint int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == constraint
}

// isTaken reports whether err is a broken UNIQUE constraint.
func isTaken(err error) bool { return breaks(err, sqlite3.SQLITE_CONSTRAINT_UNIQUE) }

// isOrphan reports whether err is a broken foreign key.
func isOrphan(err error) bool { return breaks(err, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY) }
