package results

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

// What a run is given as its results is what it wrote. Two things tell: a look
// at the paths of its results before its ranks start, and a directory of its
// own, which is new.

// noted is what lay below the paths of a run's results when it was launched. On the
// disk it is a line of JSON, and behind it the files.
type noted struct {
	Paths []string `json:"paths"`
	// Files were part of the line where an earlier dlwb wrote it.
	Files transfer.Seen `json:"files,omitzero"`
}

func (b *noted) write(file string) error {
	line, err := json.Marshal(map[string][]string{"paths": b.Paths})
	if err != nil {
		return err
	}
	files, err := b.Files.MarshalBinary()
	if err != nil {
		return err
	}
	return wholefile.Write(file, slices.Concat(line, []byte("\n"), files), 0o600)
}

func (b *noted) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	line, files, lined := bytes.Cut(text, []byte("\n"))
	if err = json.Unmarshal(line, b); err == nil && lined {
		err = b.Files.UnmarshalBinary(files)
	}
	return err
}

// covers reports whether a file was looked for.
func (b *noted) covers(file string) bool {
	for _, p := range b.Paths {
		if p = path.Clean(p); p == "." || file == p || strings.HasPrefix(file, p+"/") {
			return true
		}
	}
	return false
}

func (f *Fetcher) beforePath(run string) string {
	return filepath.Join(f.owner.Dir(run), "before.json")
}

// lookLimit bounds the look before a launch.
const lookLimit = time.Minute

// NoteBefore notes what is below the paths of the results before the ranks
// start, for this dlwb and any that comes later. A look that fails is told, and
// nothing is taken for older then.
func (f *Fetcher) NoteBefore(ctx context.Context, at Site, run string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	seen, err := transfer.Look(limited, at.Nodes[0], planning.RemoteCode(at.Cluster), paths)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = (&noted{paths, seen}).write(f.beforePath(run))
	}
	if err != nil {
		_ = at.Publish(event.Noticed{Level: "warning",
			Text: "what lies in results.paths from before the run could not be noted: it will be brought home too: " + err.Error()})
	}
	return nil
}

// readBefore gives what was noted before a run; nil when nothing was.
func (f *Fetcher) readBefore(run string) *noted {
	var b noted
	if b.read(f.beforePath(run)) != nil {
		return nil
	}
	return &b
}

// ownership tells what below the paths of a run's results is its own: what was
// not there, or not as it is now, before it was launched; and what the next run
// on the cluster found as it is now.
type ownership struct {
	before, after *noted // nil: not known
	next          string // the run that followed; empty: none
	rewritten     int    // files that the next run, or a later one, has written since
}

func (f *Fetcher) ownershipOf(run Run) (*ownership, error) {
	o := &ownership{before: f.readBefore(run.ID)}
	runs, err := f.db.Runs(run.Cluster) // newest first
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		if r.ID == run.ID {
			break
		}
		if r.Life == run.Life {
			o.next = r.ID
		}
	}
	if o.next != "" {
		o.after = f.readBefore(o.next)
	}
	return o, nil
}

// owns is what a pull asks of each file.
func (o *ownership) owns(file, state string) bool {
	if o.before != nil && o.before.Files.Holds(file, state) {
		return false
	}
	if o.after != nil && o.after.covers(file) && !o.after.Files.Holds(file, state) {
		o.rewritten++
		return false
	}
	return true
}

// left says what of the results was overwritten; empty: nothing.
func (o *ownership) left() string {
	if o.rewritten == 0 {
		return ""
	}
	return fmt.Sprintf("%s below results.paths: run %s or a later one wrote them, and what this run had there before is no more",
		units.Count(o.rewritten, "file"), o.next)
}
