package environment

import (
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// Constraint begins a line of requirements that only says which version is allowed:
// of a file that others name with -c. venv.py gives pip a file of them.
const Constraint = "#dlwb-constraint: "

// requirement is a line that can be checked without pip: a name, and perhaps
// the least version.
type requirement struct{ name, least string }

var (
	simple = pattern.New(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:>=\s*([0-9]+(?:\.[0-9]+)*))?$`)
	// indexes are options that only say where packages come from.
	indexes = pattern.New(`^(?:-i|-f|--index-url|--extra-index-url|--find-links|--no-index|--prefer-binary|--trusted-host)(?:[ =]|$)`)
)

// simpleRequirements gives the requirements if every line is one that can be
// checked without pip.
func simpleRequirements(content string) ([]requirement, bool) {
	var all []requirement
	if strings.Contains(content, Constraint) {
		return nil, false
	}
	for _, line := range strings.Split(content, "\n") {
		if i := strings.Index(line+" ", "# "); i == 0 || i > 0 && line[i-1] == ' ' {
			line = line[:i]
		}
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || indexes.MatchString(line) {
			continue
		}
		m := simple.FindStringSubmatch(line)
		if m == nil {
			return nil, false
		}
		all = append(all, requirement{name: m[1], least: m[2]})
	}
	return all, true
}

// sharable reports whether wheels that another node has fetched are as good as
// what pip would find: each line is a package by its name, not a file or an
// address of one, and no option says how to get it.
func sharable(content string) bool {
	if strings.Contains(content, Constraint) {
		return false
	}
	for line := range strings.Lines(content) {
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, "--hash"):
		case indexes.MatchString(line):
			if strings.HasSuffix(line, `\`) {
				return false
			}
		case !named.MatchString(line) || archives.MatchString(line):
			return false
		}
	}
	return true
}

var (
	named    = pattern.New(`^[A-Za-z0-9][^/@]*$`)
	archives = pattern.New(`(?i)\.(?:whl|zip|tar|tgz|gz|bz2|xz)\b`)
)

// namesToLookFor are the packages which, if an interpreter has them, spare an
// optional environment.
func (p preparer) namesToLookFor() []string {
	if p.spec.Kind != Venv || !p.spec.Optional || p.spec.Force {
		return nil
	}
	all, _ := simpleRequirements(p.spec.Content)
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.name
	}
	return names
}

// meets reports whether an interpreter has everything in the requirements.
func (i interpreter) meets(content string) bool {
	all, ok := simpleRequirements(content)
	if !ok || len(all) == 0 {
		return false
	}
	for _, r := range all {
		have := i.Packages[r.name]
		if have == "" || !atLeast(have, r.least) {
			return false
		}
	}
	return true
}

// atLeast compares the numbers of two versions.
func atLeast(have, least string) bool {
	h, l := numbers(have), numbers(least)
	for i := range l {
		switch {
		case i >= len(h) && l[i] > 0:
			return false
		case i >= len(h) || h[i] == l[i]:
		default:
			return h[i] > l[i]
		}
	}
	return true
}

var leadingNumbers = pattern.New(`^[0-9]+(?:\.[0-9]+)*`)

func numbers(version string) []int {
	var all []int
	for _, part := range strings.Split(leadingNumbers.FindString(version), ".") {
		if n, err := strconv.Atoi(part); err == nil {
			all = append(all, n)
		}
	}
	return all
}
