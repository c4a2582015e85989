package workbench

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

// RunSelection says which runs and profiles are to be removed.
type RunSelection struct {
	Runs      []string      // by their ids, or the beginnings of them
	Profiles  []string      // paths that are not to be remembered any more
	OlderThan time.Duration // runs that ended longer ago; 0: none
	AllEnded  bool          // every run that has ended
}

// RunUse is a run, and the room that its record takes.
type RunUse struct {
	Run     string `json:"run"`
	Log     int64  `json:"log_bytes"`
	Results int64  `json:"results_bytes"`
	Other   int64  `json:"other_bytes"` // looks at files, recipes of packages
	Points  int64  `json:"points"`
	// Elsewhere is where results lie that the user had brought to a place of
	// his own: they stay.
	Elsewhere string `json:"elsewhere,omitempty"`
}

func (u RunUse) bytes() int64 { return u.Log + u.Results + u.Other }

// Text is the room that the run takes, for people.
func (u RunUse) Text() string {
	s := fmt.Sprintf("log %s, results %s, %s", units.Bytes(u.Log), units.Bytes(u.Results), count(int(u.Points), "point"))
	if u.Elsewhere != "" {
		s += "; what lies in " + u.Elsewhere + " stays"
	}
	return s
}

// KeptRun is a run that was selected and stays.
type KeptRun struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// Cleanup is what a selection comes to.
type Cleanup struct {
	Runs     []RunUse  `json:"runs"`
	Profiles []string  `json:"profiles"`
	Kept     []KeptRun `json:"kept"`
	Bytes    int64     `json:"bytes"` // of the runs, without their points
	Points   int64     `json:"points"`
}

// Question asks whether it all may go.
func (c Cleanup) Question() event.Question {
	q := event.Question{Title: "Remove " + c.what() + "?"}
	for i, r := range c.Runs {
		if i == mostNamed {
			q.Add("", fmt.Sprintf("and %s more", count(len(c.Runs)-i, "run")))
			break
		}
		q.Add(map[bool]string{true: "goes"}[i == 0], r.Run+": "+r.Text())
	}
	if len(c.Runs) > 0 {
		q.Add("together", units.Bytes(c.Bytes)+" and "+count(int(c.Points), "point"))
		q.Add("for good", "logs, curves, results in dlwb's directory, recipes: nothing brings them back")
	}
	for _, p := range c.Profiles {
		q.Add("forgets", p+": the file stays")
	}
	for i, k := range c.Kept {
		if i == mostNamed {
			q.Add("", fmt.Sprintf("and %s more", count(len(c.Kept)-i, "run")))
			break
		}
		q.Add(map[bool]string{true: "stays"}[i == 0], k.Run+": "+k.Why)
	}
	return q
}

// mostNamed is how many runs a question names one by one.
const mostNamed = 8

func (c Cleanup) what() string {
	var parts []string
	if len(c.Runs) == 1 {
		parts = append(parts, "run "+c.Runs[0].Run)
	} else if len(c.Runs) > 1 {
		parts = append(parts, count(len(c.Runs), "run"))
	}
	if n := len(c.Profiles); n > 0 {
		parts = append(parts, count(n, "profile"))
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, " and ")
}

// Empty reports whether nothing would be removed.
func (c Cleanup) Empty() bool { return len(c.Runs)+len(c.Profiles) == 0 }

// PlanCleanup says what a selection would remove, with sizes, and what of it
// stays. It changes nothing.
func (w *Workbench) PlanCleanup(sel RunSelection) (Cleanup, error) {
	c := Cleanup{Runs: []RunUse{}, Profiles: []string{}, Kept: []KeptRun{}}
	rows, err := w.runs("")
	if err != nil {
		return c, err
	}
	named, err := w.namedRuns(rows, sel.Runs)
	if err != nil {
		return c, err
	}
	for _, r := range rows {
		byName := slices.Contains(named, r.ID)
		if !byName && !sel.picks(r) {
			continue
		}
		why := w.whyKept(r)
		switch {
		case why != "" && byName:
			return c, &event.Fault{What: "remove run " + r.ID, Node: -1, Why: why, Next: "dlwb stop " + r.ID + " ends it, dlwb down " + r.Cluster + " removes its cluster"}
		case why == "" && r.Starred && !byName:
			why = "it has a star; it goes when it is named"
		}
		if why != "" {
			c.Kept = append(c.Kept, KeptRun{r.ID, why})
			continue
		}
		use, err := w.useOf(r.ID)
		if err != nil {
			return c, err
		}
		c.Runs, c.Bytes, c.Points = append(c.Runs, use), c.Bytes+use.bytes(), c.Points+use.Points
	}
	c.Profiles, err = w.namedProfiles(sel.Profiles)
	return c, err
}

