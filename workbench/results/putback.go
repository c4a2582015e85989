package results

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

// PutBack puts the newest whole checkpoint of a run that failed or lost machines on
// the nodes that do not have it, before its command is started again as another run;
// and moves away what would be taken for a newer one and may not be whole. Dir is
// the profile's directory of checkpoints. It gives the path of each node's, below
// the code directory; none: the run has no whole one.
func (f *Fetcher) PutBack(ctx context.Context, at Site, run, lost, dir string) (map[int]string, error) {
	r := f.readCkpts(lost)
	if len(r.Saved) == 0 && len(r.Doubtful) == 0 { // else it has what is in doubt
		r = f.fromS3(ctx, at, lost)
	}
	put := &ckptPut{f: f, at: at, lost: lost, record: r, parts: r.restorable(),
		dir: planning.RemoteCode(at.Cluster) + "/" + path.Clean(planning.OfRun([]string{dir}, run)[0]),
		old: planning.OfRun([]string{dir}, lost)[0]}
	below := path.Clean(planning.OfRun([]string{dir}, run)[0])
	put.moved = below != path.Clean(put.old)
	busy, each := errgroup.WithContext(ctx)
	for i, n := range at.Nodes {
		if at.Disks.FirstAtCode(i) {
			busy.Go(func() error { return put.node(each, i, n) })
		}
	}
	if err := busy.Wait(); err != nil {
		return nil, err
	}
	// Should machines be lost again before the new run has one of its own.
	var again ckptRecord
	for _, c := range put.parts {
		kept := *c
		kept.Sure = true
		again.Saved = append(again.Saved, kept)
	}
	err := errors.Join(os.MkdirAll(f.owner.Dir(run), 0o700), f.keepCkpts(run, again), put.tell())
	return put.names(below), err
}

// names are the paths by node: its own part, else the newest of the others'.
func (p *ckptPut) names(below string) map[int]string {
	names := map[int]string{}
	for i := range p.at.Nodes {
		part := p.ownPart(i)
		for _, c := range p.parts {
			if part == nil || p.ownPart(i) == nil && c.Newest > part.Newest {
				part = c
			}
		}
		if part != nil {
			names[i] = path.Join(below, part.Name)
		}
	}
	return names
}

// ckptPut is the putting of checkpoints on the nodes of a new launch.
type ckptPut struct {
	f        *Fetcher
	at       Site
	lost     string // the run that failed or lost machines
	record   ckptRecord
	parts    []*savedCkpt
	dir, old string // of this launch below the home, of the lost run below the code directory
	moved    bool   // the two are not one directory: each run has its own
}

func (p *ckptPut) aside() string {
	return "dlwb/" + p.at.Cluster + "/unfinished/" + p.lost
}

// node prepares one node.
func (p *ckptPut) node(ctx context.Context, i int, n *remote.Node) error {
	units, err := lookForCkpts(ctx, n, p.at.Cluster, p.old)
	if err != nil {
		return &event.Fault{What: "look for checkpoints", Node: i, Why: err.Error()}
	}
	if names := p.notTrusted(i, units); len(names) > 0 {
		if err := transfer.MoveAside(ctx, n, planning.RemoteCode(p.at.Cluster)+"/"+path.Clean(p.old), p.aside(), names); err != nil {
			return &event.Fault{What: "move unfinished checkpoints away", Node: i, Why: err.Error()}
		}
		_ = p.at.Publish(event.Noticed{Level: "warning", Text: fmt.Sprintf("on node%d %s may not be whole: the run does not go on from it",
			i, strings.Join(names, ", ")), Next: "it is in ~/" + p.aside() + " there"})
	}
	for _, c := range p.wanted(i, units) {
		from := filepath.Join(p.f.ckptHome(*c), filepath.FromSlash(c.In))
		if err := transfer.Put(ctx, n, from, p.dir, p.aside()); err != nil {
			return &event.Fault{What: "put checkpoint " + c.Name + " back", Node: i, Why: err.Error()}
		}
	}
	return nil
}

// notTrusted are checkpoints of a node that a run would take for the newest: what
// was in doubt at the end, and what is newer than the one that all nodes have.
func (p *ckptPut) notTrusted(node int, units []*ckptUnit) []string {
	names := map[string]bool{}
	for _, name := range p.record.Doubtful[node] {
		names[name] = findUnit(units, name) != nil
	}
	for _, c := range p.parts {
		if c.Node != node {
			continue
		}
		for _, u := range units {
			names[u.name] = names[u.name] || u.newest > c.Newest
		}
	}
	maps.DeleteFunc(names, func(_ string, there bool) bool { return !there })
	return slices.Sorted(maps.Keys(names))
}

// wanted are the checkpoints that a node lacks: its own part, else what the
// others have under that name.
func (p *ckptPut) wanted(node int, units []*ckptUnit) (lacking []*savedCkpt) {
	own := p.ownPart(node)
	for _, c := range p.parts {
		if own != nil && c != own && c.Name == own.Name {
			continue
		}
		u := findUnit(units, c.Name)
		if p.moved || u == nil || slices.Contains(p.record.Doubtful[node], c.Name) || c == own && !u.same(&ckptUnit{files: c.Files}) {
			lacking = append(lacking, c)
		}
	}
	return lacking
}

func (p *ckptPut) ownPart(node int) *savedCkpt {
	for _, c := range p.parts {
		if c.Node == node {
			return c
		}
	}
	return nil
}

// tell says where the run goes on.
func (p *ckptPut) tell() error {
	if len(p.parts) == 0 {
		return p.at.Publish(event.Noticed{Level: "warning", Text: "no whole checkpoint of run " + p.lost +
			" came home: the run goes on from what its nodes have in " + p.old})
	}
	var names []string
	for _, c := range p.parts {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return p.at.Publish(event.Noticed{Level: "info", Text: "the newest whole checkpoint of run " + p.lost + " is on every node: " +
		strings.Join(slices.Compact(names), ", ")})
}
