package ownimage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/dockerfile"
	"github.com/dlwb/dlwb/internal/plainfile"
)

// most bounds a Dockerfile and an ignore file.
const most = 1 << 20

// source is all that an image is made of. Nothing else is where it is built: what has the
// tag has come from these bytes.
type source struct {
	text  []byte // of the Dockerfile
	code  cloud.Code
	files []string          // of the code, sorted
	links map[string]string // symbolic links among it
	empty []string          // directories among it in which nothing is, sorted
	tag   string
}

// read finds what an image is made of: of the code that goes with the job, what the
// Dockerfile copies and no .dockerignore leaves out.
func read(o Order, code cloud.Code) (*source, error) {
	root, err := os.OpenRoot(code.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the code directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	s := &source{code: code, links: map[string]string{}}
	if !slices.Contains(code.Paths, o.Dockerfile) {
		if _, err := root.Stat(filepath.FromSlash(o.Dockerfile)); errors.Is(err, fs.ErrNotExist) {
			return nil, &Error{Why: "there is no " + o.Dockerfile + " in the code directory", Next: "machines.image: the path of a Dockerfile below code.dir"}
		}
		return nil, &Error{Why: o.Dockerfile + " is not among the files of the code: it is a link, an ignore file leaves it out, or it looks like a secret", Next: "dlwb sync --dry-run lists what goes"}
	}
	if s.text, err = plainfile.ReadIn(root, filepath.FromSlash(o.Dockerfile), most); err != nil {
		return nil, fmt.Errorf("read the Dockerfile: %w", err)
	}
	ignored, err := ignores(root, o, code.Paths)
	if err != nil {
		return nil, err
	}
	from := dockerfile.Sources(string(s.text))
	from = s.linked(from, ignored)
	for _, p := range code.Paths {
		if dockerfile.Among(from, p) && !ignored(p) {
			s.files = append(s.files, p)
		}
	}
	for _, p := range code.Empty {
		if dockerfile.Among(from, p) && !ignored(p) {
			s.empty = append(s.empty, p)
		}
	}
	sort.Strings(s.files)
	sort.Strings(s.empty)
	s.tag, err = s.digest(root, func(string, fs.FileMode) (io.WriteCloser, error) { return nil, nil })
	return s, err
}

// linked takes the links of the code that are among sources, or on the way to one, and
// gives the sources with what these lead to.
func (s *source) linked(from []string, ignored func(string) bool) []string {
	for more := true; more; {
		more = false
		for p, to := range s.code.Links {
			way := slices.ContainsFunc(from, func(f string) bool { return strings.HasPrefix(f, "./"+p+"/") })
			if _, has := s.links[p]; !has && (way || dockerfile.Among(from, p)) && !ignored(p) {
				s.links[p], more = to, true
				from = append(from, "./"+path.Join(path.Dir(p), to))
			}
		}
	}
	return from
}

// ignores tells what the ignore file of a Dockerfile leaves out: the one of its own, else
// that of the directory. It is acted on here, so that docker and podman build the same.
func ignores(root *os.Root, o Order, paths []string) (func(string) bool, error) {
	for _, name := range []string{o.Dockerfile + ".dockerignore", ".dockerignore", ".containerignore"} {
		if !slices.Contains(paths, name) {
			continue
		}
		text, err := plainfile.ReadIn(root, filepath.FromSlash(name), most)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		rules, err := ignorefile.ReadAll(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		m, err := patternmatcher.New(rules)
		if err != nil {
			return nil, &Error{Why: fmt.Sprintf("%s has a pattern that is none: %v", name, err), Next: "correct it"}
		}
		return func(p string) bool {
			left, err := m.MatchesOrParentMatches(filepath.FromSlash(p))
			return err == nil && left
		}, nil
	}
	return func(string) bool { return false }, nil
}

// digest goes through all that an image is made of and gives the tag of it. to may have a
// copy of each file written.
func (s *source) digest(root *os.Root, to func(path string, mode fs.FileMode) (io.WriteCloser, error)) (string, error) {
	h := sha256.New()
	part(h, "dlwb image 1", Platform, string(s.text))
	for _, p := range s.files {
		if err := s.file(h, root, p, to); err != nil {
			return "", fmt.Errorf("read %s for the image: %w", p, err)
		}
	}
	for _, p := range sorted(s.links) {
		part(h, "link", p, s.links[p])
	}
	for _, p := range s.empty {
		part(h, "directory", p)
	}
	return "dlwb-" + hex.EncodeToString(h.Sum(nil))[:24], nil
}

func sorted(links map[string]string) (all []string) {
	for p := range links {
		all = append(all, p)
	}
	sort.Strings(all)
	return all
}

// file adds a file to a digest.
func (s *source) file(h hash.Hash, root *os.Root, p string, to func(string, fs.FileMode) (io.WriteCloser, error)) error {
	f, err := root.Open(filepath.FromSlash(p))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return plainfile.ErrNotRegular
	}
	mode := 0o644 | info.Mode()&0o111
	out, err := to(p, mode)
	if err != nil {
		return err
	}
	sum := sha256.New()
	w := io.Writer(sum)
	if out != nil {
		w = io.MultiWriter(sum, out)
	}
	_, err = io.Copy(w, f)
	if out != nil {
		err = errors.Join(err, out.Close())
	}
	part(h, "file", p, mode.String(), string(sum.Sum(nil)))
	return err
}

// part adds words to a digest, each with its length: no two lists come to the same bytes.
func part(h hash.Hash, words ...string) {
	for _, w := range words {
		_, _ = fmt.Fprintf(h, "%d:%s", len(w), w)
	}
}

// stage copies what an image is made of into a room, and the Dockerfile beside it.
func (s *source) stage(r *room) error {
	root, err := os.OpenRoot(s.code.Dir)
	if err != nil {
		return fmt.Errorf("open the code directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	if err := os.WriteFile(r.dockerfile(), s.text, 0o600); err != nil {
		return err
	}
	dir, err := os.OpenRoot(r.context())
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	tag, err := s.digest(root, func(p string, mode fs.FileMode) (io.WriteCloser, error) {
		name := filepath.FromSlash(p)
		if err := dir.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err == nil {
			err = f.Chmod(mode) // whatever the umask
		}
		return f, err
	})
	if err == nil && tag != s.tag {
		err = &Error{Why: "the code changed while it was copied for the image", Next: "run it again"}
	}
	for p, to := range s.links {
		if err == nil {
			name := filepath.FromSlash(p)
			err = errors.Join(dir.MkdirAll(filepath.Dir(name), 0o755), dir.Symlink(filepath.FromSlash(to), name))
		}
	}
	for _, p := range s.empty {
		if err == nil {
			err = dir.MkdirAll(filepath.FromSlash(p), 0o755)
		}
	}
	if err == nil {
		err = open755(r.context())
	}
	if err != nil && strings.Contains(err.Error(), "no space left") {
		err = &Error{Why: "this machine's disk is full: the code for the image does not fit into " + r.dir, Next: "make room there, or set TMPDIR to another place"}
	}
	return err
}

// open755 gives directories the mode that they have in the image, whatever the umask.
func open755(dir string) error {
	return filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(at, 0o755)
		}
		return err
	})
}
