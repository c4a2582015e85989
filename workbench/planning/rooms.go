package planning

import (
	"path"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/profiles"
)

// rooms are the directories that the profile says a run writes to, as far as their
// names are known before it begins: those of them that are here are made on the nodes
// too. A script that finds its directory here does not end there at its first checkpoint.
func rooms(p *profiles.Profile) []string {
	var all []string
	for _, named := range append(slices.Clone(p.Results.Paths), p.Results.Checkpoints) {
		if i := strings.Index(named, "{run}"); i >= 0 {
			named = path.Dir(named[:i] + "x") // the directory around what the id is part of
		}
		if named = path.Clean(named); named != "." && !slices.Contains(all, named) {
			all = append(all, named)
		}
	}
	return all
}
