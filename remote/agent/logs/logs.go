//go:build linux

// Package logs writes what a run prints: in numbered segments with one running
// offset, of which the newest are kept.
//
// Byte N of all that was ever written to the log NAME lies in segment
// N / length: NAME is number 0, NAME.1 the next, and all but the newest are
// whole. The training never waits for room on a disk: what can't be written is
// read all the same, counted and told in the log.
package logs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/agent/printed"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

// Log is one log of a run. Several pipes may print into it.
type Log struct {
	run        runs.Run
	name       string
	segment    int64
	keep       int64
	mu         sync.Mutex
	file       *os.File
	number     int64
	size       int64
	lost       int64  // bytes since it could not be written
	why        string // it can't be written
	roomyAfter time.Time
}

// Open opens a log where it was left.
func Open(r runs.Run, name string) (*Log, error) {
	s := r.Settings()
	l := &Log{run: r, name: name, segment: s.Segment, keep: s.Keep}
	files, err := os.ReadDir(r.Dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if number, ok := runs.Segment(f.Name(), name); ok {
			l.number = max(l.number, number)
		}
	}
	return l, l.open()
}

func (l *Log) path(number int64) string {
	if number == 0 {
		return l.run.Path(l.name)
	}
	return l.run.Path(l.name + "." + strconv.FormatInt(number, 10))
}

func (l *Log) open() error {
	f, err := os.OpenFile(l.path(l.number), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file = f
	info, err := f.Stat()
	if err == nil {
		l.size = info.Size()
	}
	return err
}

// turn begins the next segment and drops the one that is too many.
func (l *Log) turn() error {
	l.number++
	if err := l.open(); err != nil {
		l.number--
		return err
	}
	if old := l.number - l.keep; old >= 0 {
		_ = os.Remove(l.path(old))
	}
	return nil
}

// Write takes all of p in every case.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != "" && !l.resume() {
		l.lost += int64(len(p))
		return len(p), nil
	}
	if rest, err := l.append(p); err != nil {
		l.full(err)
		l.lost += int64(len(rest))
	}
	return len(p), nil
}

// append writes what it can and gives the rest.
func (l *Log) append(p []byte) (rest []byte, err error) {
	for len(p) > 0 {
		if l.size >= l.segment {
			if err := l.turn(); err != nil {
				return p, err
			}
			continue
		}
		n, err := l.file.Write(p[:min(int64(len(p)), l.segment-l.size)])
		l.size += int64(n)
		p = p[n:]
		if err != nil {
			return p, err
		}
	}
	return nil, nil
}

// full takes note that output is lost, in the room taken for it.
func (l *Log) full(err error) {
	l.why, l.lost = "the log could not be written", 0
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		l.why = "the disk was full"
	case errors.Is(err, syscall.EFBIG):
		l.why = "the log reached the limit for a file's size"
	}
	if !l.run.Has("full") {
		at, up, _ := strings.Cut(runs.Stamp(), "+")
		_ = l.run.Record("full", fmt.Sprintf("%s %s %s %s", at, up, l.name, l.why))
	}
}

const (
	// roomLeast is how much room there must be again.
	roomLeast = 1 << 20
	// roomEvery is how often it is looked for.
	roomEvery = 50 * time.Millisecond
)

// resume goes on writing when there is room again, and says what is missing.
func (l *Log) resume() bool {
	if time.Now().Before(l.roomyAfter) {
		return false
	}
	l.roomyAfter = time.Now().Add(roomEvery)
	var st unix.Statfs_t
	if unix.Statfs(l.run.Dir, &st) != nil || st.Bavail*uint64(st.Bsize) < roomLeast {
		return false
	}
	text := fmt.Sprintf("\n[dlwb: %s; %d bytes of output are missing here]\n", l.why, l.lost)
	if l.segment-l.size <= int64(len(text)) || strings.Contains(l.why, "limit") {
		if l.turn() != nil {
			return false
		}
	}
	if _, err := l.append([]byte(text)); err != nil {
		return false
	}
	l.why, l.lost = "", 0
	return true
}

// Close ends the log, and says what is missing at its end if there is room.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roomyAfter = time.Time{}
	if l.why != "" {
		l.resume()
	}
	_ = l.file.Close()
}

// Pipe makes a pipe for what prints into a log. Its name, by which the run's
// processes are known, stays with it when the file is gone.
func Pipe(r runs.Run, name string) (read, write *os.File, err error) {
	path := r.Path(fmt.Sprintf("%s.%d.pipe", name, os.Getpid()))
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return os.Pipe() // a file system without pipes
	}
	defer func() { _ = os.Remove(path) }()
	both, err := os.OpenFile(path, os.O_RDWR, 0) // so that the others do not wait
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = both.Close() }()
	// What prints line by line goes on while what it printed gathers (gatherFor): the
	// usual 64 KB are full before that. Where the system does not allow more, it waits.
	_, _ = unix.FcntlInt(both.Fd(), unix.F_SETPIPE_SZ, pipeSize)
	if read, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, nil, err
	}
	// What prints into it waits when it is full, as with any pipe.
	if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		return read, os.NewFile(uintptr(fd), filepath.Base(path)), nil
	}
	return nil, nil, errors.Join(err, read.Close())
}

const (
	// pieceMost is how much is read at once.
	pieceMost = 64 << 10
	// pipeSize is more than what Python prints meanwhile, and leaves room for hundreds of
	// ranks in what a user may have of all pipes (pipe-user-pages-soft, 64 MB).
	pipeSize = 256 << 10
)

const (
	// smallPiece is below what a piece is small, and gatherFor how long what comes
	// behind two of them gathers in the pipe: Python prints line by line here, and
	// a million lines would be a million wake-ups, reads and writes.
	smallPiece = 16 << 10
	gatherFor  = 2 * time.Millisecond
)

// Captured is what is captured of a program: what it prints, on its way to a log.
type Captured struct {
	from  *printed.Reader
	ended chan struct{} // closed when nobody holds the pipe any more
}

// Capture writes what comes out of a pipe to the log, until all who hold it are gone.
func (l *Log) Capture(from *os.File) *Captured {
	p := &Captured{from: printed.From(from, pipeSize, pieceMost), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		l.copyFrom(p.from)
		_ = from.Close()
	}()
	return p
}

// copyFrom writes what is read to the log.
func (l *Log) copyFrom(from io.Reader) {
	buf, last := make([]byte, pieceMost), time.Time{}
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_, _ = l.Write(buf[:n])
		}
		if err != nil {
			return
		}
		if n < smallPiece {
			if time.Since(last) < 2*gatherFor {
				time.Sleep(gatherFor)
			}
			last = time.Now()
		}
	}
}

const (
	// drainLimit is how long the pipe of an ended process is waited for when nothing
	// comes of it: what the process has left behind may hold it for ever.
	drainLimit = time.Second
	// drainMost bounds the wait for a disk that stands still.
	drainMost = 30 * time.Second
)

// Drained waits until what an ended process has printed is in the log. What it has
// left behind may print on: that is not waited for.
func (p *Captured) Drained() {
	p.from.Ended()
	for began := time.Now(); time.Since(began) < drainMost; {
		select {
		case <-p.ended:
			return
		case <-time.After(drainLimit):
		}
		if !p.from.MayBring() {
			return
		}
	}
}
