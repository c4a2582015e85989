package profiles

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote/engine"
)

var (
	trainForm = pattern.New(`^train[A-Za-z0-9_.-]*\.py$`)
	// resultDirs are where training scripts are used to write.
	resultDirs = []string{"outputs", "output", "results", "runs", "checkpoints"}
)

// maxScript is how much of a script is looked at.
const maxScript = 1 << 20

// Detect makes a profile for a directory out of what lies there: the training
// script, the file of the environment, the directories of results. The notes
// say what was chosen and what else was there. Environments are chosen among
// the kinds that can be made. Nothing is written.
func Detect(dir string, kinds []string) (*Profile, []string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("look for an experiment: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("look for an experiment: %w; name the directory of the training script", err)
	}
	files, dirs := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		st, err := os.Stat(filepath.Join(dir, e.Name())) // follows links
		files[e.Name()] = err == nil && st.Mode().IsRegular()
		dirs[e.Name()] = err == nil && st.IsDir()
	}
	scripts := candidates(files)
	if len(scripts) == 0 {
		scripts = byContent(dir, files)
	}
	if len(scripts) == 0 {
		below := deeper(dir)
		switch {
		case len(below) == 0:
			return nil, nil, fmt.Errorf("look for an experiment in %s: there is no train*.py, main.py or run.py here or below, and no other script here that trains; "+
				"go to the top of the project, or write a %s with run: {command: your_script.py} (dlwb help profile)", dir, FileName)
		case !isTop(dir):
			return nil, nil, fmt.Errorf("look for an experiment in %s: %s lies below, and nothing says that this is the top of its project, which is sent whole; "+
				"go there, or write a %s with run: {command: %s} (dlwb help profile)", dir, below[0], FileName, below[0])
		}
		scripts = below
	}
	p := defaults()
	p.Path = filepath.Join(dir, FileName)
	p.Name = nameFor(p.Path)
	notes := []string{p.start(dir, scripts[0])}
	text, err := readBounded(filepath.Join(dir, scripts[0]), maxScript)
	if err != nil {
		return nil, nil, fmt.Errorf("read the training script: %w", err)
	}
	if len(scripts) > 1 {
		notes[0] += "; not chosen: " + strings.Join(scripts[1:], ", ")
	}
	if files["pyproject.toml"] && !listsPackages(filepath.Join(dir, "pyproject.toml")) {
		files["pyproject.toml"] = false
		notes = append(notes, "pyproject.toml lists no packages in project.dependencies, which is what an environment can be made from")
	}
	notes = append(notes, detectEnvironment(p, files, kinds)...)
	if name, uses := engine.Detect(text); name != "" {
		p.Run.Engine = name
		notes = append(notes, scripts[0]+" uses "+uses+": the engine is "+name)
	}
	return p, append(notes, detectResults(p, dirs, string(text))...), nil
}

// candidates are the files that may be the training script, the best first.
func candidates(files map[string]bool) []string {
	var all []string
	for name, regular := range files {
		if regular && (trainForm.MatchString(name) || name == "main.py" || name == "run.py") {
			all = append(all, name)
		}
	}
	rank := func(name string) int {
		switch {
		case name == "train.py":
			return 0
		case trainForm.MatchString(name):
			return 1
		case name == "main.py":
			return 2
		}
		return 3
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), len(a)-len(b), cmp.Compare(a, b))
	})
	return all
}

var (
	// started is what a script says that is started by itself.
	started = pattern.New(`(?m)^if __name__ *== *["']__main__["']`)
	// trains is what a script says that trains something.
	trains = pattern.New(`(?m)^\s*(import|from) +(torch|tensorflow|keras|jax|flax|lightning|pytorch_lightning|transformers|accelerate|deepspeed|sklearn)\b`)
)

// mostScripts bounds how many files are looked into.
const mostScripts = 200

