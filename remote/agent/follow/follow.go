//go:build linux

// Package follow reads a file, or a log in numbered segments, from an offset on
// as it grows: nothing is left out unsaid, nothing comes twice.
package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// ChunkMost is the most that is handed over at once.
	ChunkMost = 64 << 10
	// gatherFor is how long more is waited for behind a piece that was small: a
	// training that prints word by word costs little.
	gatherFor = 5 * time.Millisecond
	// A file is looked at this often, from soon after something came to when it
	// has been silent for a while.
	pollLeast = 20 * time.Millisecond
	pollMost  = 250 * time.Millisecond
	// pollWatched is how often where the system tells of changes; of those that
	// another machine makes on a network disk it does not.
	pollWatched = time.Second
)

// ErrTruncated says that a file has become shorter than what was read of it, or
// that another one is in its place.
var ErrTruncated = errors.New("the file was truncated or replaced")

// Reader says what to follow, and takes it.
type Reader struct {
	Path string
	// Offset is the next byte; it counts on as bytes are handed over.
	Offset int64
	// Segment is the length of a log's segments, of which Path is the first and
	// Path.1 the next; 0: the file is one.
	Segment int64
	// Data takes bytes, and must not keep them.
	Data func(p []byte) error
	// Dropped is told that the bytes up to an offset are not there (any more).
	Dropped func(to int64) error

	file   *os.File // of the segment that Offset is in; nil: it is not there yet
	began  int64    // the offset of its first byte
	notify notifier
}

// Follow reads until ctx ends, what takes the bytes fails, or the file can't be
// read. A file that is not there yet is waited for.
func (r *Reader) Follow(ctx context.Context) error {
	r.notify = newNotifier()
	defer r.notify.close()
	defer r.turn()
	buf := make([]byte, ChunkMost)
	pause := pollLeast
	for ctx.Err() == nil {
		n, err := r.next(buf)
		switch {
		case err != nil:
			return err
		case n == 0:
			r.notify.wait(ctx, pause)
			pause = min(pause*3/2, pollMost)
			continue
		case n < len(buf):
			time.Sleep(gatherFor)
		}
		pause = pollLeast
	}
	return context.Cause(ctx)
}

// next hands over what comes next; 0 is nothing yet.
func (r *Reader) next(buf []byte) (n int, err error) {
	if r.file == nil {
		if n, err := r.open(); r.file == nil {
			return n, err
		}
	}
	n, err = r.read(buf)
	if n > 0 || err != nil {
		return n, err
	}
	turned, err := r.check()
	if err != nil || !turned {
		return 0, err
	}
	// What was written before the next segment was begun is there now.
	if n, err = r.read(buf); n > 0 || err != nil {
		return n, err
	}
	to := r.newer()
	r.turn()
	return 1, r.drop(to)
}

func (r *Reader) read(buf []byte) (n int, err error) {
	if r.Segment > 0 {
		buf = buf[:min(int64(len(buf)), r.began+r.Segment-r.Offset)]
	}
	n, err = r.file.ReadAt(buf, r.Offset-r.began)
	if n > 0 {
		err = r.Data(buf[:n])
		if r.Offset += int64(n); r.Segment > 0 && r.Offset == r.began+r.Segment {
			r.turn()
		}
		return n, err
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return 0, err
}

// open opens the segment that the next byte is in, if it is there; else it says
// whether anything is to be read elsewhere.
func (r *Reader) open() (n int, err error) {
	r.began = 0
	if r.Segment > 0 {
		r.began = r.Offset / r.Segment * r.Segment
	}
	file, err := os.OpenFile(r.part(), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		to := r.newer()
		if _, err = os.Lstat(r.part()); to == 0 || err == nil { // it may have come just now
			return 0, nil
		}
		return 1, r.drop(to)
	} else if err != nil {
		return 0, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is no regular file", r.part())
	case info.Size() < r.Offset-r.began:
		err = ErrTruncated
	default:
		r.file = file
		r.notify.watch(file)
		return 0, nil
	}
	_ = file.Close()
	return 0, err
}

// check looks at the file that has nothing more: it is still the one at its
// path, and no shorter than what was read. turned: there is a later segment.
func (r *Reader) check() (turned bool, err error) {
	info, err := os.Stat(r.part())
	if errors.Is(err, fs.ErrNotExist) {
		return r.newer() > 0, nil // a log's oldest segments go; of a file the rest may still be written
	} else if err != nil {
		return false, err
	}
	own, err := r.file.Stat()
	if err != nil {
		return false, err
	}
	if !os.SameFile(own, info) || info.Size() < r.Offset-r.began {
		return false, ErrTruncated
	}
	if r.Segment > 0 {
		_, err = os.Lstat(r.Path + "." + strconv.FormatInt(r.began/r.Segment+1, 10))
	}
	return r.Segment > 0 && err == nil, nil
}

// part is the path of the segment that is read.
func (r *Reader) part() string {
	if r.began == 0 {
		return r.Path
	}
	return r.Path + "." + strconv.FormatInt(r.began/r.Segment, 10)
}

// newer is the first byte of the segment that is there behind this one; 0: none.
func (r *Reader) newer() (to int64) {
	if r.Segment == 0 {
		return 0
	}
	dir, name := ".", r.Path
	if i := strings.LastIndexByte(r.Path, '/'); i >= 0 {
		dir, name = r.Path[:i+1], r.Path[i+1:]
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		number, is := strings.CutPrefix(e.Name(), name+".")
		k, err := strconv.ParseInt(number, 10, 32)
		if at := k * r.Segment; is && err == nil && at > r.began && (to == 0 || at < to) {
			to = at
		}
	}
	return to
}

func (r *Reader) drop(to int64) error {
	if to > r.Offset {
		r.Offset = to
		return r.Dropped(to)
	}
	return nil
}

// turn leaves the segment.
func (r *Reader) turn() {
	if r.file != nil {
		r.notify.leave()
		_ = r.file.Close()
		r.file = nil
	}
}

// pass lets time pass, until ctx ends.
func pass(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
