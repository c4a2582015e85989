package planning

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/profiles"
)

// resultsVar is the variable in which ranks find the directory of their run.
const resultsVar = "DLWB_RESULTS"

// outputVar is the variable in which the run of a provider that has KeptInS3 finds its
// place in results.s3.
const outputVar = "DLWB_OUTPUT"

// PlaceVar is that variable of a provider; empty: its runs have none.
func PlaceVar(provider string) string {
	if traits(provider).KeptInS3 {
		return outputVar
	}
	return ""
}

// keptInS3 reports whether what a run writes to its place in S3 comes home from there.
func keptInS3(p *profiles.Profile) bool { return traits(p.Provider).KeptInS3 && p.Results.S3 != "" }

// Kept reports whether a service keeps what a run of a profile writes, and where else
// it is sent from here; empty: nowhere.
func Kept(p *profiles.Profile) (is bool, away string) {
	switch {
	case keptInS3(p):
		return true, "" // it is there
	case traits(p.Provider).Kept:
		return true, p.Results.S3
	}
	return false, ""
}

// unsavedWarnings say when nothing would bring home what a run writes.
func unsavedWarnings(p *profiles.Profile) []string {
	var all []string
	if keptInS3(p) {
		return nil
	}
	if t := traits(p.Provider); t.KeptInS3 {
		return []string{"nothing of what the run writes is brought home: it has to go to a volume, or to S3: with results.s3 what it writes to " + outputVar + " comes home"}
	}
	if t := traits(p.Provider); t.Sealed && !t.Kept {
		return []string{"nothing of what the run writes is brought home: it has to go to a volume, or to storage of the service"}
	}
	if len(p.Results.Paths) == 0 && !usesOwnDir(p) {
		all = append(all, "nothing of what the run writes is brought home: the profile names no results.paths, and "+
			"neither the command nor the code mentions "+resultsVar+", the directory of which comes home by itself")
	}
	if traits(p.Provider).Leased && p.Results.S3 == "" {
		all = append(all, "when the machines end by themselves (lifetime, idle, budget) while no dlwb is attached, what was not brought home is lost: "+
			"results.s3 saves it without one")
	}
	return all
}

// broughtHome are the paths of a profile that come home.
func broughtHome(p *profiles.Profile) []string {
	if t := traits(p.Provider); t.Sealed && !t.Kept {
		return []string{}
	}
	return append([]string{}, p.Results.Paths...)
}

// usesOwnDir guesses whether a run writes to the directory of its own: whether
// anything that it is made of mentions it.
func usesOwnDir(p *profiles.Profile) bool {
	if strings.Contains(p.Run.Command, resultsVar) || slices.ContainsFunc(p.Run.Env, func(v profiles.Var) bool { return strings.Contains(v.Value, resultsVar) }) {
		return true
	}
	return mentions(p.CodeDir(), resultsVar)
}

const (
	mostScripts   = 300
	longestScript = 512 << 10
)

// scriptKinds are files that may be the code of a training, or start one.
var scriptKinds = []string{".py", ".sh", ".yaml", ".yml", ".toml", ".json", ".cfg"}

// mentions looks for a word in the scripts of a directory, of which it reads so
// many at most.
func mentions(dir, word string) bool {
	found, read := false, 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what can't be read can't be told of
		case found || read >= mostScripts:
			return fs.SkipAll
		case d.IsDir() && path != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.Type().IsRegular() || !slices.Contains(scriptKinds, filepath.Ext(path)):
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > longestScript {
			return nil
		}
		read++
		text, err := os.ReadFile(path)
		found = err == nil && bytes.Contains(text, []byte(word))
		return nil
	})
	return found
}