// picks reports whether a run is meant without being named.
func (sel RunSelection) picks(r store.Run) bool {
	if r.EndedAt == nil {
		return sel.AllEnded // one whose cluster is gone; whyKept keeps the others
	}
	return sel.AllEnded || sel.OlderThan > 0 && time.Since(*r.EndedAt) > sel.OlderThan
}

// namedRuns turns words into ids. A cluster's name is none: what it would mean
// to remove it, nobody should have to guess.
func (w *Workbench) namedRuns(rows []store.Run, words []string) ([]string, error) {
	var ids []string
	for _, word := range words {
		run, err := w.FindRun(word)
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

// whyKept says why a run can't be removed now; empty when it can.
func (w *Workbench) whyKept(r store.Run) string {
	c, err := w.db.ClusterLife(r.Life)
	if err != nil || c.EndedAt != nil {
		return "" // nothing can be going on
	}
	if r.EndedAt == nil {
		return "it is going on"
	}
	if newest, todo, err := w.unfinishedRun(c.Name); err != nil || todo && newest.ID == r.ID {
		return "its results are still to be brought home"
	}
	return w.neededBy(r)
}

// neededBy says that an earlier run on the same nodes needs the record of this
// one: what it wrote is told from what this one wrote by it.
func (w *Workbench) neededBy(r store.Run) string {
	unsaved, err := w.Unsaved(r.Cluster)
	if err != nil {
		return ""
	}
	for _, u := range unsaved {
		if other, err := w.db.Run(u.Run); err == nil && other.StartedAt.Before(r.StartedAt) {
			return "the results of run " + u.Run + " are not home, and its record tells them apart: dlwb pull " + u.Run
		}
	}
	return ""
}

// useOf measures what there is of a run.
func (w *Workbench) useOf(run string) (RunUse, error) {
	u := RunUse{Run: run}
	dir := w.runDir(run)
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
	if r, err := w.ResultsOf(run); err == nil && r.Files > 0 && !strings.HasPrefix(r.Dir, dir+string(filepath.Separator)) {
		u.Elsewhere = r.Dir
	}
	u.Points, err = w.db.CountPoints(run)
	return u, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// namedProfiles are the profiles, as they are remembered, that words name.
func (w *Workbench) namedProfiles(words []string) ([]string, error) {
	seen, err := w.db.Profiles()
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
				Next: instead("profiles", known[:min(len(known), 5)], "there are none")}
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// CleanUp removes what PlanCleanup found: each run is marked first, then its
// files go, then its rows. What an earlier one that was killed left half done
// goes first.
func (w *Workbench) CleanUp(c Cleanup) error {
	defer w.changed()
	if err := w.finishRemovals(); err != nil {
		return err
	}
	for _, r := range c.Runs {
		if err := w.db.MarkRemoved(r.Run, now()); err != nil {
			if errors.Is(err, store.ErrNotFound) {
				continue // another dlwb was quicker
			}
			return err
		}
		if err := w.finishRemoval(r.Run); err != nil {
			return err
		}
	}
	for _, path := range c.Profiles {
		if err := w.db.ForgetProfile(path); err != nil {
			return err
		}
	}
	return nil
}

// finishRemovals removes what is left of runs that are marked.
func (w *Workbench) finishRemovals() error {
	runs, err := w.db.MarkedRemoved()
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := w.finishRemoval(run); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workbench) finishRemoval(run string) error {
	if err := os.RemoveAll(w.runDir(run)); err != nil {
		return &event.Fault{What: "remove the files of run " + run, Node: -1, Why: err.Error(), Next: "see who owns them; the next dlwb rm goes on"}
	}
	return w.db.DeleteRun(run)
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
func (w *Workbench) Compact() (Compacted, error) {
	c := Compacted{File: w.db.Path()}
	var err error
	if c.Before, err = w.db.Size(); err != nil {
		return c, err
	}
	if err := errors.Join(w.finishRemovals(), w.db.Compact()); err != nil {
		return c, err
	}
	c.After, err = w.db.Size()
	return c, err
}
