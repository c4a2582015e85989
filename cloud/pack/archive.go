package pack

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

// Archive is a tar.gz in the making. Its first error stays, and Close gives it.
type Archive struct {
	w     *tar.Writer
	zip   *gzip.Writer
	sizes map[string]int64
	err   error
}

// NewArchive writes to w. The same files make the same bytes.
func NewArchive(w io.Writer) *Archive {
	zip, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	return &Archive{w: tar.NewWriter(zip), zip: zip, sizes: map[string]int64{}, err: err}
}

// Text adds a file with a text.
func (a *Archive) Text(name, text string) {
	a.err = errors.Join(a.err, a.header(name, 0o644, int64(len(text))))
	if a.err == nil {
		_, a.err = io.WriteString(a.w, text)
	}
}

func (a *Archive) header(name string, mode, size int64) error {
	return a.w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size, Format: tar.FormatPAX})
}

// Code adds the files of a directory below a prefix, until full says that there is
// no room for more; nil: there is.
func (a *Archive) Code(prefix string, code cloud.Code, full func() bool) {
	if a.err == nil {
		a.err = a.code(prefix, code, full)
	}
}

func (a *Archive) code(prefix string, code cloud.Code, full func() bool) error {
	root, err := os.OpenRoot(code.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, path := range code.Paths {
		if err := a.file(root, prefix, path); err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
		if full != nil && full() {
			break
		}
	}
	for _, path := range code.Empty {
		if err := a.w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: prefix + path + "/", Mode: 0o755, Format: tar.FormatPAX}); err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(code.Links)) {
		if err := a.w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: prefix + path, Linkname: code.Links[path], Mode: 0o777, Format: tar.FormatPAX}); err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
	}
	return nil
}

func (a *Archive) file(root *os.Root, prefix, path string) error {
	f, err := root.Open(filepath.FromSlash(path))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	a.sizes[path] = info.Size()
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := a.header(prefix+path, mode, info.Size()); err != nil {
		return err
	}
	_, err = io.CopyN(a.w, f, info.Size()) // one that grows meanwhile is cut, one that shrinks is an error
	return err
}

// Close ends the archive.
func (a *Archive) Close() error {
	if a.err != nil {
		return a.err
	}
	return errors.Join(a.w.Close(), a.zip.Close())
}

// Largest names the largest files of the code, with their sizes.
func (a *Archive) Largest() string {
	paths := slices.Sorted(maps.Keys(a.sizes))
	slices.SortStableFunc(paths, func(x, y string) int { return int(min(max(a.sizes[y]-a.sizes[x], -1), 1)) })
	paths = paths[:min(3, len(paths))]
	for i, path := range paths {
		paths[i] = path + " (" + units.Bytes(a.sizes[path]) + ")"
	}
	return strings.Join(paths, ", ")
}
