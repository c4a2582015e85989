// Package environment gives a node the Python that its training runs with:
// the one that is there (system), or a virtual environment made from a
// requirements file (venv). It changes no file of the system: what it makes is
// below the run user's ~/dlwb and ~/.dlwb.
package environment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Runner runs a line of POSIX sh on the node. err is only for trouble with
// reaching the node; a command that fails has an exit code.
type Runner interface {
	Exec(ctx context.Context, line string) (exit int, stdout, stderr []byte, err error)
}

// Streamer is a Runner that can also hand on each line of standard output
// while the command still runs. With one, an installation is seen as it goes.
type Streamer interface {
	Runner
	Stream(ctx context.Context, line string, stdout func(line string)) (exit int, stderr []byte, err error)
}

// The kinds of environment.
const (
	System = "system"
	Venv   = "venv"
	Conda  = "conda"
	Docker = "docker"
)

// Kinds are the kinds of environment that can be made.
var Kinds = []string{System, Venv, Conda, Docker}

// Spec is what is wanted.
type Spec struct {
	Kind string
	// File is what the user calls the requirements file; Content is what is
	// in it.
	File, Content string
	// There is set where File is no file, but the name or the path of a conda
	// environment that is on the node already; it is used as it is.
	There bool
	// Modules are loaded before anything else, as `module load` does.
	Modules []string
	// Python is the interpreter to start from: a path, a name on the node's PATH,
	// or a version (3.12), which is found or installed. Empty: the first python3
	// that has PyTorch, else the first.
	Python string
	// Optional lets the node go on with the Python that is there when the
	// requirements can't be installed, and makes do with it when it has them.
	Optional bool
	// Force makes the environment anew although nothing changed.
	Force bool
	// Before and After are commands that run on the node around the making of the
	// environment, in ~/dlwb/<Cluster>.
	Before, After []string
	// Mounts are what of the node a container sees besides what dlwb put there:
	// PATH or PATH:INSIDE, either with :ro.
	Mounts []string
	// Code is the directory of the code on the node, below the home directory: an
	// image is built from what lies there.
	Code string
	// Cluster names the directory, ~/dlwb/<Cluster>/venv.
	Cluster string
	// Group, where it is set, is the nodes that fetch each package once, and
	// Node is which of them this is.
	Group *Group
	Node  int
	// Variant tells this environment from others of the cluster on the same disk,
	// which are for other processors; empty: it is the first.
	Variant string
	// Joins is set where another node has made the environment, on a disk that this
	// one sees too: it is used as it is.
	Joins bool
}

// Result is what the node will use.
type Result struct {
	// Kind is what was made in the end: system where Optional fell back to it.
	Kind string
	// Python is the absolute path of the interpreter.
	Python string
	// Version is Python's, Torch is PyTorch's; Torch is empty without it.
	Version, Torch string
	// Home is the run user's home directory on the node.
	Home string
	// Env is what the training needs in its environment (K=V).
	Env []string
	// Wrap is what every command of a run is started with: words in front of its
	// own. Python needs none. Empty: commands are started as they are.
	Wrap []string
	// Skipped is set when the environment was already as it should be.
	Skipped bool
	// Text says in a sentence what is used, and why.
	Text string
	// Notes are what a person should know besides.
	Notes []string
	// Mended says what fault of its PyTorch is worked around, which concerns only
	// what imports that; empty: it has none.
	Mended string
}

// OfNode is the environment that a node has among those of its cluster; false: none was
// made. A single one of several nodes lies on a disk that all of them see.
func OfNode(all []Result, node int) (Result, bool) {
	if len(all) == 1 {
		node = 0
	}
	if node < 0 || node >= len(all) {
		return Result{}, false
	}
	return all[node], true
}

// Failure says why a node has no environment.
type Failure struct {
	// Command is what failed; empty when nothing was run.
	Command  string
	ExitCode int
	// LastLines are the last lines of what the command said.
	LastLines []string
	Why, Next string
}

// Error is why, and what to do.
func (f *Failure) Error() string {
	if f.Next == "" {
		return f.Why
	}
	return f.Why + ": " + f.Next
}

