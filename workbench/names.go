package workbench

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/store"
)

// unknownCluster and unknownRun turn "not found" into what a person can act
// on: what there is instead.

func (w *Workbench) unknownCluster(name string, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	live, _ := w.db.LiveClusters()
	names := make([]string, len(live))
	for i, c := range live {
		names[i] = c.Name
	}
	if name == "" {
		return &Fault{What: "find the cluster", Node: -1, Why: "there is none", Next: "dlwb up PROFILE or dlwb demo makes one"}
	}
	return &Fault{What: fmt.Sprintf("find the cluster %q", name), Node: -1,
		Why: "there is none of that name", Next: instead("clusters", names, "dlwb up PROFILE makes one")}
}

func (w *Workbench) unknownRun(id string, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	runs, _ := w.db.Runs("")
	var names []string
	for i, r := range runs {
		if i == 5 {
			break
		}
		names = append(names, r.ID)
	}
	if id == "" {
		return &Fault{What: "find the newest run", Node: -1, Why: "there is none", Next: "dlwb run PROFILE or dlwb demo makes one"}
	}
	return &Fault{What: fmt.Sprintf("find the run %q", id), Node: -1,
		Why: "there is none of that id", Next: instead("runs, newest first", names, "dlwb run PROFILE makes one")}
}

func instead(what string, names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return what + ": " + strings.Join(names, ", ")
}

// Find turns what a person typed into a run: a run id, the beginning of one
// that fits no other, a cluster's name (its newest run), or nothing (the newest
// run of all).
func (w *Workbench) FindRun(word string) (RunInfo, error) {
	runs, err := w.db.Runs("")
	if err != nil {
		return RunInfo{}, err
	}
	var hits []store.Run
	for _, r := range runs {
		switch {
		case r.ID == word:
			return w.runInfo(r), nil
		case word == "" || r.Cluster == word:
			return w.runInfo(r), nil // newest first
		case strings.HasPrefix(r.ID, word):
			hits = append(hits, r)
		}
	}
	switch len(hits) {
	case 1:
		return w.runInfo(hits[0]), nil
	case 0:
		return RunInfo{}, w.unknownRun(word, store.ErrNotFound)
	}
	return RunInfo{}, &Fault{What: fmt.Sprintf("find the run %q", word), Node: -1,
		Why: fmt.Sprintf("%d runs begin like that", len(hits)), Next: "type more of its id; dlwb runs lists them"}
}

// FindCluster turns what a person typed into a cluster that exists: its name,
// the id of a run on it, or nothing when there is only one.
func (w *Workbench) FindCluster(word string) (store.Cluster, error) {
	live, err := w.db.LiveClusters()
	if err != nil {
		return store.Cluster{}, err
	}
	for _, c := range live {
		if c.Name == word || word == "" && len(live) == 1 {
			return c, nil
		}
	}
	if r, err := w.db.Run(word); err == nil {
		for _, c := range live {
			if c.ID == r.Life {
				return c, nil
			}
		}
	}
	if word == "" && len(live) > 1 {
		return store.Cluster{}, &Fault{What: "choose the cluster", Node: -1,
			Why: fmt.Sprintf("there are %d", len(live)), Next: "name one; dlwb ls lists them"}
	}
	return store.Cluster{}, w.unknownCluster(word, store.ErrNotFound)
}
