package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
)

// lookPatience is how long nodes that have told what they need wait for those
// that have not: all that is common to them is read and compressed once.
const lookPatience = 3 * time.Second

// partGrace is how long an agent has to take leave.
const partGrace = 5 * time.Second

// syncRound brings nodes up to date with the state in which the tree is now.
type syncRound struct {
	tree  *Tree
	root  *os.Root
	nodes []*nodeSync
}

// run does all nodes. The error has a line for each one that failed.
func (r *syncRound) run(ctx context.Context) error {
	arrivals := make(chan *nodeSync, len(r.nodes))
	for _, s := range r.nodes {
		go func() {
			s.err = s.prepare(ctx)
			arrivals <- s
		}()
	}
	ready, late := gather(arrivals, len(r.nodes))
	// The first of them is what people call the head of a cluster.
	slices.SortFunc(ready, func(a, b *nodeSync) int { return slices.Index(r.nodes, a) - slices.Index(r.nodes, b) })
	var all sync.WaitGroup
	for _, nodes := range paired(ready) {
		all.Go(func() { r.serve(ctx, nodes) })
	}
	for range late {
		if s := <-arrivals; s.needy() {
			all.Go(func() { r.serve(ctx, []*nodeSync{s}) })
		}
	}
	all.Wait()
	var errs []error
	for _, s := range r.nodes {
		s.leave()
		if s.err != nil {
			errs = append(errs, s.failure(s.err))
		}
	}
	return errors.Join(errs...)
}

// gather waits for nodes to tell what they need, and for the slow ones only a
// while; how many of them are late is the second result.
func gather(arrivals <-chan *nodeSync, of int) (ready []*nodeSync, late int) {
	var enough <-chan time.Time
	for ; of > 0; of-- {
		select {
		case s := <-arrivals:
			if s.needy() {
				ready = append(ready, s)
				enough = time.After(lookPatience)
			}
		case <-enough:
			return ready, of
		}
	}
	return ready, 0
}

// paired groups nodes that can pass files on to each other, and those that can't.
func paired(nodes []*nodeSync) map[string][]*nodeSync {
	groups := map[string][]*nodeSync{}
	for _, s := range nodes {
		groups[s.view.pairing] = append(groups[s.view.pairing], s)
	}
	return groups
}

// each does something with all nodes that have not failed.
func (g *group) each(do func(*nodeSync) error) {
	var all sync.WaitGroup
	for _, s := range g.nodes {
		if s.err == nil {
			all.Go(func() { s.err = do(s) })
		}
	}
	all.Wait()
}

// group is nodes that are served at the same time. What any of them needs is cut
// into batches, of which each gets its own part.
type group struct {
	*syncRound
	nodes   []*nodeSync
	batches [][]*treeEntry
	mu      sync.Mutex
	parcels map[string]*parcel // by batch and what is needed of it
}

// serve brings nodes what they need.
func (r *syncRound) serve(ctx context.Context, nodes []*nodeSync) {
	g := &group{syncRound: r, nodes: nodes, parcels: map[string]*parcel{}}
	needed := map[*treeEntry]bool{}
	for _, s := range nodes {
		s.needs = map[*treeEntry]bool{}
		for _, e := range s.plan.send {
			needed[e], s.needs[e] = true, true
		}
	}
	all := slices.DeleteFunc(slices.Clone(r.tree.entries), func(e *treeEntry) bool { return !needed[e] })
	g.batches = batches(all, r.tree.part)
	g.each(func(s *nodeSync) error { return s.announce(ctx, s.of(g.batches[0]), true) })
	if way := newRelay(g); way.pays(ctx) {
		way.run(ctx)
	} else {
		g.each(func(s *nodeSync) error { return g.direct(ctx, s) })
	}
	r.again(ctx, nodes)
}

// of is what of a batch a node needs.
func (s *nodeSync) of(batch []*treeEntry) []*treeEntry {
	return slices.DeleteFunc(slices.Clone(batch), func(e *treeEntry) bool { return !s.needs[e] })
}

// direct sends a node from here what it needs. The first batch is announced.
func (g *group) direct(ctx context.Context, s *nodeSync) error {
	for i := range g.batches {
		files := s.of(g.batches[i])
		if i > 0 && len(files) == 0 {
			continue
		}
		s.report(sending(s, files) + partText(i, len(g.batches)))
		if i > 0 {
			if err := s.announce(ctx, files, false); err != nil {
				return err
			}
		}
		if err := s.deliver(ctx, files, g.parcel(i, files)); err != nil {
			return err
		}
	}
	return nil
}

// parcel gives the content of files for whoever needs just these of a batch.
func (g *group) parcel(i int, files []*treeEntry) *parcel {
	key := fmt.Sprint(i, needsOf(files))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.parcels[key] == nil {
		users := 0
		for _, s := range g.nodes {
			if needsOf(s.of(g.batches[i])) == needsOf(files) {
				users++
			}
		}
		g.parcels[key] = newParcel(g.root, files, users)
		g.parcels[key].better.Store(slices.ContainsFunc(g.nodes, func(s *nodeSync) bool { return s.view.far }))
	}
	return g.parcels[key]
}

// again begins anew where another sync of the same directory came first, and
// where a connection was lost while nodes served each other.
func (r *syncRound) again(ctx context.Context, nodes []*nodeSync) {
	for _, s := range nodes {
		if s.err == nil || s.tries == syncTries || ctx.Err() != nil {
			continue
		}
		if wire.Is(s.err, wire.SyncOverrun) || s.relayed && errors.As(s.err, new(*remote.LostError)) {
			s.tries++
			s.relayed, s.err = false, nil
			if s.err = s.prepare(ctx); s.needy() {
				r.serve(ctx, []*nodeSync{s})
			}
		}
	}
}

// sending is the progress line of a batch.
func sending(s *nodeSync, files []*treeEntry) string {
	if len(files) == 0 {
		return "removing " + count(len(s.plan.remove)-len(s.plan.gone), "file")
	}
	return "sending " + amount(files)
}

func partText(i, of int) string {
	if of < 2 {
		return ""
	}
	return fmt.Sprintf(" (part %d of %d)", i+1, of)
}
