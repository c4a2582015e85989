package transfer

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/secretfile"
)

// IgnoreFile is a file with ignore rules.
type IgnoreFile struct {
	Path string // absolute
	Text []byte
}

// Survey is what lies in a project, and what decides, besides the profile, which of
// it is sent. No file was read for it but those with ignore rules.
type Survey struct {
	IgnoreFiles []IgnoreFile // all that Scan reads
	// Asked are files that look like secrets by their names and that a rule of
	// the project wants sent. A Tree holds them back all the same.
	Asked []string

	dir     string
	exclude []string
	found   []finding // what no rule leaves out
	notes   []string  // sentences for the user
}

// finding is one thing of a project, before it is settled whether it is held back.
type finding struct {
	*treeEntry        // of no kind: neither file, directory nor link inside
	looks      string // what secret its name is that of
	asked      bool   // a line of the project wants it sent
	isLink     bool
	outside    string // where a link leads that leads out
	round      string // where one leads that leads back to itself
}

// LookAtProject finds what decides which files of the project in dir are sent, as Scan
// does. It reads ignore files, and no others.
func LookAtProject(ctx context.Context, dir string, exclude []string) (*Survey, error) {
	seen, err := survey(ctx, dir, exclude)
	if err != nil {
		return nil, fmt.Errorf("look at project %s: %w", dir, err)
	}
	return seen, nil
}

func survey(ctx context.Context, dir string, exclude []string) (*Survey, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(full)
	if err != nil {
		return nil, fmt.Errorf("%w; is code.dir in the profile right?", err)
	}
	defer func() { _ = root.Close() }()
	s := &scanner{ctx: ctx, root: root, dir: full, exclude: listOf(exclude), above: []string{filepath.ToSlash(full)},
		seen: &Survey{dir: full, exclude: exclude}}
	if real, err := filepath.EvalSymlinks(full); err == nil && real != full {
		s.above = append(s.above, filepath.ToSlash(real))
	}
	scope, err := s.outerScope(full)
	if err == nil {
		err = s.walk(root, "", scope)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range s.seen.found {
		if f.asked && f.looks != "" {
			s.seen.Asked = append(s.seen.Asked, f.path)
		}
	}
	return s.seen, nil
}

// Is reports whether Scan of a directory with these patterns would see what this
// survey saw, if nothing has changed since.
func (s *Survey) Is(dir string, exclude []string) bool {
	return s != nil && s.dir == dir && slices.Equal(s.exclude, exclude)
}

// Tree is what of the project is sent by rules with the survey's Exclude. A survey
// makes one tree.
func (s *Survey) Tree(ctx context.Context, r Rules) (*Tree, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	t := &sifting{root: root, secrets: secretRules{listOf(r.Send), listOf(r.Hold)}, emptied: map[string]bool{},
		tree: &Tree{Dir: s.dir, HashCache: hashCacheFor(s.dir), part: batchBytes, relay: standardRelay, large: largeFrom}}
	if !r.NamesOnly {
		t.peeks = peekMost
	}
	for i := range s.found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t.add(&s.found[i])
	}
	t.dropEmptied()
	t.addRooms(r.Rooms)
	// Byte order, so that the list does not depend on the laptop's system.
	slices.SortFunc(t.tree.entries, func(a, b *treeEntry) int { return strings.Compare(a.path, b.path) })
	t.tree.Warnings = append(t.tree.Warnings, s.notes...)
	t.warn()
	return t.tree, nil
}

// sifting settles what of a survey is sent.
type sifting struct {
	root    *os.Root
	secrets secretRules
	tree    *Tree
	peeks   int // how many more files may be looked into
	emptied map[string]bool

	outside, round, special []string
	big                     []*treeEntry // files that are large by themselves
}

// add takes one thing, unless it is held back.
func (s *sifting) add(f *finding) {
	switch {
	case f.kind == kindDir:
		s.tree.entries = append(s.tree.entries, f.treeEntry)
		return
	case s.holds(f):
		return
	case f.outside != "":
		s.outside = append(s.outside, f.outside)
		return
	case f.round != "":
		s.round = append(s.round, f.round)
		return
	case f.kind == 0 && !f.isLink:
		s.special = append(s.special, f.path)
		return
	case f.kind == 0:
		return // it can't be read
	case f.size >= bigFile:
		s.big = append(s.big, f.treeEntry)
	}
	s.tree.entries = append(s.tree.entries, f.treeEntry)
	s.tree.Files++
	s.tree.Bytes += f.size
}

// holds reports whether something is held back, and takes note of it.
func (s *sifting) holds(f *finding) bool {
	if f.kind == 0 && !f.isLink {
		return false
	}
	if f.sent = s.secrets.send.covers(f.path); f.sent {
		return false
	}
	why := f.looks
	if s.secrets.hold.covers(f.path) {
		why = "your settings hold it back"
	}
	regular := f.kind == kindFile
	switch {
	case why != "" && regular && secretfile.MayBePublic(f.path) && secretfile.IsPublic(head(s.root, f.path, certificatesMost)):
		why = ""
	case why == "" && regular && f.size <= peekSize && s.peeks > 0:
		s.peeks--
		why = secretfile.ByContent(f.path, head(s.root, f.path, peekSize))
	}
	if why == "" {
		return false
	}
	s.tree.Held = append(s.tree.Held, HeldFile{f.path, why, f.asked})
	for dir := path.Dir(f.path); dir != "." && !s.emptied[dir]; dir = path.Dir(dir) {
		s.emptied[dir] = true
	}
	return true
}

// dropEmptied leaves out the directories that hold nothing but what is held
// back: their names tell of it.
func (s *sifting) dropEmptied() {
	kept := map[string]bool{}
	for _, e := range s.tree.entries {
		if e.kind != kindDir || !s.emptied[e.path] {
			for dir := path.Dir(e.path); dir != "." && !kept[dir]; dir = path.Dir(dir) {
				kept[dir] = true
			}
		}
	}
	s.tree.entries = slices.DeleteFunc(s.tree.entries, func(e *treeEntry) bool {
		return e.kind == kindDir && s.emptied[e.path] && !kept[e.path]
	})
}

// addRooms adds the directories that are to be there although nothing in them is sent,
// and those that they lie in. What is no directory here is none there; a link is not
// followed.
func (s *sifting) addRooms(rooms []string) {
	has := map[string]bool{}
	for _, e := range s.tree.entries {
		has[e.path] = true
	}
	for _, room := range rooms {
		var way string
		for name := range strings.SplitSeq(path.Clean(room), "/") {
			way = path.Join(way, name)
			info, err := s.root.Lstat(way)
			if err != nil || !info.IsDir() || neverSent(name) {
				break
			}
			if !has[way] { // without its time, which what is written there changes
				has[way] = true
				s.tree.entries = append(s.tree.entries, &treeEntry{path: way, kind: kindDir, mode: 0o755, mtime: time.Unix(0, 0)})
			}
		}
	}
}
