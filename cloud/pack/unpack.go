package pack

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/dlwb/dlwb/internal/units"
)

// What is unpacked at most. Whoever has written an archive is not trusted.
const (
	mostFiles = 250_000
	mostBytes = 100 << 30
)

// ErrTooMuch is that an archive, or a file, has more than may come. What came before
// is whole.
var ErrTooMuch = errors.New("it has more than may come")

// Unpack writes the files and links of a tar.gz into a directory. place gives each its
// path there; empty: it is not wanted. skipped is what can't be written, each with the
// reason. An archive that was cut is an error.
func Unpack(r io.Reader, into *os.Root, place func(name string) string) (skipped []string, err error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	return UnpackTar(zip, into, place)
}

// UnpackTar is Unpack of an archive that is not compressed.
func UnpackTar(r io.Reader, into *os.Root, place func(name string) string) (skipped []string, err error) {
	files, left := 0, int64(mostBytes)
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r) // the checksum of what is compressed stands at the end
			return skipped, err
		}
		if err != nil {
			return skipped, err
		}
		if files++; files > mostFiles || h.Size > left {
			return skipped, fmt.Errorf("%w: more than %d files or %s", ErrTooMuch, mostFiles, units.Bytes(mostBytes))
		}
		left -= max(h.Size, 0)
		if why, err := unpackOne(in, h, into, place); err != nil {
			return skipped, err
		} else if why != "" && len(skipped) < 100 {
			skipped = append(skipped, h.Name+": "+why)
		}
	}
}

// unpackOne writes one entry. why: it can't be written, and the others can.
func unpackOne(in io.Reader, h *tar.Header, into *os.Root, place func(string) string) (why string, err error) {
	name := path.Clean(strings.TrimPrefix(h.Name, "./"))
	if h.Typeflag == tar.TypeDir {
		return "", nil
	}
	if !utf8.ValidString(name) {
		return "its name is no UTF-8", nil
	}
	if !fs.ValidPath(name) || strings.ContainsRune(name, '\\') {
		return "its path leaves the directory", nil
	}
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeSymlink {
		return "it is no file", nil
	}
	to := place(name)
	if to == "" {
		return "", nil
	}
	if err := into.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err.Error(), nil
	}
	if h.Typeflag == tar.TypeSymlink {
		err := into.Symlink(h.Linkname, to)
		if errors.Is(err, fs.ErrExist) && into.Remove(to) == nil { // of a try that broke off
			err = into.Symlink(h.Linkname, to)
		}
		if err != nil {
			return err.Error(), nil
		}
		return "", nil
	}
	if err := unpackFile(in, h, into, to); unfit(err) {
		return err.Error(), nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}

// unfit reports whether a file can't have its name here, as what it is called elsewhere
// may be too long for an encrypted home, or have a colon. That is no reason to go without
// the others.
func unfit(err error) bool {
	const invalidOnWindows = syscall.Errno(123) // ERROR_INVALID_NAME
	for _, no := range []error{syscall.ENAMETOOLONG, syscall.EISDIR, syscall.ENOTDIR, syscall.EINVAL, syscall.ELOOP, invalidOnWindows} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

func unpackFile(in io.Reader, h *tar.Header, into *os.Root, to string) error {
	mode := fs.FileMode(0o644)
	if h.Mode&0o100 != 0 {
		mode = 0o755
	}
	f, err := into.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, in); err != nil {
		return errors.Join(err, f.Close(), into.Remove(to))
	}
	if err := f.Close(); err != nil || h.ModTime.IsZero() {
		return err
	}
	return into.Chtimes(to, h.ModTime, h.ModTime)
}
