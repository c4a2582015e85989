//go:build linux

// Package printed tells whether all that a program has printed was taken out of its
// pipe or terminal. The end of that does not come where the program has left something
// running, which holds it.
package printed

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Reader reads what a program prints. One goroutine reads; others may ask.
type Reader struct {
	from *os.File
	raw  syscall.RawConn // nil: whether anything waits there can't be told
	most int             // what may still come when the program has ended

	mu    sync.Mutex
	over  bool // nothing comes any more
	idle  bool // what was read is taken, and there was nothing more
	size  int  // how much was read
	atEnd int  // how much of it before the program's end
}

// From makes a reader of a pipe or a terminal as package os opens them, which may hold
// room bytes, and of which at most piece bytes are read at once.
func From(f *os.File, room, piece int) *Reader {
	r := &Reader{from: f, most: room + piece}
	if f.SetReadDeadline(time.Time{}) == nil { // else a read would hold up who asks
		r.raw, _ = f.SyscallConn()
	}
	return r
}

// Read reads as from the file. Whoever calls it again has taken what it gave before.
func (r *Reader) Read(to []byte) (n int, err error) {
	if r.raw == nil {
		n, err = r.from.Read(to)
	} else {
		n, err = r.read(to)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = err != nil; r.raw == nil {
		r.size += n
	}
	return n, err
}

// read reads, and takes note of it in one: who asked in between would hear that nothing
// is there, and nothing on its way.
func (r *Reader) read(to []byte) (n int, err error) {
	var failed error
	err = r.raw.Read(func(fd uintptr) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for {
			if n, failed = unix.Read(int(fd), to); !errors.Is(failed, unix.EINTR) {
				break
			}
		}
		if r.idle = errors.Is(failed, unix.EAGAIN); r.idle {
			return false // until there is more
		}
		n = max(n, 0)
		r.size += n
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, &os.PathError{Op: "read", Path: r.from.Name(), Err: failed}
	case n == 0 && len(to) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Ended takes note that the program has ended.
func (r *Reader) Ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.atEnd = r.size
}

// MayBring reports, behind Ended, whether something of what the program itself has
// printed may not have been taken yet.
func (r *Reader) MayBring() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.over && r.size-r.atEnd < r.most && !(r.idle && r.isEmpty())
}

// isEmpty reports whether there is nothing to read now. That it is waited for does not
// say so: on a busy machine who waits may not have had its turn.
func (r *Reader) isEmpty() bool {
	there := 0
	_ = r.raw.Control(func(fd uintptr) { there, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return there == 0
}
