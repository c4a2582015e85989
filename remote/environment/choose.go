package environment

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// choose picks the interpreter to start from.
func (n node) choose(want string) (interpreter, error) {
	if want != "" {
		if n.wanted != nil {
			return *n.wanted, nil
		}
		return interpreter{}, n.notThere(want)
	}
	if len(n.pythons) == 0 {
		return interpreter{}, n.noPython()
	}
	for _, i := range n.pythons {
		if i.Torch != "" {
			return i, nil
		}
	}
	return n.pythons[0], nil
}

func (n node) noPython() *Failure {
	f := &Failure{Why: "there is no Python 3 on the node", Next: n.install("python", "")}
	if len(n.broken) > 0 {
		f.Why = fmt.Sprintf("there is no Python 3 on the node that runs (%s says: %s)", n.broken[0].path, n.broken[0].why)
		if strings.Contains(n.broken[0].why, "PYTHONHOME is set") { // another one would not run either
			f.Next = "have the login of the node not set PYTHONHOME (its shell's startup files, or a module, do)"
		}
	}
	return f
}

func (n node) notThere(want string) *Failure {
	f := &Failure{Why: fmt.Sprintf("the Python of the profile, %s, is not on the node", want)}
	if IsVersion(want) {
		f.Why = fmt.Sprintf("Python %s, which the profile asks for, is not on the node", want)
	}
	for _, b := range n.broken {
		if b.role == "want" && !strings.Contains(b.why, "not found") {
			f.Why = fmt.Sprintf("the Python of the profile, %s, does not run on the node: %s", want, b.why)
		}
	}
	if len(n.pythons) == 0 {
		f.Next = n.install("python", "")
		return f
	}
	var there []string
	for _, i := range n.pythons {
		there = append(there, i.String())
	}
	f.Next = "set environment.python to one that is there, or leave it out: " + strings.Join(there, ", ")
	return f
}

// systemResult says which of the node's own interpreters is used, and why.
func (p preparer) systemResult(n node, base interpreter) Result {
	return Result{Kind: System, Text: base.String() + n.whyNotFirst(base), Notes: n.notes(base), Env: n.onPath(base)}
}

// onPath puts the programs beside the chosen interpreter first, as activating its
// environment would: a script of shell that says python, and commands such as papermill,
// mean this one. What the PATH has already stays in its order, which is the user's.
func (n node) onPath(base interpreter) []string {
	dirs, dir := strings.Split(n.path, ":"), path.Dir(base.Exe)
	onPath := func(dir string) bool { return slices.Contains(dirs, dir) }
	first := len(n.pythons) > 0 && n.pythons[0].Exe == base.Exe && onPath(path.Dir(n.pythons[0].Path))
	if first || onPath(dir) || !path.IsAbs(dir) {
		return nil
	}
	return []string{"PATH=" + joinPaths(dir, n.path)}
}

// whyNotFirst explains a choice that is not what `python3` would start.
func (n node) whyNotFirst(base interpreter) string {
	if n.wanted != nil || len(n.pythons) == 0 || n.pythons[0].Exe == base.Exe {
		return ""
	}
	return fmt.Sprintf("; the python3 on PATH (%s) has no PyTorch", n.pythons[0].Version)
}

func (n node) notes(base interpreter) []string {
	var notes []string
	for _, b := range n.broken {
		notes = append(notes, fmt.Sprintf("%s does not run: %s", b.path, b.why))
	}
	if base.Torch != "" {
		return notes
	}
	for _, i := range n.pythons {
		if i.Torch != "" {
			return append(notes, fmt.Sprintf("%s has PyTorch %s: leave environment.python out to use it", i.Exe, i.Torch))
		}
	}
	return append(notes, "to train with PyTorch: "+n.install("torch", ""))
}
