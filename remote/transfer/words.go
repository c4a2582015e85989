package transfer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
)

// namesShown is how many names a sentence lists before it says "and 7 more".
const namesShown = 5

// warn makes the sentences about what was found.
func (s *sifting) warn() {
	t := s.tree
	slices.Sort(s.outside)
	slices.Sort(s.round)
	slices.Sort(s.special)
	say := func(names []string, format string) {
		if len(names) > 0 {
			t.Warnings = append(t.Warnings, fmt.Sprintf(format, listNames(names)))
		}
	}
	if t.Bytes > largeBytes || t.Files > largeFiles {
		t.Warnings = append(t.Warnings, fmt.Sprintf(
			"The project is large: %s, %s. Most of it is in %s. Put what the training does not need into %s.",
			count(t.Files, "file"), units.Bytes(t.Bytes), t.largest(), dlwbIgnoreFile))
	}
	for _, e := range s.big[:min(len(s.big), namesShown)] {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s is large: %s. If the training does not need it, put the line %s into %s.",
			nameText(e.path), units.Bytes(e.size), exactRule(e.path), dlwbIgnoreFile))
	}
	say(s.outside, "Not sent, because the link points out of the project: %s. Copy what it points to into the project, or fetch it on the node.")
	say(s.round, "Not sent, because the links lead back to themselves: %s.")
	say(s.special, "Not sent, because it is no file, directory or link: %s.")
	t.noticed = t.Warnings
	t.tellHeld()
}

// ignoreEscape makes a path into a pattern that matches only it.
func ignoreEscape(p string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(p)
	if strings.Contains(escaped, "/") {
		return "/" + escaped
	}
	return escaped
}

// largest names the three directories that hold the most.
func (t *Tree) largest() string {
	type share struct {
		dir   string
		files int
		bytes int64
	}
	shares := map[string]*share{}
	for _, e := range t.entries {
		if e.kind == kindDir {
			continue
		}
		dir, _, below := strings.Cut(e.path, "/")
		if !below {
			dir = "the top directory"
		} else {
			dir += "/"
		}
		if shares[dir] == nil {
			shares[dir] = &share{dir: dir}
		}
		shares[dir].files++
		shares[dir].bytes += e.size
	}
	var all []*share
	for _, s := range shares {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *share) int {
		if t.Bytes > largeBytes {
			return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.dir, b.dir))
		}
		return cmp.Or(cmp.Compare(b.files, a.files), cmp.Compare(a.dir, b.dir))
	})
	var texts []string
	for _, s := range all[:min(3, len(all))] {
		texts = append(texts, fmt.Sprintf("%s (%s, %s)", s.dir, count(s.files, "file"), units.Bytes(s.bytes)))
	}
	return strings.Join(texts, ", ")
}

// listNames lists names, the first few of many. Odd ones are quoted.
func listNames(names []string) string {
	var shown []string
	for _, name := range names[:min(len(names), namesShown)] {
		shown = append(shown, nameText(name))
	}
	if more := len(names) - len(shown); more > 0 {
		return fmt.Sprintf("%s and %s more", strings.Join(shown, ", "), digits(more))
	}
	return strings.Join(shown, ", ")
}

// nameText is a name for a sentence.
func nameText(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// count is "1 file", "12,000 files".
func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "y"):
		return digits(n) + " " + what[:len(what)-1] + "ies"
	}
	return digits(n) + " " + what + "s"
}

// digits writes a number with commas between the thousands.
func digits(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
