package store

import (
	"errors"
	"math/rand/v2"
	"os"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"
)

// reserveSize is the room on the disk that is kept for a store that would not open for
// want of it: a teardown writes some ten kilobytes.
const reserveSize = 4 << 20

// reserveOf is the file that keeps the room.
func reserveOf(path string) string { return path + ".reserve" }

// keepReserve makes the reserve where there is none. A disk that has no room for it has
// none: the store is open all the same.
func keepReserve(path string) {
	name := reserveOf(path)
	if st, err := os.Lstat(name); err == nil && st.Size() >= reserveSize {
		return
	}
	room := make([]byte, reserveSize)
	noise := rand.NewChaCha8([32]byte{}) // what a file system compresses keeps no room
	_, _ = noise.Read(room)
	if err := os.WriteFile(name, room, 0o600); err != nil {
		_ = os.Remove(name)
	}
}

// giveReserve gives the room back to the disk, where a store did not open for want of it.
func giveReserve(path string, err error) bool {
	return noRoom(err) && os.Remove(reserveOf(path)) == nil
}

// noRoom reports whether err may be that the disk is full. SQLite has no code for a full
// disk where it maps a file; that is an error of input and output like others.
func noRoom(err error) bool {
	c := code(err)
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || c == sqlite3.SQLITE_FULL || c == sqlite3.SQLITE_IOERR
}
