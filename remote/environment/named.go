package environment

import (
	"context"
	_ "embed" // the script
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/shellword"
)

// namedShell finds a conda environment that is there.
//
//go:embed scripts/named.sh
var namedShell string

// named reports whether a conda environment is meant that is on the node already.
func (s Spec) named() bool { return s.Kind == Conda && s.There }

// namedLine is the line of sh that finds it.
func (p preparer) namedLine() string {
	var line strings.Builder
	for _, v := range [][2]string{{"name", p.spec.File}, {"probe", probePython}, {"activate", activatePython}} {
		fmt.Fprintf(&line, "%s=%s\n", v[0], shellword.Quote(v[1]))
	}
	return line.String() + namedShell
}

// condaNamed gives the interpreter of a conda environment that is there, as it is.
func (p preparer) condaNamed(ctx context.Context) (Result, error) {
	if p.spec.Python != "" {
		return Result{}, fmt.Errorf("environment: Python %s can't be chosen beside a conda environment: %s has its own", p.spec.Python, p.spec.File)
	}
	exit, out, errs, err := p.run.Exec(ctx, p.namedLine())
	if err != nil {
		return Result{}, fmt.Errorf("environment: looking for the conda environment: %w", err)
	}
	if exit != 0 {
		return Result{}, &Failure{Command: "sh", ExitCode: exit, LastLines: lastLines(errs), Why: "the node could not be searched for conda environments", Next: "look at what its shell says: dlwb ssh"}
	}
	n := readNode(out)
	if n.venv == nil {
		return Result{}, notNamed(p.spec.File, told(out))
	}
	said := told(out)
	text := fmt.Sprintf("%s; the conda environment %s, as it is there", n.venv, p.spec.File)
	r, err := p.condaResult(ctx, n, text, true)
	for _, other := range said["also"] {
		r.Notes = append(r.Notes, fmt.Sprintf("there is another environment of that name, %s: give the path to use it", other))
	}
	return r, err
}

// told are the values of the lines that a script has said, by their word.
func told(out []byte) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3); len(f) == 3 && f[0] == "dlwb" {
			all[f[1]] = append(all[f[1]], f[2])
		}
	}
	return all
}

// mostNamed bounds the environments that a failure names.
const mostNamed = 12

// notNamed is the failure of a name that means nothing on the node.
func notNamed(name string, said map[string][]string) *Failure {
	f := &Failure{Why: fmt.Sprintf("there is no conda environment %s on the node", name),
		Next: "make it there, or name the file to make one from (environment.yml)"}
	if at := said["at"]; len(at) > 0 {
		f.Why, f.Next = fmt.Sprintf("the Python of the conda environment %s does not run: %s", at[0], strings.Join(said["broken"], "")), "make the environment there anew"
		return f
	}
	if len(said["there"]) == 0 {
		return f
	}
	var there []string
	for _, at := range said["there"] {
		word := at
		if path.Base(path.Dir(at)) == "envs" {
			word = path.Base(at) + " (" + at + ")"
		}
		if !slices.Contains(there, word) && len(there) < mostNamed {
			there = append(there, word)
		}
	}
	f.Next = "take one that is there: " + strings.Join(there, ", ")
	return f
}
