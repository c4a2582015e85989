package planning

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/secretfile"
	"github.com/dlwb/dlwb/remote/environment"
)

// A file of requirements may name others. One text goes to the nodes, so that they
// are in it: what any of them says makes the environment anew when it changes.

var (
	includes = pattern.New(`^(-r|--requirement|-c|--constraint)(?:\s*=\s*|\s+|)([^\s=].*)$`)
	localOne = pattern.New(`^(?:(?:-e|--editable)(?:\s*=\s*|\s+)(\S+)|(\.{1,2}(?:/\S*)?(?:\[[^\]]*\])?))\s*(?:;.*|#.*)?$`)
)

// inclusion reads a file of requirements and those that it names.
type inclusion struct {
	root  *os.Root // the directory of the code
	left  int      // bytes
	under []string // the files that are being read, each named by the one before it
}

// included is a text of requirements with the files in it that it names.
func included(dir, name, text string) (string, error) {
	rel, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(rel) {
		return text, nil // one that lies elsewhere by leave: nothing beside it is sent
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	i := &inclusion{root: root, left: requirementsMost}
	return i.expand(filepath.ToSlash(rel), text, false)
}

func (i *inclusion) expand(name, text string, constraint bool) (string, error) {
	i.under = append(i.under, name)
	defer func() { i.under = i.under[:len(i.under)-1] }()
	var out strings.Builder
	for n, line := range strings.Split(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		word := strings.TrimSpace(line)
		if m := includes.FindStringSubmatch(word); m != nil && !strings.Contains(m[2], "://") {
			more, err := i.file(name, m[2], constraint || strings.HasPrefix(strings.TrimLeft(m[1], "-"), "c"))
			if err != nil {
				return "", fmt.Errorf("%s:%d: %s: %w", name, n+1, word, err)
			}
			out.WriteString(more)
			continue
		}
		if m := localOne.FindStringSubmatch(word); m != nil && !strings.Contains(m[1], "://") && !strings.Contains(m[1], "+") {
			return "", fmt.Errorf("%s:%d: %s: the code is not on the nodes yet when its environment is made: name what it needs here, "+
				`and let the script find the package itself by run.env: {PYTHONPATH: .} (or src)`, name, n+1, word)
		}
		if constraint && word != "" && !strings.HasPrefix(word, "#") {
			line = environment.Constraint + word
		}
		out.WriteString(line + "\n")
	}
	return strings.TrimSuffix(out.String(), "\n") + "\n", nil
}

// file reads one that another names.
func (i *inclusion) file(from, word string, constraint bool) (string, error) {
	word, _, _ = strings.Cut(word, " #")
	rel := path.Join(path.Dir(from), strings.Trim(strings.TrimSpace(word), `"'`))
	if slices.Contains(i.under, rel) {
		return "", fmt.Errorf("%s names itself", rel)
	}
	if !filepath.IsLocal(filepath.FromSlash(rel)) || path.IsAbs(word) {
		return "", errors.New("it is outside of the code directory: put it there")
	}
	text, err := plainfile.ReadIn(i.root, filepath.FromSlash(rel), int64(i.left))
	if err != nil {
		return "", err
	}
	i.left -= len(text)
	what := secretfile.ByName(rel)
	if what == "" {
		what = secretfile.ByContent(rel, text)
	}
	if what != "" {
		return "", fmt.Errorf("%s is %s", rel, what)
	}
	return i.expand(rel, string(text), constraint)
}
