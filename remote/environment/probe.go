package environment

import (
	"bytes"
	"context"
	_ "embed" // the scripts
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/shellword"
)

//go:embed scripts/probe.sh
var probeShell string

//go:embed scripts/probe.py
var probePython string

//go:embed scripts/stamp.sh
var stampShell string

// interpreter is one Python of a node, as it describes itself.
type interpreter struct {
	// Path is how it was found; Exe is what it calls itself, which differs
	// for the shims of version managers.
	Path    string `json:"-"`
	Exe     string `json:"exe"`
	Version string `json:"version"`
	Torch   string `json:"torch"`
	// Fault is set when its PyTorch needs the mend.
	Fault bool `json:"fault"`
	// Venv is set when it can make virtual environments with pip inside, Modules
	// when it can make them without.
	Venv     bool              `json:"venv"`
	Modules  bool              `json:"modules"`
	Packages map[string]string `json:"packages"`
}

// String is the interpreter as a person would name it.
func (i interpreter) String() string {
	s := fmt.Sprintf("Python %s (%s)", i.Version, i.Exe)
	if i.Torch == "" {
		return s + " without PyTorch"
	}
	return s + " with PyTorch " + i.Torch
}

// broken is a python3 that does not run.
type broken struct{ role, path, why string }

// node is what one look at a node told.
type node struct {
	home, path, pythonPath string
	uid, kernel, distro    string
	compat, installed, uv  string
	env                    string        // JSON: what activating a conda environment sets
	pythons                []interpreter // on the PATH first, each once
	wanted, venv           *interpreter
	broken                 []broken
	// said are the lines about what is steady, without the virtual
	// environment's; steady is set when they may be kept for the next look.
	said   []string
	watch  []string // what they hang on
	steady bool
}

// venvDir is below the home directory.
func (p preparer) venvDir() string {
	if p.spec.Kind != Venv {
		return ""
	}
	return "dlwb/" + p.spec.Cluster + "/venv" + p.spec.suffix()
}

// suffix tells the directory of an environment from that of another processor.
func (s Spec) suffix() string {
	if s.Variant == "" {
		return ""
	}
	return "." + s.Variant
}

// lookFile is where the node keeps what its interpreters said, so that a look
// at a node where nothing changed starts none of them.
func (p preparer) lookFile() string {
	switch {
	case p.spec.Force:
		return ""
	case p.keep != "":
		return p.keep
	case p.spec.Kind == Venv:
		return p.venvDir() + "/.dlwb-look"
	}
	return ".dlwb/look"
}

// lookKey is what has to be the same for that to be of use.
func (p preparer) lookKey() string {
	return digest("look 1", probePython, stampShell, p.spec.Python, strings.Join(p.namesToLookFor(), " "), p.dirs, p.venvDir())
}

// probeLine is the line of sh that looks at a node.
func (p preparer) probeLine() string {
	var line strings.Builder
	for _, v := range [][2]string{
		{"probe", probePython},
		{"want", p.spec.Python},
		{"names", strings.Join(p.namesToLookFor(), " ")},
		{"dirs", p.dirs},
		{"venv", p.venvDir()},
		{"look", p.lookFile()},
		{"key", p.lookKey()},
	} {
		fmt.Fprintf(&line, "%s=%s\n", v[0], shellword.Quote(v[1]))
	}
	return line.String() + stampShell + probeShell
}

func (p preparer) probe(ctx context.Context) (node, error) {
	exit, out, errs, err := p.run.Exec(ctx, p.probeLine())
	if err != nil {
		return node{}, fmt.Errorf("environment: looking for Python: %w", err)
	}
	if exit != 0 {
		return node{}, &Failure{
			Command: "sh", ExitCode: exit, LastLines: lastLines(errs),
			Why: "the node could not be searched for Python", Next: "look at what its shell says: dlwb ssh",
		}
	}
	return readNode(out), nil
}

// readNode takes what the probe said and passes over everything else, such as
// the greeting of a talkative shell.
func readNode(out []byte) node {
	var n node
	for _, line := range strings.Split(string(out), "\n") {
		f := strings.SplitN(line, "\t", 5)
		if len(f) < 3 || f[0] != "dlwb" {
			continue
		}
		n.remember(f, line)
		switch {
		case f[1] == "python" && len(f) == 5:
			n.addPython(f[2], f[3], f[4])
		case f[1] == "bad" && len(f) == 5:
			n.broken = append(n.broken, broken{role: f[2], path: f[3], why: f[4]})
		default:
			n.set(f[1], strings.Join(f[2:], "\t"))
		}
	}
	return n
}

// remember keeps a line for the next look.
func (n *node) remember(f []string, line string) {
	switch f[1] {
	case "python", "bad":
		if f[2] == "venv" {
			return
		}
	case "watch":
		n.watch = append(n.watch, f[2])
	case "uid", "kernel", "distro":
	case "steady":
		n.steady = true
	default:
		return
	}
	n.said = append(n.said, line)
}

func (n *node) set(key, value string) {
	fields := map[string]*string{
		"home": &n.home, "path": &n.path, "pythonpath": &n.pythonPath, "uid": &n.uid,
		"kernel": &n.kernel, "distro": &n.distro, "compat": &n.compat, "installed": &n.installed, "uv": &n.uv, "env": &n.env,
	}
	if to := fields[key]; to != nil {
		*to = value
	}
}

// addPython files an interpreter under its role.
func (n *node) addPython(role, path, described string) {
	i := interpreter{Path: path}
	if json.Unmarshal([]byte(described), &i) != nil || i.Exe == "" {
		return
	}
	switch role {
	case "want":
		n.wanted = &i
	case "venv":
		n.venv = &i
	default:
		for _, other := range n.pythons {
			if other.Exe == i.Exe && other.Torch == i.Torch {
				return
			}
		}
		n.pythons = append(n.pythons, i)
	}
}

// lastLines gives the end of an output, for a person.
func lastLines(out []byte) []string {
	out = bytes.TrimSpace(out)
	if len(out) == 0 {
		return nil
	}
	lines := strings.Split(string(out), "\n")
	return lines[max(0, len(lines)-30):]
}
