// Package outfile writes what a command makes to the path that the user named: a
// file whole or not at all, anything else (a device, a pipe, a descriptor) as a
// shell's > would.
package outfile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/waits"
)

// mostLinks is how many links are followed from a path, as Linux does.
const mostLinks = 40

var errDirectory = errors.New("it is a directory")

// Stdout reports whether a path is another name of this process's standard output,
// as /dev/stdout is.
func Stdout(path string) bool {
	real, open, err := follow(path)
	return err == nil && open && filepath.Base(real) == "1" && own(filepath.Dir(real))
}

// Write writes to a path, and says how many bytes. A file is replaced when all of it
// is written, and keeps its mode; a new one gets what the umask leaves of 0666. A
// symbolic link stays, and what it leads to is written. What is no file is opened
// and written to; for the reader of a FIFO it waits until ctx ends.
func Write(ctx context.Context, path string, write func(io.Writer) error) (size int64, err error) {
	return put(ctx, path, false, write)
}

// Private is Write for what others of this machine are not to read: a file gets the
// mode 0600, whatever it had.
func Private(ctx context.Context, path string, write func(io.Writer) error) (size int64, err error) {
	return put(ctx, path, true, write)
}

func put(ctx context.Context, path string, private bool, write func(io.Writer) error) (size int64, err error) {
	real, open, err := follow(path)
	if path != "" && os.IsPathSeparator(path[len(path)-1]) {
		err = errDirectory
	}
	if err == nil {
		info, statErr := os.Stat(real)
		switch {
		case statErr == nil && info.IsDir():
			err = errDirectory
		case errors.Is(statErr, fs.ErrNotExist) && !open:
			size, err = whole(real, nil, private, write)
		case statErr != nil:
			err = statErr
		case open || !info.Mode().IsRegular():
			size, err = into(ctx, real, write)
		default:
			size, err = whole(real, info, private, write)
		}
	}
	if err != nil {
		var inner *fs.PathError
		if errors.As(err, &inner) && inner.Path == path {
			err = inner.Err
		}
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	return size, nil
}

// whole writes a file under another name and renames it when it is whole: who
// watches the directory never reads half of it. old is what it replaces.
func whole(path string, old fs.FileInfo, private bool, write func(io.Writer) error) (size int64, err error) {
	mode := fs.FileMode(0o666)
	if old != nil || private {
		mode = 0o600
	}
	if old != nil { // a rename asks the directory alone: a file that may not be written stays
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		_ = f.Close()
	}
	temp := filepath.Join(filepath.Dir(path), ".dlwb-"+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, err
	}
	defer os.Remove(temp) // there is none after the rename
	count := &counter{to: f}
	err = write(count)
	if old != nil && !private {
		err = errors.Join(err, f.Chmod(old.Mode().Perm()))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	return count.size, err
}

// into writes into what is there. It is not cut: a descriptor may stand for a file
// to which others have written.
func into(ctx context.Context, path string, write func(io.Writer) error) (int64, error) {
	type opened struct {
		f   *os.File
		err error
	}
	defer waits.Begin(waits.Wait{On: path, What: "to take what is written: it is no file"})()
	done := make(chan opened, 1)
	go func() { // a FIFO is open when somebody reads from it
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		done <- opened{f, err}
	}()
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case got := <-done:
		if got.err != nil {
			return 0, got.err
		}
		count := &counter{to: got.f}
		err := write(count)
		return count.size, errors.Join(err, got.f.Close())
	}
}

// follow goes along symbolic links to what they lead to, which need not be there.
// open says that it is a descriptor of a process: its name is also a link, to a
// file that is to be written through the descriptor, not replaced.
func follow(path string) (real string, open bool, err error) {
	for range mostLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", false, err
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return "", false, err
		}
		path = filepath.Join(dir, filepath.Base(path))
		if dir == "/dev/fd" || strings.HasPrefix(dir, "/proc/") && filepath.Base(dir) == "fd" {
			return path, true, nil
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, false, nil // what is wrong with it, writing says
		}
		next, err := os.Readlink(path)
		if err != nil {
			return "", false, err
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(dir, next)
		}
		path = next
	}
	return "", false, errors.New("too many symbolic links")
}

// own reports whether a directory of descriptors is this process's.
func own(dir string) bool {
	return dir == "/dev/fd" || dir == fmt.Sprintf("/proc/%d/fd", os.Getpid())
}

// counter counts what is written.
type counter struct {
	to   io.Writer
	size int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.size += int64(n)
	return n, err
}
