package transfer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/remote/wire"
)

// nodeView is what a node has of a project: what it told when it was asked.
type nodeView struct {
	same    bool // it has exactly what it should; nothing else is known
	have    manifest
	odd     map[string]wire.SyncOdd // what is not as in have
	halfway bool                    // an earlier sync was stopped while it put files in place
	parts   map[wire.Bytes]int64    // how much of large files has come, by their SHA-256
	pairing string                  // names the nodes from which it can take files
	sends   bool                    // it can send files to these
	far     bool                    // it is not on a local network
}

// fileState is how a file that dlwb put there is now.
type fileState int

const (
	untouched fileState = iota
	edited
	gone
)

// now tells how a thing is there, and what it is.
func (v *nodeView) now(p string) (fileState, wire.SyncEntry) {
	had, known := v.have[p]
	odd, is := v.odd[p]
	switch {
	case is && odd.Now.Kind == 0 || !is && !known:
		return gone, wire.SyncEntry{}
	case !is:
		return untouched, had
	case odd.Ours:
		return untouched, odd.Now
	}
	return edited, odd.Now
}

// syncPlan is what has to happen on one node.
type syncPlan struct {
	send   []*treeEntry // files, links and new directories, in the order of their paths
	there  []*treeEntry // that lie there as they should, but not in the node's records
	remove []string     // files that are no longer part of the project
	rmdirs []string     // directories likewise, the deepest first
	aside  []string     // of send and remove: edited there, and moved away first
	gone   []string     // of remove: they are not there any more
	edited []string     // edited there, unchanged here: left as they are
	stale  bool         // the node's records say something else, if only in details
}

func (p *syncPlan) empty() bool {
	return !p.stale && len(p.send)+len(p.there)+len(p.remove)+len(p.rmdirs) == 0
}

// planSync compares what a node should have with what it has. Three things
// decide about a file: what is here, what dlwb put there, and what is there
// now. Whatever somebody did on the node is not lost: a file edited there stays
// as long as it does not change here too, and is moved aside when it does.
func planSync(t *Tree, want manifest, v *nodeView) *syncPlan {
	p := &syncPlan{stale: v.halfway}
	for _, e := range t.entries {
		p.decide(e, want[e.path], v)
	}
	for name, had := range v.have {
		if w, ok := want[name]; !ok || (w.Kind == wire.SyncDir) != (had.Kind == wire.SyncDir) {
			p.drop(name, had, v)
		}
	}
	slices.Sort(p.remove)
	slices.SortFunc(p.rmdirs, func(a, b string) int {
		return cmp.Or(-cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	return p
}

// decide settles what happens for a thing that should be there.
func (p *syncPlan) decide(e *treeEntry, want wire.SyncEntry, v *nodeView) {
	had, known := v.have[e.path]
	state, now := v.now(e.path)
	known = known && had.Same(want)
	switch {
	case e.kind == kindDir && known && state == untouched:
	case e.kind == kindDir:
		p.send = append(p.send, e)
	case state != gone && now.Same(want):
		if !known {
			p.there = append(p.there, e)
		}
	case known && state == edited:
		p.edited = append(p.edited, e.path)
	default:
		if state == edited {
			p.aside = append(p.aside, e.path)
		}
		p.send = append(p.send, e)
	}
}

// drop settles what happens to a thing that dlwb put there and that should not
// be there any more, or be something else.
func (p *syncPlan) drop(name string, had wire.SyncEntry, v *nodeView) {
	if had.Kind == wire.SyncDir {
		p.rmdirs = append(p.rmdirs, name)
		return
	}
	p.remove = append(p.remove, name)
	switch state, _ := v.now(name); state {
	case edited:
		p.aside = append(p.aside, name)
	case gone:
		p.gone = append(p.gone, name)
	}
}

// bytes is how much is to be sent, with what each file costs besides.
func (p *syncPlan) bytes() (n int64) {
	for _, e := range p.send {
		n += e.size + 200
	}
	return n
}

// needsOf names what is to be sent.
func needsOf(files []*treeEntry) string {
	var names strings.Builder
	for _, e := range files {
		names.WriteString(e.path + "\x00")
	}
	return shortHash(names.String())
}

const (
	// largeFrom is from what size on what came of a file outlives a connection,
	// and only what changed in it is sent.
	largeFrom = 16e6
	// A batch that breaks off is sent again from its start, but for what came of
	// large files; these say how much that can be.
	batchBytes = 64e6
	batchFiles = 20_000
)

// batches cuts what is to be sent into parts that are put in place each, of at
// most so many bytes, save that a file is never cut.
func batches(send []*treeEntry, most int64) (all [][]*treeEntry) {
	from, bytes := 0, int64(0)
	for i, e := range send {
		if i > from && (bytes+e.size > most || i-from == batchFiles) {
			all, from, bytes = append(all, send[from:i]), i, 0
		}
		bytes += e.size
	}
	return append(all, send[from:])
}
