package workbench

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/cleanup"
	"github.com/dlwb/dlwb/workbench/event"
)

// ended makes a run that ended some time ago on a cluster that is gone, with a
// log, a result and a curve.
func ended(t *testing.T, w *Workbench, run string, ago time.Duration) {
	t.Helper()
	s := begin(t, w, "c-"+run, run)
	row, data, err := w.runRecord(run)
	if err != nil {
		t.Fatal(err)
	}
	at := now().Add(-ago)
	row.StartedAt, row.EndedAt, row.Verdict = at.Add(-time.Minute), &at, string(event.Succeeded)
	if err := w.putRun(row, data); err != nil {
		t.Fatal(err)
	}
	if err := w.db.AddPoints(run, []store.Point{{Name: "loss", Time: at, Value: 1}, {Name: "loss", Ordinal: 1, Time: at, Value: 0.5}}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"rank-0.log": strings.Repeat("x", 1000), "results/out": strings.Repeat("y", 5000)} {
		path := filepath.Join(w.runDir(run), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.updateCluster(s.life, func(c *store.Cluster) { c.EndedAt = &at }); err != nil {
		t.Fatal(err)
	}
}

func ids(c cleanup.Found) (all []string) {
	for _, r := range c.Runs {
		all = append(all, r.Run)
	}
	slices.Sort(all)
	return all
}

func plan(t *testing.T, w *Workbench, sel cleanup.Selection) cleanup.Found {
	t.Helper()
	c, err := w.cleaner.PlanCleanup(sel)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOldRunsAreFoundWithTheirSizesAndStarsAndLiveOnesStay(t *testing.T) {
	w := newBench(t, t.TempDir())
	ended(t, w, "old", 40*24*time.Hour)
	ended(t, w, "older-star", 50*24*time.Hour)
	ended(t, w, "new", time.Hour)
	begin(t, w, "c", "live")
	if err := w.history.SetStar("older-star", true); err != nil {
		t.Fatal(err)
	}
	old := plan(t, w, cleanup.Selection{OlderThan: 30 * 24 * time.Hour})
	if got := ids(old); !slices.Equal(got, []string{"old"}) || old.Runs[0].Log != 1000 || old.Runs[0].Results != 5000 || old.Points != 2 {
		t.Errorf("older than 30 days: %+v", old)
	}
	if len(old.Kept) != 1 || old.Kept[0].Run != "older-star" {
		t.Errorf("kept: %+v", old.Kept)
	}
	all := plan(t, w, cleanup.Selection{AllEnded: true, Runs: []string{"older"}})
	if got := ids(all); !slices.Equal(got, []string{"new", "old", "older-star"}) {
		t.Errorf("all that ended, and the star by name: %v", got)
	}
	if len(all.Kept) != 1 || all.Kept[0] != (cleanup.Kept{Run: "live", Why: "it is going on"}) {
		t.Errorf("kept: %+v", all.Kept)
	}
	for _, word := range []string{"live", "c", "nobody"} {
		if c, err := w.cleaner.PlanCleanup(cleanup.Selection{Runs: []string{word}}); err == nil {
			t.Errorf("rm %s would remove %v", word, ids(c))
		}
	}
}

func TestARemovedRunIsGoneFromEveryListAndFromTheDisk(t *testing.T) {
	w := newBench(t, t.TempDir())
	ended(t, w, "a", time.Hour)
	ended(t, w, "b", time.Hour)
	if err := w.cleaner.CleanUp(plan(t, w, cleanup.Selection{Runs: []string{"a"}})); err != nil {
		t.Fatal(err)
	}
	if runs, err := w.Runs(); err != nil || len(runs) != 1 || runs[0].ID != "b" {
		t.Errorf("%v, %v", runs, err)
	}
	if _, err := os.Stat(w.runDir("a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files: %v", err)
	}
	if n, err := w.db.CountPoints("a"); n != 0 || err != nil {
		t.Errorf("%d points, %v", n, err)
	}
	if loss := w.history.LastLoss("b"); loss == nil || *loss != 0.5 {
		t.Error("the curves of another run are gone")
	}
}

// An rm that was killed behind any of its acts is finished by the next.
func TestARemovalThatWasKilledIsFinishedByTheNext(t *testing.T) {
	for name, done := range map[string]func(w *Workbench) error{
		"after the mark":    func(w *Workbench) error { return nil },
		"half of the files": func(w *Workbench) error { return os.RemoveAll(filepath.Join(w.runDir("a"), "results")) },
		"after the files":   func(w *Workbench) error { return os.RemoveAll(w.runDir("a")) },
		"after all of it":   func(w *Workbench) error { return errors.Join(os.RemoveAll(w.runDir("a")), w.db.DeleteRun("a")) },
		"and files came back": func(w *Workbench) error {
			return errors.Join(w.db.SetNote("a", "x"), os.MkdirAll(w.runDir("a"), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBench(t, t.TempDir())
			ended(t, w, "a", time.Hour)
			ended(t, w, "b", time.Hour)
			if err := errors.Join(w.db.MarkRemoved("a", now()), done(w)); err != nil {
				t.Fatal(err)
			}
			if c := plan(t, w, cleanup.Selection{AllEnded: true}); !slices.Equal(ids(c), []string{"b"}) {
				t.Errorf("a marked run is offered again: %v", ids(c))
			}
			if err := w.cleaner.CleanUp(cleanup.Found{}); err != nil {
				t.Fatal(err)
			}
			if left, err := w.db.MarkedRemoved(); len(left) > 0 || err != nil {
				t.Errorf("left: %v, %v", left, err)
			}
			if _, err := os.Stat(w.runDir("a")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its files: %v", err)
			}
		})
	}
}

func TestProfilesAreForgottenByTheirPathAndTheirFilesStay(t *testing.T) {
	w := newBench(t, t.TempDir())
	dir := t.TempDir()
	path := filepath.Join(dir, "dlwb.yaml")
	if err := errors.Join(os.WriteFile(path, []byte("name: x\n"), 0o600), w.db.PutProfile(store.Profile{Path: path, Name: "x", UsedAt: now()})); err != nil {
		t.Fatal(err)
	}
	if err := w.cleaner.CleanUp(plan(t, w, cleanup.Selection{Profiles: []string{dir}})); err != nil {
		t.Fatal(err)
	}
	if seen, err := w.db.Profiles(); len(seen) > 0 || err != nil {
		t.Errorf("%v, %v", seen, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if _, err := w.cleaner.PlanCleanup(cleanup.Selection{Profiles: []string{dir}}); err == nil {
		t.Error("a profile that is not known is forgotten")
	}
}
