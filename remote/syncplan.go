package remote

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// nodeView is what a node has of a project: what it told when it was asked.
type nodeView struct {
	same    bool // it has exactly what it should; nothing else is known
	clean   bool // it has exactly what is known by heart, and none of it was touched
	tools   []string
	have    manifest
	halfway bool                // an earlier sync was stopped while it put files in place
	states  map[string][]string // the states in which dlwb itself saw its files
	now     map[string][]string // their states at present
}

func (v *nodeView) has(tool string) bool { return slices.Contains(v.tools, tool) }

// fileState is how a file that dlwb put there is now.
type fileState int

const (
	untouched fileState = iota
	edited
	gone
)

func (v *nodeView) state(p string) fileState {
	if !v.has("stat") {
		return untouched // nobody can tell; what dlwb wrote down must do
	}
	now := v.now[p]
	switch {
	case v.clean && len(now) == 0:
		if _, known := v.have[p]; known {
			return untouched
		}
		return gone
	case len(now) == 0:
		return gone
	case slices.Contains(v.states[p], now[0]):
		return untouched
	}
	return edited
}

// syncPlan is what has to happen on one node.
type syncPlan struct {
	send    []*treeEntry // files and links, in the order of their paths
	dirs    []string     // new directories
	remove  []string     // files that are no longer part of the project
	rmdirs  []string     // directories likewise, the deepest first
	setBy   []string     // to be moved aside first: edited there, and now replaced or removed
	over    map[string]bool
	fresh   map[string]bool     // directories that are new with all that is to be in them
	alone   map[*treeEntry]bool // of send: these come in streams of their own
	edited  []string            // edited there, unchanged here: left as they are
	forgets []string            // paths that leave the manifest without anything to do
	stale   bool                // the node's manifest says something else, if only in details
}

func (p *syncPlan) empty() bool {
	return !p.stale && len(p.send)+len(p.dirs)+len(p.remove)+len(p.rmdirs)+len(p.setBy)+len(p.forgets) == 0
}

// planSync compares what a node should have with what it has. Three things
// decide about a file: what is here, what dlwb put there, and what is there
// now. Whatever somebody did on the node is not lost: a file edited there stays
// as long as it does not change here too, and is moved aside when it does.
func planSync(t *Tree, want manifest, v *nodeView) *syncPlan {
	p := &syncPlan{over: map[string]bool{}, alone: map[*treeEntry]bool{}, stale: v.halfway || !want.same(v.have)}
	for _, e := range t.entries {
		p.decide(e, want[e.path], v)
	}
	for name, had := range v.have {
		if w, ok := want[name]; !ok || (w.kind == kindDir) != (had.kind == kindDir) {
			p.drop(name, had, v)
		}
	}
	p.findFresh(t)
	slices.Sort(p.remove)
	slices.SortFunc(p.rmdirs, func(a, b string) int {
		return cmp.Or(-cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	return p
}

// findFresh finds the topmost directories that are new with all that is to be
// in them: such a one is moved into its place as it is.
func (p *syncPlan) findFresh(t *Tree) {
	isNew, sent, filled := map[string]bool{}, map[*treeEntry]bool{}, map[string]bool{}
	for _, dir := range p.dirs {
		isNew[dir] = true
	}
	for _, e := range p.send {
		sent[e] = true
	}
	p.fresh = map[string]bool{}
	for _, dir := range p.dirs {
		p.fresh[dir] = !inOneOf(dir, isNew)
	}
	for _, e := range t.entries {
		top := topOf(e.path, isNew)
		switch {
		case top == "" || e.kind == kindDir && isNew[e.path]:
		case sent[e]:
			filled[top] = true
		default:
			p.fresh[top] = false
		}
	}
	maps.DeleteFunc(p.fresh, func(dir string, is bool) bool { return !is || !filled[dir] })
}

// topOf is the topmost of a set of directories in which a path lies, or which
// it is; empty: it lies in none.
func topOf(p string, dirs map[string]bool) string {
	for i := range len(p) {
		if p[i] == '/' && dirs[p[:i]] {
			return p[:i]
		}
	}
	if dirs[p] {
		return p
	}
	return ""
}

// inOneOf reports whether a directory lies in one of a set.
func inOneOf(dir string, dirs map[string]bool) bool { return topOf(dir, dirs) != dir }

// decide settles what happens for a thing that should be there.
func (p *syncPlan) decide(e *treeEntry, want manifestEntry, v *nodeView) {
	had, known := v.have[e.path]
	if e.kind == kindDir {
		if !known || had.kind != kindDir || !v.has("dir") {
			p.dirs = append(p.dirs, e.path)
		}
		return
	}
	state := gone
	// What is not in the manifest may still be ours, of a sync that was stopped.
	if known && had.kind != kindDir || len(v.now[e.path]) > 0 {
		state = v.state(e.path)
	}
	switch {
	case had.same(want) && state == untouched:
		return
	case had.same(want) && state == edited:
		p.edited = append(p.edited, e.path)
		return
	}
	p.over[e.path] = state == untouched
	p.send = append(p.send, e)
}

// drop settles what happens to a thing that dlwb put there and that should not
// be there any more, or be something else.
func (p *syncPlan) drop(name string, had manifestEntry, v *nodeView) {
	if had.kind == kindDir {
		p.rmdirs = append(p.rmdirs, name)
		return
	}
	switch v.state(name) {
	case untouched:
		p.remove = append(p.remove, name)
	case edited:
		p.setBy = append(p.setBy, name)
	case gone:
		p.forgets = append(p.forgets, name)
	}
}

// A batch is what one stream brings: a part of the plan that is whole in itself.
type batch struct {
	plan  *syncPlan
	first bool // it also removes and makes directories
	send  []*treeEntry
	bytes int64
}

const (
	// A stream that breaks off is sent again from its start; these say how
	// much that can be.
	batchBytes = 64e6
	batchFiles = 5000
)

// batches cuts a plan into streams of at most so many bytes, save that a file
// is never cut.
func (p *syncPlan) batches(most int64) []*batch {
	b := &batch{plan: p, first: true}
	all := []*batch{b}
	for _, e := range p.send {
		if p.alone[e] {
			b.send = append(b.send, e) // it has come by itself
			continue
		}
		if len(b.send) > 0 && (b.bytes+e.size > most || len(b.send) == batchFiles) {
			b = &batch{plan: p}
			all = append(all, b)
		}
		b.send = append(b.send, e)
		b.bytes += e.size
	}
	return all
}

// after gives what the node has once the batch is in place.
func (b *batch) after(have, want manifest) manifest {
	have = maps.Clone(have)
	if b.first {
		for _, list := range [][]string{b.plan.remove, b.plan.rmdirs, b.plan.setBy, b.plan.forgets} {
			for _, name := range list {
				delete(have, name)
			}
		}
		for _, name := range b.plan.dirs {
			have[name] = want[name]
		}
	}
	for _, e := range b.send {
		have[e.path] = want[e.path]
	}
	return have
}