// byContent finds training scripts under other names, such as fit.py, by what
// is in them: those that both train and are started by themselves first.
func byContent(dir string, files map[string]bool) []string {
	rank := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !files[name] || filepath.Ext(name) != ".py" || len(rank) >= mostScripts || name == "setup.py" || strings.HasPrefix(name, "test_") {
			continue
		}
		text, err := readBounded(filepath.Join(dir, name), maxScript)
		switch {
		case err != nil:
		case trains.Match(text) && started.Match(text):
			rank[name] = 1
		case trains.Match(text):
			rank[name] = 2
		case started.Match(text):
			rank[name] = 3
		}
	}
	return slices.SortedFunc(maps.Keys(rank), func(a, b string) int { return cmp.Or(rank[a]-rank[b], len(a)-len(b), cmp.Compare(a, b)) })
}

// commandWord gives a file name as one word of a command.
func commandWord(name string) string {
	if !strings.ContainsAny(name, " \t'\"\\") {
		return name
	}
	return shellword.Quote(name)
}

// environmentFiles are what an environment can be made from, the best first.
var environmentFiles = []struct{ name, kind string }{
	{"requirements.txt", "venv"}, {"pyproject.toml", "venv"}, {"environment.yml", "conda"}, {"environment.yaml", "conda"}, {"Dockerfile", "docker"},
}

// otherLists are files of packages that no environment is made from, and the command
// that writes what is in them as a requirements.txt. A lock stands beside a file that an
// environment may be made from without it, with other versions.
var otherLists = []struct {
	name, export string
	lock         bool
}{
	{"uv.lock", "uv export --no-emit-project -o requirements.txt", true}, {"poetry.lock", "poetry export -o requirements.txt", true},
	{"pdm.lock", "pdm export -o requirements.txt", true}, {"Pipfile", "pipenv requirements > requirements.txt", false},
	{"setup.py", "uv pip compile setup.py -o requirements.txt", false},
}

// unread names the files of packages that an environment takes no notice of.
func unread(env Environment, files map[string]bool) (notes []string) {
	for _, f := range otherLists {
		switch {
		case !files[f.name]:
		case env.Kind == "system":
			return []string{f.name + " is there, and no environment is made from one; this makes what is: " + f.export}
		case f.lock && env.File == "pyproject.toml":
			notes = append(notes, f.name+" is not followed: the environment gets the newest versions that pyproject.toml allows; those of the lock: "+f.export)
		}
	}
	return notes
}

// listed is a pyproject.toml with project.dependencies that are not empty.
var listed = pattern.New(`(?ms)^\[project\]\s*$(?:[^\[]|[^\n]\[)*?^dependencies *= *\[\s*["']`)

func listsPackages(name string) bool {
	text, err := readBounded(name, maxScript)
	return err == nil && listed.Match(text)
}

func detectEnvironment(p *Profile, files map[string]bool, kinds []string) (notes []string) {
	for _, f := range environmentFiles {
		switch {
		case !files[f.name]:
		case !slices.Contains(kinds, f.kind):
			notes = append(notes, fmt.Sprintf("%s is there, but this dlwb makes no %s environments, only %s: "+
				"what the script needs must be on the node, or in a requirements.txt", f.name, f.kind, strings.Join(kinds, " and ")))
		case p.Environment.Kind == "system":
			p.Environment.Kind, p.Environment.File = f.kind, f.name
			notes = append(notes, fmt.Sprintf("%s: the environment is {%s: %s}", f.name, f.kind, f.name))
		default:
			notes = append(notes, fmt.Sprintf("%s is there too; {%s: %s} would use it", f.name, f.kind, f.name))
		}
	}
	if notes == nil {
		notes = []string{"no requirements.txt, environment.yml or Dockerfile was found"}
	}
	notes = append(notes, unread(p.Environment, files)...)
	if p.Environment.Kind == "system" {
		notes = append(notes, "the environment is the Python that is on the node")
	}
	return notes
}

// detectResults guesses where the results will lie: directories with a usual
// name that are there, or that the script names in quotes.
func detectResults(p *Profile, dirs map[string]bool, script string) []string {
	for _, name := range resultDirs {
		named := regexp.MustCompile(`["'](\./)?` + name + `(/[^"'\n]*)?["']`)
		if dirs[name] || named.MatchString(script) {
			p.Results.Paths = append(p.Results.Paths, name)
		}
	}
	if len(p.Results.Paths) == 0 {
		return []string{"no directory of results was found: add results: {paths: [outputs/]} to bring files home"}
	}
	return []string{"results: " + strings.Join(p.Results.Paths, ", ")}
}
