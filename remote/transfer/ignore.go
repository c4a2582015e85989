package transfer

import (
	"path"
	"strings"
)

// The names of the files that hold ignore rules. They may lie in any
// directory of a project.
const (
	gitIgnoreFile  = ".gitignore"
	dlwbIgnoreFile = ".dlwbignore"
)

// ignoreRule is one line of an ignore file.
type ignoreRule struct {
	negated  bool   // "!": what matches is wanted after all
	dirOnly  bool   // it ended in a slash
	byName   bool   // without a slash: it is matched against the last component
	literal  string // what stands before the first wildcard
	wild     glob   // the rest
	anything bool   // there is a rest
}

// ignoreList is the rules of one file.
type ignoreList struct {
	// Exactly one of these is set, or none: the directory of the file below
	// the project's, or the way from the file's directory to the project's.
	base, lead string
	rules      []ignoreRule
}

// parseIgnore reads ignore rules. There are no errors: as in git, what can't
// be understood matches nothing.
func parseIgnore(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		line, _, _ = strings.Cut(line, "\x00")
		if line == "" || line[0] == '#' {
			continue
		}
		if r, ok := parseIgnoreRule(trimSpaces(line)); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

// trimSpaces takes the spaces off the end of a line, save those that a
// backslash protects.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = i + 1
	}
	return line[:min(end, len(line))]
}

func parseIgnoreRule(p string) (r ignoreRule, ok bool) {
	p, r.negated = strings.CutPrefix(p, "!")
	p, r.dirOnly = strings.CutSuffix(p, "/")
	r.byName = !strings.Contains(p, "/")
	p = strings.TrimPrefix(p, "/")
	r.literal = p
	if i := strings.IndexAny(p, `*?[\`); i >= 0 {
		r.literal, r.anything = p[:i], true
		// Compiled from here on, not from the start: so that "a**" at the
		// beginning of the rest counts as a whole component, as it does in git.
		if r.wild, ok = compileGlob(p[i:]); !ok {
			return r, false
		}
	}
	return r, p != ""
}

// matches reports whether a path, as seen from the rule's directory, matches.
func (r *ignoreRule) matches(name string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.byName {
		name = path.Base(name)
	}
	rest, ok := strings.CutPrefix(name, r.literal)
	if !ok {
		return false
	}
	if !r.anything {
		return rest == ""
	}
	return r.wild.match(rest)
}

// verdict is what rules say of a path.
type verdict int

const (
	unsaid verdict = iota
	ignored
	wanted // by a "!" rule
)

// judge asks the list about a path of the project. The last rule that matches
// decides.
func (l *ignoreList) judge(p string, isDir bool) verdict {
	if l == nil {
		return unsaid
	}
	if l.base != "" {
		p = p[len(l.base)+1:]
	}
	name := l.lead + p
	for i := len(l.rules) - 1; i >= 0; i-- {
		if r := &l.rules[i]; r.matches(name, isDir) {
			if r.negated {
				return wanted
			}
			return ignored
		}
	}
	return unsaid
}

// ignoreScope is the rules that hold in one directory: its own and those of
// the directories above it.
type ignoreScope struct {
	above     *ignoreScope
	git, dlwb *ignoreList
}

// judge asks the rules about a path. Those of .dlwbignore stand on top: only
// where none of them says anything, the .gitignore files are asked. In each
// kind, the file nearest to the path is asked first.
func (s *ignoreScope) judge(p string, isDir bool) (v verdict, byDlwb bool) {
	for at := s; at != nil; at = at.above {
		if v := at.dlwb.judge(p, isDir); v != unsaid {
			return v, true
		}
	}
	for at := s; at != nil; at = at.above {
		if v := at.git.judge(p, isDir); v != unsaid {
			return v, false
		}
	}
	return unsaid, false
}

// neverSent reports whether a name is never part of a project: what belongs to
// git, to dlwb or to a cache of Python's. No rule brings it back.
func neverSent(name string) bool {
	switch name {
	case ".git", "__pycache__", ".ipynb_checkpoints":
		return true
	}
	return strings.HasSuffix(name, ".pyc") || strings.HasPrefix(name, ".dlwb")
}
