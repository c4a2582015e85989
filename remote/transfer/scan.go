package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/secretfile"
	"github.com/dlwb/dlwb/remote/transfer/gitfiles"
)

const (
	// A project beyond either of these is worth a word before it is sent.
	largeBytes = 200e6
	largeFiles = 10_000
	// bigFile is the size of a file that is worth one.
	bigFile = 100e6
	// ignoreFileMost bounds what is read of one ignore file.
	ignoreFileMost = 1 << 20
)

// Tree is what of a project is to be on the nodes, as Scan saw it.
type Tree struct {
	Dir   string
	Files int // files and links
	Bytes int64
	// Warnings are sentences for the user: what will be large, and what is not
	// sent and why.
	Warnings []string
	// Held are the files that are not sent because they look like secrets, by
	// path. Read, which looks into every file, may find more.
	Held []HeldFile
	// HashCache is the file that keeps checksums between syncs of a large
	// project; empty: every file is read every time.
	HashCache string

	part    int64        // how many bytes a stream to a node has at most
	relay   relayPolicy  // when nodes pass files on to each other
	large   int64        // from what size on a file has a stream of its own
	entries []*treeEntry // sorted by path; a directory stands before its content
	noticed []string     // Warnings but for those about secrets
}

// Paths are the files of the tree, with slashes.
func (t *Tree) Paths() []string {
	var paths []string
	for _, e := range t.entries {
		if e.kind == kindFile {
			paths = append(paths, e.path)
		}
	}
	return paths
}

// Empty are the directories of the tree that hold nothing of it.
func (t *Tree) Empty() []string {
	full := map[string]bool{}
	for _, e := range t.entries {
		full[path.Dir(e.path)] = true
	}
	var empty []string
	for _, e := range t.entries {
		if e.kind == kindDir && !full[e.path] {
			empty = append(empty, e.path)
		}
	}
	return empty
}

// Links are the symbolic links of the tree, with where they lead.
func (t *Tree) Links() map[string]string {
	links := map[string]string{}
	for _, e := range t.entries {
		if e.kind == kindLink {
			links[e.path] = e.link
		}
	}
	return links
}

type entryKind byte

const (
	kindFile entryKind = 'f'
	kindDir  entryKind = 'd'
	kindLink entryKind = 'l'
)

// treeEntry is one thing of a project. Its path has slashes, and no rules.
type treeEntry struct {
	path string
	kind entryKind
	// mode has the permissions that the node gets: never writable by others,
	// always readable by the owner.
	mode  fs.FileMode
	size  int64
	mtime time.Time
	link  string // a link's target
	sum   string // SHA-256 in hex of a file; empty until it was read
	stamp string // what is different when the file is another one
	fresh time.Time
	moved int // how often it was found changed while it was being sent
	// secret is what the file seems to mention, and held what it is where it
	// is nothing but a secret; both are known of files that were read.
	secret, held string
	// sent says that the user wants it sent, whatever it is.
	sent bool
}

// Scan finds what of the project in dir is to be on the nodes: everything but
// what git ignores, .dlwbignore files or exclude leave out. The three have the same
// syntax, and each stands on top of the ones before. Git ignores by .gitignore files
// (also those between dir and the top of its repository), by the clone's info/exclude
// and by the user's core.excludesFile, and never what it tracks. Files that look like
// secrets are held back, whatever these say: only r.Send lets them go. Links
// that point inside dir are kept as links. What belongs to git, to dlwb
// or to Python's caches is never part of it.
//
// Case counts in patterns, on every system.
func Scan(ctx context.Context, dir string, r Rules) (*Tree, error) {
	seen, err := survey(ctx, dir, r.Exclude)
	if err != nil {
		return nil, fmt.Errorf("scan project %s: %w", dir, err)
	}
	t, err := seen.Tree(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("scan project %s: %w", dir, err)
	}
	return t, nil
}

// scanner is one survey under way.
type scanner struct {
	ctx     context.Context
	root    *os.Root
	dir     string
	exclude *ignoreList
	above   []string // where the project lies: as it was named, and really
	tracked *tracked // of the repository that a directory lies in; nil: of none
	only    bool     // git ignores a directory around: what it tracks of it counts
	seen    *Survey
}

// ignoredBy are git's lists of ignored files that hold in a whole repository, the
// weakest first, as seen from a directory in it.
func (s *scanner) ignoredBy(repo gitfiles.Repo, dir string) (scope *ignoreScope, err error) {
	if list, theirs := repo.UserExclude(); list != "" {
		if scope, err = s.outerFile(nil, list, repo.Top, dir, theirs); err != nil {
			return nil, err
		}
	}
	// In git, too, a clone's own excludes give way to every .gitignore.
	return s.outerFile(scope, repo.Exclude(), repo.Top, dir, true)
}

