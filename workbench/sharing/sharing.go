// Package sharing is about nodes that see one disk: a home directory, or the place for
// the code, on a file system that several of them mount. What is a run's lies there for
// each node under a name of its own; what is the cluster's is made by the first of them,
// for all.
package sharing

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/remote"
)

// Nodes are the nodes of a cluster, with what each shares with an earlier one.
type Nodes []cloud.Node

// Run is the id that a run has on a node: its own, where an earlier node has the same
// home directory.
func (all Nodes) Run(node int, run string) string {
	if n := all[node]; n.HomeOf != "" && run != "" {
		return run + "." + n.Name
	}
	return run
}

// Runs are the ids of a run by the names of the nodes.
func (all Nodes) Runs(run string) map[string]string {
	ids := map[string]string{}
	for i, n := range all {
		ids[n.Name] = all.Run(i, run)
	}
	return ids
}

// Words are words of a plan, with the directory of a run as it is called on a node.
func (all Nodes) Words(words []string, node int, run string) []string {
	own := all.Run(node, run)
	if own == run {
		return words
	}
	const runs = "~/.dlwb/runs/"
	mine := slices.Clone(words)
	for i, w := range mine {
		if w == runs+run {
			mine[i] = runs + own
		}
		mine[i] = strings.ReplaceAll(mine[i], runs+run+"/", runs+own+"/")
	}
	return mine
}

// OwnDir is the directory of a run's own on a node, of the one that is planned.
func (all Nodes) OwnDir(planned string, node int) string {
	if node < len(all) && all[node].CodeOf != "" && planned != "" {
		return planned + "." + all[node].Name
	}
	return planned
}

// FirstAtHome reports whether no earlier node has the home directory of a node.
func (all Nodes) FirstAtHome(node int) bool { return node >= len(all) || all[node].HomeOf == "" }

// FirstAtCode reports whether no earlier node has the place for the code of a node.
func (all Nodes) FirstAtCode(node int) bool { return node >= len(all) || all[node].CodeOf == "" }

// FilesOf is the number of the first node that sees the same files of the code.
func (all Nodes) FilesOf(node int) int {
	return slices.IndexFunc(all, func(n cloud.Node) bool { return place(n) == place(all[node]) })
}

// place is the name of the first node with the same place for the code.
func place(n cloud.Node) string {
	if n.CodeOf != "" {
		return n.CodeOf
	}
	return n.Name
}

// Some are those of the nodes that fit.
func Some(nodes []*remote.Node, fits func(node int) bool) (some []*remote.Node) {
	for i, n := range nodes {
		if fits(i) {
			some = append(some, n)
		}
	}
	return some
}
