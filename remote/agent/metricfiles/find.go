//go:build linux

package metricfiles

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// deepest is how far below a directory files are looked for.
const deepest = 8

// passedBy are directories that no metrics of a run are in.
var passedBy = []string{".git", "node_modules", "site-packages", "__pycache__", ".venv", "venv", "wandb", ".cache"}

// names are what files of metrics are called.
var names = []string{"*tfevents*", "metrics.csv", "results.csv", "summary.csv", "progress.csv", "*monitor.csv", "log.csv", "*_log.csv",
	"history.csv", "trainer_state.json", "metrics.json", "scalars.json", "result.json", "*.log.json", "metrics*.jsonl",
	"*log*.jsonl", "history*.jsonl", "progress*.jsonl", "stats*.jsonl", "log.txt"}

func isNamed(name string) bool {
	return slices.ContainsFunc(names, func(pattern string) bool {
		is, _ := path.Match(pattern, name)
		return is
	})
}

// isState tells a trainer's state, which is written as a whole each time.
func isState(file string) bool { return path.Base(file) == "trainer_state.json" }

// find lists the files below some directories that may hold metrics, and are
// newer than a moment or not. What can't be read is not there.
func find(ctx context.Context, dirs []string, newer bool, than time.Time) (found []string) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return fs.SkipAll
			case err != nil:
				return nil
			case d.IsDir() && file != dir && (slices.Contains(passedBy, d.Name()) || depth(dir, file) >= deepest):
				return fs.SkipDir
			case !d.Type().IsRegular() || !isNamed(d.Name()):
				return nil
			}
			if info, err := d.Info(); err == nil && info.ModTime().After(than) == newer {
				found = append(found, file)
			}
			return nil
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func depth(dir, file string) int {
	return strings.Count(file, "/") - strings.Count(strings.TrimRight(dir, "/"), "/")
}

// modified is when a file was written; the end of time for one that is not
// there: nothing is the run's then.
func modified(file string) time.Time {
	if info, err := os.Stat(file); err == nil {
		return info.ModTime()
	}
	return time.Unix(1<<40, 0)
}
