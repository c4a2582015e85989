package transfer

import (
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/remote/transfer/gitfiles"
)

// tracked is what git tracks of a part of a repository, which is read when it is asked
// for the first time: only of what is ignored it matters.
type tracked struct {
	base string // where the part begins, below the project; with a slash behind, or empty
	read func() *gitfiles.Index
	once *gitfiles.Index
	was  bool
}

// newTracked is what is tracked below a directory of a repository. Where that can't be
// read nothing is, which is told.
func newTracked(s *scanner, repo gitfiles.Repo, below string) *tracked {
	return &tracked{read: func() *gitfiles.Index {
		index, err := repo.Tracked(below)
		if err != nil {
			s.seen.notes = append(s.seen.notes, "What git tracks is not known, and not sent where a .gitignore names it: "+err.Error()+".")
		}
		return index
	}}
}

func (t *tracked) index() *gitfiles.Index {
	if !t.was {
		t.was, t.once = true, t.read()
	}
	return t.once
}

// tracks reports whether git tracks a thing, or something below it. A submodule is
// tracked with all in it that its own repository does not ignore.
func (s *scanner) tracks(p string, isDir bool) (it, below bool) {
	if s.tracked == nil {
		return false, false
	}
	name := strings.TrimPrefix(p, s.tracked.base)
	if !isDir {
		return s.tracked.index().Has(name), false
	}
	return s.tracked.index().Module(name), s.tracked.index().Below(name)
}

// onlyTracked has nothing count that is not tracked, or all, until what it returns is
// called: git ignores the directory that is entered, or does not.
func (s *scanner) onlyTracked(only bool) (back func()) {
	was := s.only
	s.only = only
	return func() { s.only = was }
}

// intoRepo enters a directory of the project that is a repository of its own, as a
// submodule is, until what it returns is called.
func (s *scanner) intoRepo(dir string, above **ignoreScope) (back func(), err error) {
	top := filepath.Join(s.dir, filepath.FromSlash(dir))
	repo, ok := gitfiles.At(top)
	if !ok {
		return func() {}, nil
	}
	was := s.tracked
	s.tracked = newTracked(s, repo, "")
	s.tracked.base = dir + "/"
	list, err := s.outerFile(nil, repo.Exclude(), top, top, true)
	if list != nil {
		list.git.base, list.above = dir, *above
		*above = list
	}
	return func() { s.tracked = was }, err
}
