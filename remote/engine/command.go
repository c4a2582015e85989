package engine

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

var (
	assignment = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*=`)
	// barePython is an interpreter by name only. The environment decides which
	// one that is; the first on the PATH may be one without PyTorch.
	barePython = pattern.New(`^python3?$`)
)

// ofShells are commands that only a shell has, and what takes their place.
var ofShells = map[string]string{
	"export": "set variables in run.env", "set": "set variables in run.env", "cd": "write the path of the script from the code directory",
	"source": "the environment of the profile is active already", ".": "the environment of the profile is active already",
	"module": "name modules in machines.modules", "ulimit": "write what must come first in environment.before", "eval": "write what it comes to",
}

// elsewhere are programs that start a command where dlwb does not see it, and what
// takes their place.
var elsewhere = map[string]string{
	"sbatch": inSlurm, "salloc": inSlurm, "docker run": inContainer, "podman run": inContainer,
	"tmux": aloneAnyway, "screen": aloneAnyway, "conda activate": "the environment of the profile is active already",
	"kubectl": "for a cluster of Kubernetes there is provider: kubernetes",
}

const (
	inSlurm     = "for a cluster of Slurm there is provider: slurm; write the command that its script starts"
	inContainer = "environment: {docker: IMAGE} has every rank in a container; write only what that starts"
	aloneAnyway = "a run goes on without a terminal; write only what that starts"
)

// executable turns the words of a training command into what is executed: a
// script or a -m module gets the interpreter in front, a bare python or
// python3 becomes the interpreter, and anything else stays as it is.
func executable(command []string, python string) ([]string, error) {
	if len(command) == 0 || command[0] == "" {
		return nil, fmt.Errorf("run.command is empty: write the training script and its arguments")
	}
	first := command[0]
	switch {
	case assignment.MatchString(first):
		name, _, _ := strings.Cut(first, "=")
		return nil, fmt.Errorf("run.command begins with %s=…: set it in run.env instead, as %s: value", name, name)
	case ofShells[first] != "":
		return nil, fmt.Errorf("run.command begins with %s, which only a shell has: %s, or write sh -c '…'", first, ofShells[first])
	case elsewhere[path.Base(first)] != "":
		return nil, startedElsewhere(path.Base(first))
	case elsewhere[path.Base(first)+" "+word(command, 1)] != "":
		return nil, startedElsewhere(path.Base(first) + " " + command[1])
	case strings.HasSuffix(first, ".py"):
		return append([]string{python}, command...), nil
	case first == "-m" && len(command) == 1:
		return nil, fmt.Errorf("run.command ends after -m: name the module to run")
	case first == "-m":
		return append([]string{python}, command...), nil
	case strings.HasPrefix(first, "-"):
		return nil, fmt.Errorf("run.command begins with %s, which is an option and no program: write python %[1]s …, if it is one of Python's", first)
	case barePython.MatchString(first):
		return append([]string{python}, command[1:]...), nil
	}
	return slices.Clone(command), nil
}

func startedElsewhere(program string) error {
	return fmt.Errorf("run.command begins with %s: %s (or sh -c '%[1]s …', if dlwb is to know nothing of it)", program, elsewhere[program])
}

// MergeEnv joins lists of K=V. A later value replaces an earlier one in its
// place, except that PYTHONPATH gathers all values, the earlier in front.
func MergeEnv(lists ...[]string) []string {
	var merged []string
	at := map[string]int{}
	for _, list := range lists {
		for _, kv := range list {
			name, value, _ := strings.Cut(kv, "=")
			i, seen := at[name]
			switch {
			case !seen:
				at[name] = len(merged)
				merged = append(merged, kv)
			case name != "PYTHONPATH" || strings.HasSuffix(merged[i], "="):
				merged[i] = kv
			case value != "":
				merged[i] += ":" + value
			}
		}
	}
	return merged
}

func isSet(env []string, name string) bool {
	for _, kv := range env {
		if n, _, _ := strings.Cut(kv, "="); n == name {
			return true
		}
	}
	return false
}

// unset leaves out of env whatever the user set.
func unset(env, user []string) []string {
	kept := env[:0]
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); !isSet(user, name) {
			kept = append(kept, kv)
		}
	}
	return kept
}
