package profiles

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// lowest is how far below a project its training script is looked for, and
// mostDirs in how many directories.
const (
	lowest   = 3
	mostDirs = 400
)

// tops are what lies at the top of a project. A directory without any of them may hold
// many projects, or a home, all of which would be sent.
var tops = []string{".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "environment.yml", "environment.yaml", "Dockerfile", "Makefile"}

// isTop reports whether a directory is the top of a project.
func isTop(dir string) bool {
	if home, err := os.UserHomeDir(); err == nil && filepath.Clean(home) == dir {
		return false
	}
	return slices.ContainsFunc(tops, func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil })
}

// notCode are directories in which no training script of the project's own lies.
var notCode = []string{"node_modules", "site-packages", "venv", "env", "build", "dist", "test", "tests", "docs", "third_party", "outputs", "wandb"}

// deeper finds training scripts below a project that has none at its top, such as
// scripts/train.py or src/mypkg/train.py: the nearest first, with slashes.
func deeper(dir string) []string {
	var found []string
	level, seen := []string{""}, 0
	for range lowest + 1 {
		var next []string
		for _, at := range level {
			if seen++; seen > mostDirs {
				return found
			}
			entries, _ := os.ReadDir(filepath.Join(dir, at))
			files := map[string]bool{}
			for _, e := range entries { // what is a link is not followed
				files[e.Name()] = e.Type().IsRegular()
				if e.IsDir() && e.Name()[0] != '.' && !strings.HasPrefix(e.Name(), "__") && !slices.Contains(notCode, e.Name()) {
					next = append(next, path.Join(at, e.Name()))
				}
			}
			if at != "" && !files["pyvenv.cfg"] {
				for _, name := range candidates(files) {
					found = append(found, path.Join(at, name))
				}
			}
		}
		slices.SortFunc(next, func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) })
		level = next
	}
	return found
}

// inPackage is how a script that is part of a package is started, by which its
// imports of other parts work: as a module, from the directory in which the package
// lies. The module is "" where the script is part of none.
func inPackage(dir, script string) (module, from string) {
	from = path.Dir(script)
	for from != "." {
		if st, err := os.Stat(filepath.Join(dir, from, "__init__.py")); err != nil || !st.Mode().IsRegular() {
			break
		}
		from = path.Dir(from)
	}
	inside := strings.TrimPrefix(script, from+"/")
	module = strings.ReplaceAll(strings.TrimSuffix(inside, ".py"), "/", ".")
	if !strings.Contains(inside, "/") || !moduleForm.MatchString(module) {
		return "", ""
	}
	return module, from
}

var moduleForm = pattern.New(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$`)

// start makes a script what a profile runs, and says so.
func (p *Profile) start(dir, script string) string {
	module, from := inPackage(dir, script)
	if module == "" {
		p.Run.Command = commandWord(script)
		return script + " is the training script"
	}
	p.Run.Command = "python -m " + module
	if from != "." {
		p.Run.Env = append(p.Run.Env, Var{Name: "PYTHONPATH", Value: from})
	}
	return script + " is the training script, of a package: python -m " + module + " runs it"
}