// outerScope reads the ignore files of the directories above a project, up to
// the top of its git repository. Outside of a repository there are none.
func (s *scanner) outerScope(dir string) (scope *ignoreScope, err error) {
	top := dir
	for !exists(filepath.Join(top, ".git")) {
		up := filepath.Dir(top)
		if up == top {
			return nil, nil
		}
		top = up
	}
	if repo, ok := gitfiles.At(top); ok {
		below, err := filepath.Rel(top, dir)
		if err != nil {
			return nil, err
		}
		if scope, err = s.ignoredBy(repo, dir); err != nil {
			return nil, err
		}
		if below == "." {
			below = ""
		}
		s.tracked = newTracked(s, repo, filepath.ToSlash(below))
	}
	var files []string // the strongest first; Scan itself reads the one in dir
	for at := dir; at != top; {
		at = filepath.Dir(at)
		files = append(files, filepath.Join(at, gitIgnoreFile))
	}
	for _, file := range slices.Backward(files) {
		if scope, err = s.outerFile(scope, file, filepath.Dir(file), dir, true); err != nil {
			return nil, err
		}
	}
	return scope, nil
}

// outerFile adds an ignore file whose rules hold from a directory that is dir or above
// it. Told: the project has a say in it.
func (s *scanner) outerFile(above *ignoreScope, file, from, dir string, told bool) (*ignoreScope, error) {
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return above, nil
	}
	text, err := plainfile.Read(file, ignoreFileMost)
	if errors.Is(err, plainfile.ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return above, nil
	}
	lead, err := filepath.Rel(from, dir)
	if err != nil {
		return above, nil
	}
	if told {
		s.seen.IgnoreFiles = append(s.seen.IgnoreFiles, IgnoreFile{file, text})
	}
	list := &ignoreList{rules: parseIgnore(string(text))}
	if lead != "." {
		list.lead = filepath.ToSlash(lead) + "/"
	}
	return &ignoreScope{above: above, git: list}, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// scopeOf adds the ignore files of a directory of the project to those above.
func (s *scanner) scopeOf(here *os.Root, dir string, above *ignoreScope, names []string) (*ignoreScope, error) {
	var git, dlwb *ignoreList
	var err error
	if slices.Contains(names, gitIgnoreFile) {
		if git, err = s.ignoreFile(here, dir, gitIgnoreFile); err != nil {
			return nil, err
		}
	}
	if slices.Contains(names, dlwbIgnoreFile) {
		dlwb, err = s.ignoreFile(here, dir, dlwbIgnoreFile)
	}
	if err != nil || git == nil && dlwb == nil {
		return above, err
	}
	return &ignoreScope{above: above, git: git, dlwb: dlwb}, nil
}

// ignoreFile reads an ignore file. A link is not followed, as in git. Half of a
// file that is too large would be other rules than its owner wrote.
func (s *scanner) ignoreFile(here *os.Root, dir, name string) (*ignoreList, error) {
	p := path.Join(dir, name)
	if info, err := here.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	text, err := plainfile.ReadIn(here, name, ignoreFileMost)
	if errors.Is(err, plainfile.ErrTooLarge) {
		return nil, fromTop(p, err)
	}
	if err != nil {
		return nil, nil
	}
	s.seen.IgnoreFiles = append(s.seen.IgnoreFiles, IgnoreFile{filepath.Join(s.dir, filepath.FromSlash(p)), text})
	return &ignoreList{base: dir, rules: parseIgnore(string(text))}, nil
}

// walk adds what is in a directory, which is open as here; "" is the project's
// own. A name within an open directory costs the system one look, a path from
// the top of the project one for each of its parts.
func (s *scanner) walk(here *os.Root, dir string, above *ignoreScope) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	names, err := readDir(here)
	if err != nil {
		return unreadable(dir, err)
	}
	if dir != "" && slices.Contains(names, ".git") {
		back, err := s.intoRepo(dir, &above)
		if err != nil {
			return err
		}
		defer back()
	}
	scope, err := s.scopeOf(here, dir, above, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if neverSent(name) {
			continue
		}
		p := path.Join(dir, name)
		info, err := here.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fromTop(p, err)
		}
		if err := s.visit(here, p, info, scope); err != nil {
			return err
		}
	}
	return nil
}

// enter adds what is below a directory.
func (s *scanner) enter(above *os.Root, e *treeEntry, scope *ignoreScope) error {
	here, err := above.OpenRoot(path.Base(e.path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed while we looked
	}
	if err != nil {
		return unreadable(e.path, err)
	}
	defer func() { _ = here.Close() }()
	return s.walk(here, e.path, scope)
}

// fromTop has an error of the system name a path of the project.
func fromTop(p string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		inner.Path = p
	}
	return err
}

