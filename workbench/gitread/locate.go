package gitread

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/plainfile"
)

// ErrNone says that a directory is in no git repository.
var ErrNone = errors.New("neither it nor a directory above it has a .git")

// place is where the parts of a repository lie. All paths are real ones.
type place struct {
	top    string // of the working tree
	dir    string // with HEAD and the index
	common string // with objects, refs and config: dir itself but for a linked working tree
}

// locate finds the repository of a directory, going up. Only a directory or a
// file named .git counts: a bare repository that somebody put among the files
// is data.
func locate(dir string) (place, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return place{}, err
	}
	for at := real; ; at = filepath.Dir(at) {
		found, err := placeAt(at)
		if !errors.Is(err, ErrNone) || at == filepath.Dir(at) {
			return found, err
		}
	}
}

// placeAt looks for the repository whose working tree begins at a directory.
func placeAt(top string) (place, error) {
	dot := filepath.Join(top, ".git")
	info, err := os.Lstat(dot)
	switch {
	case err != nil:
		return place{}, ErrNone
	case info.IsDir():
		if !isGitDir(dot) {
			return place{}, ErrNone // git goes on above, too
		}
		if _, err := os.Lstat(filepath.Join(dot, "commondir")); err == nil {
			return place{}, fmt.Errorf("%s borrows from another repository (commondir), and is not read", dot)
		}
		return place{top, dot, dot}, nil
	case info.Mode().IsRegular():
		return linked(top, dot)
	}
	return place{}, fmt.Errorf("%s is neither a directory nor a file, and is not read", dot)
}

// isGitDir reports whether a directory is what git calls one.
func isGitDir(dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// linked follows a .git that is a file, as those of linked working trees and
// submodules are. It is followed only to a directory that belongs to it: else
// a project could pass somebody's private repository off as its own.
func linked(top, dot string) (place, error) {
	text, err := readLine(dot)
	if err != nil {
		return place{}, err
	}
	target, ok := strings.CutPrefix(text, "gitdir:")
	if !ok {
		return place{}, fmt.Errorf("%s names no directory", dot)
	}
	dir, err := realPath(top, strings.TrimSpace(target))
	if err != nil {
		return place{}, fmt.Errorf("%s names a directory that can't be read: %w", dot, err)
	}
	if common, ok := worktreeOf(dir, dot); ok {
		return place{top, dir, common}, nil
	}
	if isGitDir(dir) && isModule(top, dir) {
		return place{top, dir, dir}, nil
	}
	return place{}, fmt.Errorf("%s names %s, which does not name it in turn: it is not read", dot, dir)
}

// worktreeOf reports whether a directory is that of the linked working tree
// with this .git file, and of which repository.
func worktreeOf(dir, dot string) (common string, ok bool) {
	back, err := readLine(filepath.Join(dir, "gitdir"))
	if err != nil {
		return "", false
	}
	named, err := realPath(dir, back)
	if err != nil || named != dot {
		return "", false
	}
	up, err := readLine(filepath.Join(dir, "commondir"))
	if err != nil {
		return "", false
	}
	common, err = realPath(dir, up)
	if err != nil || filepath.Dir(dir) != filepath.Join(common, "worktrees") || !isGitDir(common) {
		return "", false
	}
	return common, true
}

// isModule reports whether a directory is that of a submodule of a repository
// above a working tree.
func isModule(top, dir string) bool {
	for at := filepath.Dir(top); ; at = filepath.Dir(at) {
		if above, err := placeAt(at); err == nil {
			for _, base := range []string{above.common, above.dir} {
				rel, err := filepath.Rel(filepath.Join(base, "modules"), dir)
				if err == nil && rel != "." && filepath.IsLocal(rel) {
					return true
				}
			}
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// realPath resolves a path as seen from a directory, and its links.
func realPath(from, path string) (string, error) {
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(from, path)
	}
	return filepath.EvalSymlinks(path)
}

// lineMost bounds the small files of a repository, and packedMost its largest.
const (
	lineMost   = 64 << 10
	packedMost = 256 << 20
)

// openRegular opens a file that is one: a pipe would not end, and a link may
// point anywhere.
func openRegular(name string) (*os.File, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	return plainfile.Open(name)
}

// readLine reads the first line of a small file.
func readLine(name string) (string, error) {
	f, err := openRegular(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, lineMost))
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line), err
}

// hashForm is the name of an object: SHA-1 or SHA-256.
var hashForm = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// errNoCommit says that HEAD names a branch that has none yet.
var errNoCommit = errors.New("the git repository of the code has no commit yet")

// head is the commit of a repository and its branch; a detached HEAD has none.
func (p place) head() (commit, branch string, err error) {
	text, err := readLine(filepath.Join(p.dir, "HEAD"))
	if err != nil {
		return "", "", err
	}
	ref, symbolic := strings.CutPrefix(text, "ref:")
	if !symbolic {
		if !hashForm.MatchString(text) {
			return "", "", errors.New("HEAD names no commit")
		}
		return text, "", nil
	}
	ref = strings.TrimSpace(ref)
	if info, err := os.Stat(filepath.Join(p.common, "reftable")); err == nil && info.IsDir() {
		return "", "", errors.New("its branches are kept in the reftable format, which is not read")
	}
	commit, err = p.resolve(ref, 5)
	return commit, strings.TrimPrefix(ref, "refs/heads/"), err
}

// resolve finds the commit that a reference names.
func (p place) resolve(ref string, depth int) (string, error) {
	if !strings.HasPrefix(ref, "refs/") || !filepath.IsLocal(filepath.FromSlash(ref)) || depth == 0 {
		return "", errors.New("HEAD names no branch")
	}
	text, err := readLine(filepath.Join(p.common, filepath.FromSlash(ref)))
	if next, symbolic := strings.CutPrefix(text, "ref:"); err == nil && symbolic {
		return p.resolve(strings.TrimSpace(next), depth-1)
	}
	if err == nil && hashForm.MatchString(text) {
		return text, nil
	}
	return p.packed(ref)
}

// packed finds a reference in the list of those that have no file.
func (p place) packed(ref string) (string, error) {
	f, err := openRegular(filepath.Join(p.common, "packed-refs"))
	if err != nil {
		return "", errNoCommit
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(io.LimitReader(f, packedMost))
	for lines.Scan() {
		if hash, name, ok := strings.Cut(lines.Text(), " "); ok && name == ref && hashForm.MatchString(hash) {
			return hash, nil
		}
	}
	return "", errNoCommit
}
