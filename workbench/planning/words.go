package planning

import (
	"path"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/profiles"
)

// OfRun puts the id of a run into words of a profile.
func OfRun(words []string, run string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strings.ReplaceAll(w, profiles.RunWord, run)
	}
	return all
}

// EnvOfRun puts the id of a run into variables. A secret stays as it is.
func EnvOfRun(vars []profiles.Var, run string) []profiles.Var {
	all := make([]profiles.Var, len(vars))
	for i, v := range vars {
		if !v.Secret {
			v.Value = strings.ReplaceAll(v.Value, profiles.RunWord, run)
		}
		all[i] = v
	}
	return all
}

// beforeRun is the directory that holds a path for all runs.
func beforeRun(p string) string {
	before, _, found := strings.Cut(p, profiles.RunWord)
	if !found {
		return p
	}
	return path.Dir(before + "x")
}

// ownDirs is where on its nodes the runs of a cluster have directories of their
// own, below the home. Unlike the code directory nothing is ever synced there.
func ownDirs(cluster string) string { return "dlwb/" + cluster + "/results" }

// OwnDir is that of one run.
func OwnDir(cluster, run string) string { return ownDirs(cluster) + "/" + run }

// RemoteCode is where a cluster's code lies on its nodes, below the home
// directory.
func RemoteCode(cluster string) string { return "dlwb/" + cluster + "/code" }

// Grace is what ranks get between TERM and KILL: more than nothing, as nothing stands
// for what is not known.
func Grace(p *profiles.Profile) time.Duration { return max(p.Run.Grace, time.Millisecond) }

// FileHash says whether a profile is still as it was; "" when it is not there.
func FileHash(path string) string {
	b, err := plainfile.Read(path, profiles.MaxSize)
	if err != nil {
		return ""
	}
	return (&profiles.Profile{Path: path, Source: string(b)}).Hash()
}
