package transfer

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/units"
)

// SyncResult is what a Sync did. Its String is the line for the user.
type SyncResult struct {
	Files    int   // distinct files and links that were sent, to however many nodes
	Bytes    int64 // their size
	Wire     int64 // bytes that left this machine for that: compressed, and to one node where that one passes them on
	Removed  int   // distinct files that were removed
	Nodes    int   // how many nodes were synced
	Changed  int   // on how many of them something was done
	Duration time.Duration
	// Edited are files ("node0: train.py") that were edited on a node and did
	// not change here: they were left as they are.
	Edited []string
	// MadeWay are files that were edited on a node, or not put there by dlwb,
	// and whose place was needed: they lie in ~/.dlwb/kept/ there now.
	MadeWay []string
	// Moving are files that changed each time they were to be sent, such as a
	// log that something writes to: they were left out.
	Moving []string

	dirs int
}

// String is "12 files, 48 KB to 2 nodes in 0.3 s".
func (r SyncResult) String() string {
	on := count(r.Changed, "node")
	var what string
	switch {
	case r.Changed == 0:
		what = "nothing changed on " + count(r.Nodes, "node")
	case r.Files > 0 && r.Removed > 0:
		what = fmt.Sprintf("%s, %s to %s, %s removed,", count(r.Files, "file"), units.Bytes(r.Bytes), on, digits(r.Removed))
	case r.Files > 0:
		what = fmt.Sprintf("%s, %s to %s", count(r.Files, "file"), units.Bytes(r.Bytes), on)
	case r.Removed > 0:
		what = fmt.Sprintf("%s removed on %s", count(r.Removed, "file"), on)
	case r.dirs > 0:
		what = fmt.Sprintf("%s to %s", count(r.dirs, "directory"), on)
	default:
		what = "records brought up to date on " + on
	}
	return what + " in " + units.Duration(r.Duration)
}

// And is this result with that of another sync of the same tree, to other nodes.
func (r SyncResult) And(other SyncResult) SyncResult {
	r.Files, r.Bytes, r.Removed = max(r.Files, other.Files), max(r.Bytes, other.Bytes), max(r.Removed, other.Removed)
	r.Wire += other.Wire
	r.Nodes += other.Nodes
	r.Changed += other.Changed
	r.Edited, r.MadeWay, r.Moving = append(r.Edited, other.Edited...), append(r.MadeWay, other.MadeWay...), append(r.Moving, other.Moving...)
	r.dirs = max(r.dirs, other.dirs)
	return r
}

// syncTotal adds up what happened on the nodes.
type syncTotal struct {
	mu      sync.Mutex
	nodes   int
	changed map[int]bool
	sent    map[string]int64
	removed map[string]bool
	dirs    map[string]bool
	edited  map[string]bool
	res     SyncResult
}

func newSyncTotal(nodes int) *syncTotal {
	return &syncTotal{
		nodes: nodes, changed: map[int]bool{}, sent: map[string]int64{},
		removed: map[string]bool{}, dirs: map[string]bool{}, edited: map[string]bool{},
	}
}

// add counts what was really done, also by a sync that failed later.
func (c *syncTotal) add(i int, s *nodeSync) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.res.Wire += s.wire.Load()
	for _, e := range s.sent {
		if e.kind == kindDir {
			c.dirs[e.path] = true
		} else {
			c.sent[e.path] = e.size
		}
	}
	for _, name := range s.kept {
		c.res.MadeWay = append(c.res.MadeWay, s.node.Name()+": "+name)
	}
	if s.plan == nil {
		return
	}
	for _, name := range s.plan.edited {
		if name = s.node.Name() + ": " + name; !c.edited[name] {
			c.edited[name] = true
			c.res.Edited = append(c.res.Edited, name)
		}
	}
	if !s.began {
		return
	}
	c.changed[i] = true
	for _, name := range s.plan.remove {
		if !slices.Contains(s.plan.gone, name) {
			c.removed[name] = true
		}
	}
}

func (c *syncTotal) result(took time.Duration) SyncResult {
	r := c.res
	r.Nodes, r.Changed, r.Duration = c.nodes, len(c.changed), took
	r.Files, r.Removed, r.dirs = len(c.sent), len(c.removed), len(c.dirs)
	for _, size := range c.sent {
		r.Bytes += size
	}
	return r
}