// preparer is one Prepare under way.
type preparer struct {
	run      Runner
	spec     Spec
	progress func(string)
	dirs     string        // looked into after the PATH
	keep     string        // instead of lookFile's own; empty: that
	limit    time.Duration // for an installation
	patience time.Duration // with the node that fetches for others; 0: half of that
	onlyLook bool          // nothing is made on the node
	modules  []string      // what loading modules has set (K=V)
	fetched  micromamba    // instead of the one that is known; empty: that
}

// An optional environment must not hold up a run that could do without it.
const (
	optionalLimit = 90 * time.Second
	requiredLimit = time.Hour
)

// Prepare finds out what the node has and makes what is missing. One round
// trip is enough when nothing is. It may be called for many nodes at once.
func Prepare(ctx context.Context, run Runner, spec Spec, progress func(text string)) (Result, error) {
	p := preparer{run: run, spec: spec, progress: progress, dirs: usualDirs, limit: requiredLimit}
	if spec.Optional {
		p.limit = optionalLimit
	}
	return p.prepare(ctx)
}

func (p preparer) prepare(ctx context.Context) (Result, error) {
	if err := p.spec.check(); err != nil {
		return Result{}, err
	}
	var err error
	if p.modules, err = p.load(ctx); err != nil {
		return Result{}, err
	}
	if err := p.before(ctx); err != nil {
		return Result{}, err
	}
	r, err := p.environment(ctx)
	if err != nil {
		return Result{}, err
	}
	r.Env = append(slices.Clone(p.modules), r.Env...)
	return p.after(ctx, r)
}

// environment makes the environment itself.
func (p preparer) environment(ctx context.Context) (Result, error) {
	switch {
	case p.spec.named():
		p.progress("looking for the conda environment " + p.spec.File)
		return p.condaNamed(ctx)
	case p.spec.Kind == Conda:
		return p.conda(ctx)
	case p.spec.Kind == Docker:
		return p.docker(ctx)
	}
	p.progress("looking for Python")
	n, err := p.probe(ctx)
	if err != nil {
		return Result{}, err
	}
	if n, err = p.withVersion(ctx, n); err != nil {
		return Result{}, err
	}
	base, err := n.choose(p.spec.Python)
	if err != nil {
		return Result{}, err
	}
	if p.spec.Kind == System {
		return p.finish(ctx, n, base, p.systemResult(n, base))
	}
	return p.venv(ctx, n, base)
}

func (s Spec) check() error {
	if !slices.Contains(Kinds, s.Kind) {
		return fmt.Errorf("environment kind %q is not one of %s", s.Kind, strings.Join(Kinds, ", "))
	}
	if (s.Kind != System || len(s.Before)+len(s.After) > 0) && (s.Cluster == "" || strings.HasPrefix(s.Cluster, ".") || strings.ContainsAny(s.Cluster, "/\x00\n")) {
		return fmt.Errorf("environment: %q can't be the name of a cluster's directory", s.Cluster)
	}
	if strings.ContainsAny(s.Python, "\x00\n") {
		return fmt.Errorf("environment: %q can't be the name of an interpreter", s.Python)
	}
	return nil
}

// finish adds to a result what holds for every kind, and puts on the node what
// the interpreter needs.
func (p preparer) finish(ctx context.Context, n node, py interpreter, r Result) (Result, error) {
	r.Python, r.Version, r.Torch, r.Home = py.Exe, py.Version, py.Torch, n.home
	if !py.Fault {
		return r, nil
	}
	if err := p.mend(ctx, n); err != nil {
		return Result{}, err
	}
	r.Env = append(r.Env, "PYTHONPATH="+joinPaths(n.home+"/"+compatDir, n.pythonPath))
	r.Mended = fmt.Sprintf(
		"PyTorch %s has a fault on Python %s (torch.distributed's sharded tensors can't be imported); dlwb mends it as it is loaded and changes no file of the system",
		py.Torch, py.Version)
	return r, nil
}

func joinPaths(paths ...string) string {
	var kept []string
	for _, p := range paths {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ":")
}
