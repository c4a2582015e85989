// Package plainfile reads files that somebody else may have put there: regular
// files only, and never more of one than is asked for. A fifo, a device or an
// endless file is an error, not a wait.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var (
	// ErrNotRegular says that what has the name is no regular file.
	ErrNotRegular = errors.New("it is no regular file")
	// ErrTooLarge says that a file has more bytes than are read.
	ErrTooLarge = errors.New("it is too large")
)

// Read returns the content of a regular file of at most limit bytes. A symbolic
// link is followed.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAll(f, path, limit)
}

// ReadIn is Read for a file below a directory that links don't lead out of.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	if err := regular(root.Stat(name)); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAll(f, name, limit)
}

// Open opens a regular file. It looks before it opens, because opening a device
// may already do something, and after it, because the file may have been
// replaced meanwhile; without O_NONBLOCK opening a fifo waits for its writer.
func Open(path string) (*os.File, error) {
	if err := regular(os.Stat(path)); err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := regular(f.Stat()); err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.Join(err, f.Close())}
	}
	return f, nil
}

// URL is the address of a file, as libraries take it that open files by addresses:
// no byte of a path means anything else in it.
func URL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // file:///C:/… on Windows
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

func regular(info fs.FileInfo, err error) error {
	var inner *fs.PathError
	switch {
	case errors.As(err, &inner):
		return inner.Err // the caller names the path
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w (%s)", ErrNotRegular, kind(info.Mode()))
	}
	return nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a fifo"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return m.Type().String()
}

func readAll(f *os.File, path string, limit int64) ([]byte, error) {
	if err := regular(f.Stat()); err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)}
	}
	return text, err
}