func unreadable(p string, err error) error {
	return fmt.Errorf("%w; leave it out by a line in %s, or make it readable", fromTop(p, err), dlwbIgnoreFile)
}

func readDir(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}

// visit adds one thing, and what is below it.
func (s *scanner) visit(here *os.Root, p string, info fs.FileInfo, scope *ignoreScope) error {
	said := s.exclude.judge(p, info.IsDir())
	byUs := said != unsaid
	if !byUs {
		said, byUs = scope.judge(p, info.IsDir())
	}
	if !byUs && s.only || said == ignored {
		tracks, below := s.tracks(p, info.IsDir())
		switch {
		case byUs || !tracks && !below:
			return nil
		case info.IsDir(): // of a submodule all that it does not ignore itself
			defer s.onlyTracked(!tracks)()
		}
		said = unsaid
	}
	f := finding{treeEntry: &treeEntry{path: p, mtime: info.ModTime()}, asked: said == wanted && byUs}
	switch {
	case info.IsDir():
		f.kind, f.mode = kindDir, 0o755
		s.seen.found = append(s.seen.found, f)
		n := len(s.seen.found)
		if err := s.enter(here, f.treeEntry, scope); err != nil {
			return err
		}
		if s.only && len(s.seen.found) == n { // nothing of what is tracked is there
			s.seen.found = s.seen.found[:n-1]
		}
		return nil
	case info.Mode().IsRegular():
		f.kind, f.looks = kindFile, s.looks(p)
		f.take(info)
	case info.Mode()&fs.ModeSymlink != 0:
		f.looks = s.looks(p)
		s.visitLink(&f)
	}
	s.seen.found = append(s.seen.found, f)
	return nil
}

// looks says what secret a name is that of; empty: of none.
func (s *scanner) looks(file string) string {
	for _, above := range s.above {
		if what := secretfile.ByName(above + "/" + file); what != "" {
			return what
		}
	}
	return ""
}

// take reads a file's state, as it is now.
func (e *treeEntry) take(info fs.FileInfo) {
	inode, changed := inodeOf(info)
	e.mode = info.Mode().Perm()&^0o022 | 0o400
	e.size, e.mtime, e.fresh = info.Size(), info.ModTime(), info.ModTime()
	if changed.After(e.fresh) {
		e.fresh = changed
	}
	e.stamp = fmt.Sprintf("%d.%d.%d", e.mtime.UnixNano(), changed.UnixNano(), inode)
	e.sum = ""
}

// visitLink tells a link that points inside the project from one that does not.
func (s *scanner) visitLink(f *finding) {
	f.isLink = true
	target, err := s.root.Readlink(f.path)
	if err != nil {
		return
	}
	link, is := s.inside(f.path, filepath.ToSlash(target))
	switch is {
	case leadsOut:
		f.outside = f.path + " -> " + target
		return
	case leadsRound:
		f.round = f.path + " -> " + target
		return
	}
	f.kind, f.mode, f.link = kindLink, 0o777, link
}

// lead is where a link of the project leads.
type lead int

const (
	leadsIn lead = iota
	leadsOut
	leadsRound // back to itself, by links inside
)

// inside gives a link's target in relative form, and where it leads.
func (s *scanner) inside(p, target string) (string, lead) {
	if filepath.IsAbs(filepath.FromSlash(target)) {
		// The node has the project elsewhere: only a relative link is right there.
		rel, err := filepath.Rel(filepath.Join(s.dir, filepath.FromSlash(path.Dir(p))), filepath.FromSlash(target))
		if err != nil {
			return "", leadsOut
		}
		target = filepath.ToSlash(rel)
	}
	if !pointsInside(p, target) {
		return "", leadsOut
	}
	// By the names it stays inside; but one of them may be a link out.
	_, err := s.root.Stat(path.Dir(p) + "/" + target)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // nothing is there
		return target, leadsIn
	case errors.Is(err, syscall.ELOOP):
		return target, s.long(p)
	}
	return target, leadsOut
}

// long is where a link leads that goes by more links than os.Root follows.
func (s *scanner) long(p string) lead {
	top, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return leadsOut
	}
	end, err := filepath.EvalSymlinks(filepath.Join(s.dir, filepath.FromSlash(p)))
	switch below, outside := filepath.Rel(top, end); {
	case errors.Is(err, fs.ErrNotExist):
		return leadsOut // or in: where it ends is not known
	case err != nil:
		return leadsRound
	case outside == nil && filepath.IsLocal(below):
		return leadsIn
	}
	return leadsOut
}

// pointsInside reports whether a relative link at p stays below the root as
// long as no other link is on its way.
func pointsInside(p, target string) bool {
	if target == "" || path.IsAbs(target) || strings.Contains(target, "\x00") {
		return false
	}
	at := path.Join(path.Dir(p), target)
	return at != ".." && !strings.HasPrefix(at, "../")
}
