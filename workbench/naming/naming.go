// Package naming turns what a person typed into the cluster or the run that was
// meant, and says what there is instead where nothing fits.
package naming

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// Finder finds what is on record.
type Finder struct {
	db   *store.Store
	info func(store.Run) event.RunInfo
}

// New finds in a store; info describes a run.
func New(db *store.Store, info func(store.Run) event.RunInfo) Finder { return Finder{db, info} }

// UnknownCluster turns "not found" into what a person can act on: what there is
// instead.
func (f Finder) UnknownCluster(name string, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	live, _ := f.db.LiveClusters()
	names := make([]string, len(live))
	for i, c := range live {
		names[i] = c.Name
	}
	if name == "" {
		return &event.Fault{What: "find the cluster", Node: -1, Why: "there is none", Next: "dlwb up PROFILE or dlwb demo makes one"}
	}
	fault := &event.Fault{What: fmt.Sprintf("find the cluster %q", name), Node: -1,
		Why: "there is none of that name", Next: instead("clusters", names, "there is no cluster now; dlwb ls lists them, dlwb up PROFILE makes one")}
	if path := profileFile(name); path != "" {
		fault.What, fault.Why, fault.Next = "find the cluster of "+path, "it has none that is up", shellword.Join("dlwb", "up", name)+" makes one"
		return fault
	}
	return nearer(fault, name, names)
}

// UnknownRun is UnknownCluster for a run.
func (f Finder) UnknownRun(id string, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	runs, _ := f.db.Runs("")
	var names []string
	for i, r := range runs {
		if i == 5 {
			break
		}
		names = append(names, r.ID)
	}
	if id == "" {
		return &event.Fault{What: "find the newest run", Node: -1, Why: "there is none", Next: "dlwb run PROFILE or dlwb demo makes one"}
	}
	fault := &event.Fault{What: fmt.Sprintf("find the run %q", id), Node: -1,
		Why: "there is none of that id", Next: instead("runs, newest first", names, "dlwb run PROFILE makes one")}
	if path := profileFile(id); path != "" {
		fault.What, fault.Why, fault.Next = "find the newest run of "+path, "it has none", shellword.Join("dlwb", "run", id)+" makes one"
		return fault
	}
	for _, r := range runs {
		names = append(names, r.ID, r.Cluster)
	}
	return nearer(fault, id, names)
}

// nearer puts the name that was most likely meant in front of what to do next.
func nearer(f *event.Fault, word string, names []string) *event.Fault {
	if near := nearword.Nearest(word, names); near != "" {
		f.Next = "did you mean " + near + "? " + f.Next
	}
	return f
}

// profileFile is the profile that a word names as a path: a file, or a
// directory that holds one. Empty when it names none.
func profileFile(word string) string {
	if word == "" {
		return ""
	}
	path, err := filepath.Abs(word)
	if err != nil {
		return ""
	}
	for _, p := range []string{path, filepath.Join(path, profiles.FileName), path + ".yaml"} {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

func instead(what string, names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return what + ": " + strings.Join(names, ", ")
}

// Run turns what a person typed into a run: a run id, the beginning of one
// that fits no other, a cluster's name (its newest run), the path of a profile
// (its newest run), or nothing (the newest run of all).
func (f Finder) Run(word string) (event.RunInfo, error) {
	runs, err := f.db.Runs("")
	if err != nil {
		return event.RunInfo{}, err
	}
	var hits []store.Run
	for _, r := range runs {
		switch {
		case r.ID == word:
			return f.info(r), nil
		case word == "" || r.Cluster == word:
			return f.info(r), nil // newest first
		case strings.HasPrefix(r.ID, word):
			hits = append(hits, r)
		}
	}
	if path := profileFile(word); path != "" && len(hits) == 0 {
		for _, r := range runs {
			if c, err := f.db.ClusterLife(r.Life); err == nil && c.ProfilePath == path {
				return f.info(r), nil
			}
		}
	}
	switch len(hits) {
	case 1:
		return f.info(hits[0]), nil
	case 0:
		return event.RunInfo{}, f.UnknownRun(word, store.ErrNotFound)
	}
	return event.RunInfo{}, &event.Fault{What: fmt.Sprintf("find the run %q", word), Node: -1,
		Why: fmt.Sprintf("%d runs begin like that", len(hits)), Next: "type more of its id; dlwb runs lists them"}
}

// Cluster turns what a person typed into a cluster that exists: its name,
// the id of a run on it, the path of its profile, or nothing when there is only
// one.
func (f Finder) Cluster(word string) (store.Cluster, error) {
	live, err := f.db.LiveClusters()
	if err != nil {
		return store.Cluster{}, err
	}
	for _, c := range live {
		if c.Name == word || word == "" && len(live) == 1 {
			return c, nil
		}
	}
	if r, err := f.db.Run(word); err == nil {
		for _, c := range live {
			if c.ID == r.Life {
				return c, nil
			}
		}
	}
	if path := profileFile(word); path != "" {
		for _, c := range live {
			if c.ProfilePath == path {
				return c, nil
			}
		}
	}
	if word == "" && len(live) > 1 {
		return store.Cluster{}, &event.Fault{What: "choose the cluster", Node: -1,
			Why: fmt.Sprintf("there are %d", len(live)), Next: "name one; dlwb ls lists them"}
	}
	return store.Cluster{}, f.UnknownCluster(word, store.ErrNotFound)
}
