// Package cleanup removes what is on record of past runs: it says first what a
// selection comes to and what of it stays, and gives the room back to the disk.
package cleanup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// Cleaner removes runs and forgets profiles.
type Cleaner struct {
	db    *store.Store
	owner Owner
}

// Owner is what a Cleaner needs of whoever runs the runs.
type Owner struct {
	// Runs lists all runs, newest first.
	Runs func() ([]store.Run, error)
	// FindRun is the run that a person named.
	FindRun func(word string) (event.RunInfo, error)
	// Needed says why a run can't be removed now; empty when it can.
	Needed func(store.Run) string
	// Dir is where the files of a run lie.
	Dir func(run string) string
	// Results says where the results of a run are.
	Results func(run string) (event.RunResults, error)
	// Changed is told when something was removed.
	Changed func()
}

// New removes from a store.
func New(db *store.Store, owner Owner) *Cleaner { return &Cleaner{db, owner} }

// Selection says which runs and profiles are to be removed.
type Selection struct {
	Runs      []string      // by their ids, or the beginnings of them
	Profiles  []string      // paths that are not to be remembered any more
	OlderThan time.Duration // runs that ended longer ago; 0: none
	AllEnded  bool          // every run that has ended
}

// Use is a run, and the room that its record takes.
type Use struct {
	Run     string `json:"run"`
	Log     int64  `json:"log_bytes"`
	Results int64  `json:"results_bytes"`
	Other   int64  `json:"other_bytes"` // looks at files, recipes of packages
	Points  int64  `json:"points"`
	// Elsewhere is where results lie that the user had brought to a place of
	// his own: they stay.
	Elsewhere string `json:"elsewhere,omitempty"`
}

func (u Use) bytes() int64 { return u.Log + u.Results + u.Other }

// Text is the room that the run takes, for people.
func (u Use) Text() string {
	s := fmt.Sprintf("log %s, results %s, %s", units.Bytes(u.Log), units.Bytes(u.Results), units.Count(int(u.Points), "point"))
	if u.Elsewhere != "" {
		s += "; what lies in " + u.Elsewhere + " stays"
	}
	return s
}

// Kept is a run that was selected and stays.
type Kept struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// Found is what a selection comes to.
type Found struct {
	Runs     []Use    `json:"runs"`
	Profiles []string `json:"profiles"`
	Kept     []Kept   `json:"kept"`
	Bytes    int64    `json:"bytes"` // of the runs, without their points
	Points   int64    `json:"points"`
}

// Question asks whether it all may go.
func (c Found) Question() event.Question {
	q := event.Question{Title: "Remove " + c.what() + "?"}
	for i, r := range c.Runs {
		if i == mostNamed {
			q.Add("", fmt.Sprintf("and %s more", units.Count(len(c.Runs)-i, "run")))
			break
		}
		q.Add(map[bool]string{true: "goes"}[i == 0], r.Run+": "+r.Text())
	}
	if len(c.Runs) > 0 {
		q.Add("together", units.Bytes(c.Bytes)+" and "+units.Count(int(c.Points), "point"))
		q.Add("for good", "logs, curves, results in dlwb's directory, recipes: nothing brings them back")
	}
	for _, p := range c.Profiles {
		q.Add("forgets", p+": the file stays")
	}
	for i, k := range c.Kept {
		if i == mostNamed {
			q.Add("", fmt.Sprintf("and %s more", units.Count(len(c.Kept)-i, "run")))
			break
		}
		q.Add(map[bool]string{true: "stays"}[i == 0], k.Run+": "+k.Why)
	}
	return q
}

// mostNamed is how many runs a question names one by one.
const mostNamed = 8

func (c Found) what() string {
	var parts []string
	if len(c.Runs) == 1 {
		parts = append(parts, "run "+c.Runs[0].Run)
	} else if len(c.Runs) > 1 {
		parts = append(parts, units.Count(len(c.Runs), "run"))
	}
	if n := len(c.Profiles); n > 0 {
		parts = append(parts, units.Count(n, "profile"))
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, " and ")
}

// Empty reports whether nothing would be removed.
func (c Found) Empty() bool { return len(c.Runs)+len(c.Profiles) == 0 }

// PlanCleanup says what a selection would remove, with sizes, and what of it
// stays. It changes nothing.
func (k *Cleaner) PlanCleanup(sel Selection) (Found, error) {
	c := Found{Runs: []Use{}, Profiles: []string{}, Kept: []Kept{}}
	rows, err := k.owner.Runs()
	if err != nil {
		return c, err
	}
	named, err := k.namedRuns(rows, sel.Runs)
	if err != nil {
		return c, err
	}
	for _, r := range rows {
		byName := slices.Contains(named, r.ID)
		if !byName && !sel.picks(r) {
			continue
		}
		why := k.owner.Needed(r)
		switch {
		case why != "" && byName:
			return c, &event.Fault{What: "remove run " + r.ID, Node: -1, Why: why, Next: "dlwb stop " + r.ID + " ends it, dlwb down " + r.Cluster + " removes its cluster"}
		case why == "" && r.Starred && !byName:
			why = "it has a star; it goes when it is named"
		}
		if why != "" {
			c.Kept = append(c.Kept, Kept{r.ID, why})
			continue
		}
		use, err := k.useOf(r.ID)
		if err != nil {
			return c, err
		}
		c.Runs, c.Bytes, c.Points = append(c.Runs, use), c.Bytes+use.bytes(), c.Points+use.Points
	}
	c.Profiles, err = k.namedProfiles(sel.Profiles)
	return c, err
}

