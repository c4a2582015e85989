// Package pack is what goes into containers that dlwb has no agent in: the code as
// an archive, what each replica runs, and the launcher of several ranks, by whose
// tags the lines of its output are told apart.
package pack

import (
	_ "embed" // the launcher
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
)

// Launcher is a program in Python that starts several ranks in one container. It
// lies in the working directory of the container as launch.py, and appends how they
// ended to the file that DLWB_ENDS names.
//
//go:embed launch.py
var Launcher string

// Node is what one replica runs.
type Node struct {
	Procs []Proc `json:"procs"`
	// Tagged has the launcher start it also where it is one rank, whose lines are
	// among others.
	Tagged bool `json:"-"`
}

// Several reports whether the replica needs the launcher.
func (n Node) Several() bool {
	return n.Tagged || len(n.Procs) != 1 || len(n.Procs[0].Ranks) != 1 || n.Procs[0].Launcher
}

// Proc is one process that is started on a replica.
type Proc struct {
	Ranks []int    `json:"ranks"`
	Env   []string `json:"env"`
	Argv  []string `json:"argv"`
	// Launcher says that it starts the ranks, and has a log of its own.
	Launcher bool `json:"launcher,omitempty"`
	// Own is how many words of Argv are dlwb's own; behind them are the user's.
	Own int `json:"own"`
}

// Nodes is what each replica runs. The scripts by which dlwb's agent starts a rank
// are not in a container: the launcher in the directory work stands for them. place
// puts in hosts and ports, as far as they are known.
func Nodes(j cloud.Job, work string, place func(string) string) []Node {
	all := make([]Node, j.Replicas)
	for _, p := range j.Procs {
		made := Proc{Ranks: p.Ranks, Launcher: p.Name == "agent", Env: slices.Clone(p.Env)}
		for i, v := range made.Env {
			made.Env[i] = place(v)
		}
		made.Argv, made.Own = argv(p.Argv, made.Launcher, work, place)
		all[p.Replica].Procs = append(all[p.Replica].Procs, made)
	}
	return all
}

// argv takes out of the words what is of nodes.
func argv(words []string, launcher bool, work string, place func(string) string) (argv []string, own int) {
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "sh" && i+2 < len(words) && strings.HasSuffix(words[i+1], "/.dlwb/bin/rank"):
			if launcher {
				argv = append(argv, "python3", "-u", work+"/launch.py", "--rank")
			}
			return append(argv, words[i+3:]...), len(argv) // the user's own words, as they are
		case strings.HasPrefix(w, "~/.dlwb/runs/"):
			argv = append(argv, work+"/torchrun")
		default:
			argv = append(argv, place(w))
		}
	}
	return argv, len(argv)
}

// Ranks are the ranks of each replica, and whether the output of one is that of
// several.
func Ranks(j cloud.Job) (ranks [][]int, tagged bool) {
	ranks = make([][]int, j.Replicas)
	for _, r := range j.Ranks {
		ranks[r.Replica] = append(ranks[r.Replica], r.Rank)
	}
	for _, n := range Nodes(j, "", func(s string) string { return s }) {
		tagged = tagged || len(n.Procs) != 1 || n.Procs[0].Launcher
	}
	return ranks, tagged
}
