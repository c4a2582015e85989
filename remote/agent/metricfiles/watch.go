//go:build linux

// Package metricfiles reads what a training writes into files of metrics: it
// looks for them below some directories and tells what is new in them.
package metricfiles

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

const (
	filesMost  = 64
	basesMost  = 1000
	pieceMost  = 1 << 20   // of a file in one pass, but for a trainer's state
	fileMost   = 256 << 20 // of a file
	totalMost  = 1 << 30
	headerMost = 64 << 10
	tick       = 2 * time.Second
	// listEvery is how often the files are looked for, and listShare how much
	// longer that rests than it took: a tree that is slow to search is searched
	// seldom.
	listEvery = 4 * time.Second
	listShare = 20
)

// errFull ends a Watch well.
var errFull = errors.New("as much was read as is allowed")

var passed = wire.FilesNews{Pass: true}

// watcher is a Watch under way.
type watcher struct {
	wire.FilesRequest
	send  func(wire.FilesNews) error
	known map[uint64]wire.FileAt
	sent  int64
	buf   []byte
}

// Watch tells what is new until ctx ends, or as the request says. send must not
// keep the bytes.
func Watch(ctx context.Context, r wire.FilesRequest, send func(wire.FilesNews) error) error {
	w := &watcher{FilesRequest: r, send: send, known: map[uint64]wire.FileAt{}, buf: make([]byte, wire.ChunkMost)}
	for _, at := range r.Known {
		w.known[at.Inode] = at
	}
	err := w.watch(ctx)
	if errors.Is(err, errFull) {
		return send(wire.FilesNews{Full: true})
	}
	return err
}

func (w *watcher) watch(ctx context.Context) error {
	if w.Bases {
		if err := w.bases(ctx); err != nil {
			return err
		}
	}
	var files []string
	var next time.Time
	for {
		if began := time.Now(); !began.Before(next) {
			files = find(ctx, w.Dirs, true, modified(w.Mark))
			files = files[:min(len(files), filesMost)]
			next = time.Now().Add(listEvery + listShare*time.Since(began))
		}
		more := false
		for _, file := range files {
			longer, err := w.show(ctx, file)
			if err != nil {
				return err
			}
			more = more || longer
		}
		if err := w.send(passed); err != nil || !more && w.Once {
			return err
		}
		if more {
			continue
		}
		select {
		case <-time.After(tick):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// bases tells how long the files are that are older than the run.
func (w *watcher) bases(ctx context.Context) error {
	files := find(ctx, w.Dirs, false, modified(w.Mark))
	for _, file := range files[:min(len(files), basesMost)] {
		if isState(file) || strings.Contains(file, "tfevents") {
			continue
		}
		f, inode, size := open(file)
		if f == nil {
			continue
		}
		end := make([]byte, min(size, 64))
		n, _ := f.ReadAt(end, size-int64(len(end)))
		_ = f.Close()
		base := wire.FileBase{Inode: inode, Size: size, End: end[:n]}
		if err := w.send(wire.FilesNews{Base: &base}); err != nil {
			return err
		}
	}
	return nil
}

// open opens a regular file; nil where it is none, or can't be read.
func open(file string) (f *os.File, inode uint64, size int64) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, 0
	}
	info, err := f.Stat()
	if stat, is := infoOf(info, err); is {
		return f, uint64(stat.Ino), stat.Size
	}
	_ = f.Close()
	return nil, 0, 0
}

func infoOf(info os.FileInfo, err error) (*syscall.Stat_t, bool) {
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	return stat, is
}

// show tells what is new in a file; more: that was not all.
func (w *watcher) show(ctx context.Context, file string) (more bool, err error) {
	f, inode, size := open(file)
	if f == nil {
		return false, nil
	}
	defer f.Close()
	at := w.known[inode]
	was := at
	at.Inode = inode
	length := size
	if isState(file) {
		if at.Next = 0; size == was.Next || size > wire.FilePieceMost {
			return false, nil
		}
	} else {
		if path.Ext(file) == ".csv" {
			at.Sum = headerSum(f)
		}
		if size < at.Next || was.Sum != 0 && at.Sum != was.Sum {
			at.Next = 0
		}
		if length -= at.Next; length <= 0 || at.Next >= fileMost {
			return false, nil
		}
		more, length = length > pieceMost, min(length, pieceMost)
	}
	if w.sent += length; w.sent > totalMost {
		return false, errFull
	}
	if err := w.copy(ctx, f, wire.FilePiece{FileAt: at, Length: length, Size: size, Path: file}); err != nil {
		return false, err
	}
	at.Next += length
	w.known[inode] = at
	return more, nil
}

func (w *watcher) copy(ctx context.Context, f *os.File, piece wire.FilePiece) error {
	err := w.send(wire.FilesNews{File: &piece})
	for r := io.NewSectionReader(f, piece.Next, piece.Length); err == nil; {
		n, end := r.Read(w.buf)
		if n == 0 && end != nil {
			return ctx.Err()
		}
		err = w.send(wire.FilesNews{Data: w.buf[:n]})
	}
	return err
}

// headerSum tells a table's header, its first line; it is never 0.
func headerSum(f *os.File) uint32 {
	buf := make([]byte, headerMost)
	n, _ := f.ReadAt(buf, 0)
	line, _, _ := bytes.Cut(buf[:n], []byte{'\n'})
	return max(crc32.ChecksumIEEE(line), 1)
}