// picks reports whether a run is meant without being named.
func (sel Selection) picks(r store.Run) bool {
	if r.EndedAt == nil {
		return sel.AllEnded // one whose cluster is gone; Owner.Needed keeps the others
	}
	return sel.AllEnded || sel.OlderThan > 0 && time.Since(*r.EndedAt) > sel.OlderThan
}

// namedRuns turns words into ids. A cluster's name is none: what it would mean
// to remove it, nobody should have to guess.
func (k *Cleaner) namedRuns(rows []store.Run, words []string) ([]string, error) {
	var ids []string
	for _, word := range words {
		run, err := k.owner.FindRun(word)
		if err != nil {
			return nil, err
		}
		if word == "" || !strings.HasPrefix(run.ID, word) || run.ID != word && slices.ContainsFunc(rows, func(r store.Run) bool { return r.Cluster == word }) {
			return nil, &event.Fault{What: fmt.Sprintf("remove the run %q", word), Node: -1, Why: "that names a cluster or a profile, and no run",
				Next: "name the run, such as " + run.ID + "; dlwb down " + word + " removes a cluster"}
		}
		ids = append(ids, run.ID)
	}
	return ids, nil
}

// useOf measures what there is of a run.
func (k *Cleaner) useOf(run string) (Use, error) {
	u := Use{Run: run}
	dir := k.owner.Dir(run)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case strings.HasPrefix(rel, "results"+string(filepath.Separator)):
			u.Results += info.Size()
		case strings.HasSuffix(rel, ".log"):
			u.Log += info.Size()
		default:
			u.Other += info.Size()
		}
		return nil
	})
	if err != nil {
		return u, fmt.Errorf("measure run %s: %w", run, err)
	}
	if r, err := k.owner.Results(run); err == nil && r.Files > 0 && !strings.HasPrefix(r.Dir, dir+string(filepath.Separator)) {
		u.Elsewhere = r.Dir
	}
	u.Points, err = k.db.CountPoints(run)
	return u, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// namedProfiles are the profiles, as they are remembered, that words name.
func (k *Cleaner) namedProfiles(words []string) ([]string, error) {
	seen, err := k.db.Profiles()
	if err != nil {
		return nil, err
	}
	known := make([]string, len(seen))
	for i, p := range seen {
		known[i] = p.Path
	}
	paths := []string{}
	for _, word := range words {
		path, err := filepath.Abs(word)
		if err != nil {
			return nil, err
		}
		if inside := filepath.Join(path, "dlwb.yaml"); !slices.Contains(known, path) && slices.Contains(known, inside) {
			path = inside
		}
		if !slices.Contains(known, path) {
			return nil, &event.Fault{What: "forget profile " + word, Node: -1, Why: "it is not remembered here",
				Next: remembered(known)}
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// remembered lists some of the profiles that could have been meant.
func remembered(paths []string) string {
	if len(paths) == 0 {
		return "there are none"
	}
	return "profiles: " + strings.Join(paths[:min(len(paths), 5)], ", ")
}

// CleanUp removes what PlanCleanup found: each run is marked first, then its
// files go, then its rows. What an earlier one that was killed left half done
// goes first.
func (k *Cleaner) CleanUp(c Found) error {
	defer k.owner.Changed()
	if err := k.finishRemovals(); err != nil {
		return err
	}
	for _, r := range c.Runs {
		if err := k.db.MarkRemoved(r.Run, time.Now().UTC().Round(0)); err != nil {
			if errors.Is(err, store.ErrNotFound) {
				continue // another dlwb was quicker
			}
			return err
		}
		if err := k.finishRemoval(r.Run); err != nil {
			return err
		}
	}
	for _, path := range c.Profiles {
		if err := k.db.ForgetProfile(path); err != nil {
			return err
		}
	}
	return nil
}

// finishRemovals removes what is left of runs that are marked.
func (k *Cleaner) finishRemovals() error {
	runs, err := k.db.MarkedRemoved()
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := k.finishRemoval(run); err != nil {
			return err
		}
	}
	return nil
}

func (k *Cleaner) finishRemoval(run string) error {
	if err := os.RemoveAll(k.owner.Dir(run)); err != nil {
		return &event.Fault{What: "remove the files of run " + run, Node: -1, Why: err.Error(), Next: "see who owns them; the next dlwb rm goes on"}
	}
	return k.db.DeleteRun(run)
}

// Compacted is what compacting the store came to, in bytes.
type Compacted struct {
	File   string `json:"file"`
	Before int64  `json:"before_bytes"`
	After  int64  `json:"after_bytes"`
}

// Text is what it came to, for people.
func (c Compacted) Text() string {
	return fmt.Sprintf("%s: %s before, %s after", c.File, units.Bytes(c.Before), units.Bytes(c.After))
}

// Compact gives the room of what was removed from the store back to the disk.
func (k *Cleaner) Compact() (Compacted, error) {
	c := Compacted{File: k.db.Path()}
	var err error
	if c.Before, err = k.db.Size(); err != nil {
		return c, err
	}
	if err := errors.Join(k.finishRemovals(), k.db.Compact()); err != nil {
		return c, err
	}
	c.After, err = k.db.Size()
	return c, err
}
