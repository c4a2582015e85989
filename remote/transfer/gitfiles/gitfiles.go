// Package gitfiles reads what git keeps beside a working tree, without git, which a
// laptop need not have: where that lies, which files are tracked, and which lists of
// ignored files hold besides those named .gitignore. It runs nothing, and what it reads
// is taken for names only.
package gitfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/plainfile"
)

// Repo is where the parts of a repository lie.
type Repo struct {
	Top    string // of the working tree
	dir    string // with the index
	common string // with the settings and info/exclude: dir itself but for a linked working tree
}

// lineMost bounds the small files of a repository.
const lineMost = 64 << 10

// At is the repository whose working tree begins at a directory: its .git is a
// directory, or a file that names one, as that of a linked working tree or of a
// submodule. False: there is none, or it can't be read.
func At(top string) (r Repo, ok bool) {
	dot := filepath.Join(top, ".git")
	info, err := os.Lstat(dot)
	if err != nil {
		return r, false
	}
	r = Repo{Top: top, dir: dot, common: dot}
	if info.Mode().IsRegular() {
		target, named := strings.CutPrefix(readLine(dot), "gitdir:")
		if !named {
			return r, false
		}
		r.dir = from(top, strings.TrimSpace(target))
		r.common = r.dir
	}
	if up := readLine(filepath.Join(r.dir, "commondir")); up != "" {
		r.common = from(r.dir, up)
	}
	info, err = os.Stat(r.dir)
	return r, err == nil && info.IsDir()
}

// from is a path as seen from a directory.
func from(dir, path string) string {
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path
}

// readLine is the first line of a small file; empty where it can't be read.
func readLine(name string) string {
	text, err := plainfile.Read(name, lineMost)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// Exclude is the clone's own list of ignored files, which need not be there.
func (r Repo) Exclude() string { return filepath.Join(r.common, "info", "exclude") }

// indexMost bounds an index: one of half a million files has 60 MB.
const indexMost = 256 << 20

// Tracked are the files that git tracks, of those below a directory of the working tree
// ("" is its top), with paths from there. A working tree without an index tracks none.
func (r Repo) Tracked(below string) (*Index, error) {
	size := hashSize(r.settings())
	x := &reading{below: below, size: size}
	if below != "" {
		x.below += "/"
	}
	text, err := plainfile.Read(filepath.Join(r.dir, "index"), indexMost)
	if errors.Is(err, fs.ErrNotExist) {
		return &Index{}, nil
	}
	if err != nil {
		return nil, err
	}
	x.shared = func(name string) ([]byte, error) {
		return plainfile.Read(filepath.Join(r.dir, "sharedindex."+name), indexMost)
	}
	return x.all(text)
}
