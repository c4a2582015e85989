package results

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/namejson"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/planning"
)

// A checkpoint is what has one name in the directory results.checkpoints: a
// file, or a directory with all that is in it. Nothing marks it as whole, so
// that is told by what anybody can see: two looks, ckptEvery apart, find the same
// files with the same sizes and times. What is written under another name and
// renamed is not seen before, where that name says it: hidden, or with an
// ending of unfinishedEnds.

// ckptUnit is a checkpoint as one look found it.
type ckptUnit struct {
	name   string
	files  transfer.Sum // by path below the code directory
	newest float64      // seconds, by the node's clock
	open   bool         // a name in it says that it is not finished
	// It got as it is after the look at since, and before the one at until.
	since, until time.Time
	// confirmed is when a second look found it the same; zero: none has.
	confirmed time.Time
}

var unfinishedEnds = []string{".tmp", ".temp", ".part", ".partial", ".incomplete", ".lock", ".swp", "~"}

// unfinishedName reports whether a name says that a file is still written.
func unfinishedName(name string) bool {
	return strings.HasPrefix(name, ".") || slices.ContainsFunc(unfinishedEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// ckptLook sorts what a look finds below a directory into checkpoints.
type ckptLook struct {
	below  string
	byName map[string]*ckptUnit
	room   int // what more of them may take, in bytes
}

const (
	// ckptLookMost is how much memory the checkpoints of a look may take, each of them
	// ckptCosts besides its name: 10,000 with long names.
	ckptLookMost = 4 << 20
	ckptCosts    = 256
)

func newCkptLook(dir string) *ckptLook {
	return &ckptLook{strings.TrimPrefix(path.Clean(dir)+"/", "./"), map[string]*ckptUnit{}, ckptLookMost}
}

func (l *ckptLook) take(file, state string) error {
	rest, is := strings.CutPrefix(file, l.below)
	if !is {
		return nil
	}
	name, _, _ := strings.Cut(rest, "/")
	if unfinishedName(name) {
		return nil
	}
	u := l.byName[name]
	if u == nil {
		if l.room -= len(name) + ckptCosts; l.room < 0 {
			return fmt.Errorf("%s has more than %s: results.checkpoints is to name a directory that has nothing else",
				l.below, units.Count(len(l.byName), "checkpoint"))
		}
		u = &ckptUnit{name: strings.Clone(name)}
		l.byName[u.name] = u
	}
	u.files.Add(file, state)
	u.newest = max(u.newest, stateTime(state))
	u.open = u.open || unfinishedName(path.Base(rest))
	return nil
}

// units are the checkpoints that were found, the newest first.
func (l *ckptLook) units() []*ckptUnit {
	return slices.SortedFunc(maps.Values(l.byName), func(a, b *ckptUnit) int {
		return cmp.Or(cmp.Compare(b.newest, a.newest), cmp.Compare(b.name, a.name))
	})
}

// lookForCkpts finds the checkpoints in a directory below a cluster's code on a node.
func lookForCkpts(ctx context.Context, n *remote.Node, cluster, dir string) ([]*ckptUnit, error) {
	var l *ckptLook
	err := transfer.Each(ctx, n, planning.RemoteCode(cluster), []string{dir}, func() func(string, string) error {
		l = newCkptLook(dir)
		return l.take
	})
	if err != nil {
		return nil, err
	}
	return l.units(), nil
}

// stateTime is when a file was written last: see transfer.Each.
func stateTime(state string) float64 {
	words := strings.Fields(state)
	if len(words) < 3 {
		return 0
	}
	at, _ := strconv.ParseFloat(words[2], 64)
	return at
}

// bound notes between which looks each checkpoint became what it is: last is what
// the look before found, at lastAt. That it found the same proves something only while
// all go on that might write: of what they left when they were ended, each look finds
// the same.
func bound(units, last []*ckptUnit, lastAt, now time.Time, goesOn bool) {
	for _, u := range units {
		if old := findUnit(last, u.name); u.same(old) {
			u.since, u.until, u.confirmed = old.since, old.until, old.confirmed
			if u.confirmed.IsZero() && goesOn {
				u.confirmed = now
			}
		} else {
			u.since, u.until = lastAt, now
		}
	}
}

// newsSlack is by how much the news of a failure may be late.
const newsSlack = 3 * time.Second

// whole reports whether a checkpoint counts that a second look found the same at a
// time. After a rank was lost that proves nothing: those who wait for it stand still,
// some of them in the middle of a file. Trouble is since when; zero: since never.
func whole(confirmed, trouble time.Time) bool {
	return !confirmed.IsZero() && (trouble.IsZero() || confirmed.Before(trouble.Add(-newsSlack)))
}

// distrust takes those out of the record of which that became known later.
func (r *ckptRecord) distrust(trouble time.Time) (dropped []savedCkpt) {
	r.Saved = slices.DeleteFunc(r.Saved, func(c savedCkpt) bool {
		if c.Sure || whole(c.Confirmed, trouble) {
			return false
		}
		dropped = append(dropped, c)
		return true
	})
	for _, c := range dropped {
		if r.Doubtful == nil {
			r.Doubtful = map[int][]string{}
		}
		r.Doubtful[c.Node] = append(r.Doubtful[c.Node], c.Name)
	}
	return dropped
}

// written is when a checkpoint was finished, by the clock here: the node's own says
// it exactly, where it goes right.
func (u *ckptUnit) written() time.Time {
	at := time.UnixMicro(int64(u.newest * 1e6))
	switch {
	case at.Before(u.since):
		return u.since
	case at.After(u.until):
		return u.until
	}
	return at
}

// same reports whether two looks saw the same checkpoint.
func (u *ckptUnit) same(other *ckptUnit) bool {
	return other != nil && u.files == other.files
}

// findUnit is the checkpoint of a name; nil when there is none.
func findUnit(units []*ckptUnit, name string) *ckptUnit {
	for _, u := range units {
		if u.name == name {
			return u
		}
	}
	return nil
}

// savedCkpt is a whole checkpoint of one node that is home.
type savedCkpt struct {
	Node   int          `json:"node"`
	Name   string       `json:"name"`
	Dir    string       `json:"dir"` // below the directory of runs
	In     string       `json:"in"`  // where it was, below the code directory
	Newest float64      `json:"newest"`
	Files  transfer.Sum `json:"files"`
	// Confirmed is when it was seen for the second time; Sure is set where nothing that
	// becomes known later makes it doubtful.
	Confirmed time.Time `json:"confirmed,omitzero"`
	Sure      bool      `json:"sure,omitempty"`
}

// ckptRecord is what is known of the checkpoints of a run.
type ckptRecord struct {
	Saved []savedCkpt `json:"saved"`
	// Doubtful are, by node, checkpoints that were being written when the run
	// ended.
	Doubtful map[int][]string `json:"doubtful,omitempty"`
	Serial   int              `json:"serial"`
}

// MarshalJSON writes the names so that they come back byte for byte.
func (r ckptRecord) MarshalJSON() ([]byte, error) {
	type plain ckptRecord
	return json.Marshal(plain(r.coded(namejson.Encode)))
}

// UnmarshalJSON reads what MarshalJSON has written, also that of an earlier dlwb.
func (r *ckptRecord) UnmarshalJSON(text []byte) error {
	type plain ckptRecord
	var p plain
	err := json.Unmarshal(text, &p)
	*r = ckptRecord(p).coded(namejson.Decode)
	return err
}

func (r ckptRecord) coded(code func(string) string) ckptRecord {
	saved := slices.Clone(r.Saved)
	for i, c := range saved {
		saved[i].Name, saved[i].In = code(c.Name), code(c.In)
	}
	doubtful := maps.Clone(r.Doubtful)
	for node, names := range doubtful {
		names = slices.Clone(names)
		for i, name := range names {
			names[i] = code(name)
		}
		doubtful[node] = names
	}
	r.Saved, r.Doubtful = saved, doubtful
	return r
}

// newestOf is the newest whole checkpoint of a node; nil: it has none.
func (r *ckptRecord) newestOf(node int) (newest *savedCkpt) {
	for i, c := range r.Saved {
		if c.Node == node && (newest == nil || c.Newest > newest.Newest) {
			newest = &r.Saved[i]
		}
	}
	return newest
}

func (r *ckptRecord) find(node int, name string) *savedCkpt {
	for i, c := range r.Saved {
		if c.Node == node && c.Name == name {
			return &r.Saved[i]
		}
	}
	return nil
}

// writers are the nodes that have written whole checkpoints.
func (r *ckptRecord) writers() []int {
	var nodes []int
	for _, c := range r.Saved {
		nodes = append(nodes, c.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// restorable are the checkpoints to go on from: the newest that is whole on
// every node which writes some. Where the nodes give theirs different names, it
// is the newest of each.
func (r *ckptRecord) restorable() []*savedCkpt {
	writers := r.writers()
	var best []*savedCkpt
	for _, c := range r.Saved {
		var parts []*savedCkpt
		for _, node := range writers {
			if part := r.find(node, c.Name); part != nil {
				parts = append(parts, part)
			}
		}
		if len(parts) == len(writers) && (best == nil || parts[0].Newest > best[0].Newest) {
			best = parts
		}
	}
	if best != nil {
		return best
	}
	for _, node := range writers {
		best = append(best, r.newestOf(node))
	}
	return best
}

// keptCkpts is how many checkpoints of a node are kept here.
const keptCkpts = 3

// add takes a checkpoint that came home, and gives back what is no longer
// needed: an older one of its name, and the oldest when there are many.
func (r *ckptRecord) add(c savedCkpt) (drop []savedCkpt) {
	keep := []savedCkpt{c}
	mine := 1
	slices.SortFunc(r.Saved, func(a, b savedCkpt) int { return cmp.Compare(b.Newest, a.Newest) })
	for _, old := range r.Saved {
		if old.Node == c.Node && (old.Name == c.Name || mine == keptCkpts) {
			drop = append(drop, old)
			continue
		}
		if old.Node == c.Node {
			mine++
		}
		keep = append(keep, old)
	}
	r.Saved = keep
	return drop
}
