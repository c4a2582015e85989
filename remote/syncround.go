package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/units"
)

// lookPatience is how long nodes that have told what they need wait for those
// that have not: all that is common to them is sent once.
const lookPatience = 3 * time.Second

// syncRound brings nodes up to date with the state in which the tree is now.
type syncRound struct {
	tree  *Tree
	id    string
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
	all.Go(func() { r.deliver(ctx, ready) })
	for range late {
		if s := <-arrivals; s.needy() {
			all.Go(func() { s.err = s.direct(ctx) })
		}
	}
	all.Wait()
	var errs []error
	for _, s := range r.nodes {
		if s.err != nil {
			errs = append(errs, s.wrap(s.err))
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

// prepare asks a node what it has, and plans.
func (s *nodeSync) prepare(ctx context.Context) error {
	s.report("looking what is there")
	if err := s.look(ctx); err != nil {
		return err
	}
	if !s.view.same {
		s.plan, s.placed = planSync(s.tree, s.want.manifest, s.view), nil
		for _, e := range s.plan.send {
			s.plan.alone[e] = s.large(e)
		}
	}
	return nil
}

// needy reports whether there is something to do on the node.
func (s *nodeSync) needy() bool { return s.err == nil && s.plan != nil && !s.plan.empty() }

// deliver brings nodes what they need: to one of those that can pass it on to
// each other, and directly to the others.
func (r *syncRound) deliver(ctx context.Context, nodes []*nodeSync) {
	r.sendLarge(ctx, nodes)
	nodes = slices.DeleteFunc(nodes, func(s *nodeSync) bool { return s.err != nil })
	groups := map[string][]*nodeSync{}
	for _, s := range nodes {
		groups[s.view.pairing()] = append(groups[s.view.pairing()], s)
	}
	var all sync.WaitGroup
	for pairing, group := range groups {
		all.Go(func() {
			if pairing == "" {
				each(group, func(s *nodeSync) { s.err = s.direct(ctx) })
				return
			}
			r.together(ctx, group)
		})
	}
	all.Wait()
}

func each(nodes []*nodeSync, do func(*nodeSync)) {
	var all sync.WaitGroup
	for _, s := range nodes {
		all.Go(func() { do(s) })
	}
	all.Wait()
}

// together serves nodes that can pass on what they get. Whoever is left out of
// that is served directly.
func (r *syncRound) together(ctx context.Context, group []*nodeSync) {
	var all sync.WaitGroup
	defer all.Wait()
	for relayPays(group) {
		g := newRelay(r.tree, group)
		left, err := g.run(ctx)
		if err != nil {
			for _, s := range left {
				s.err = err
			}
			return
		}
		group = left
		if !g.headFailed() {
			break
		}
		// The others did not fail; one of them may do better.
		head := g.head()
		all.Go(func() { head.err = head.retry(ctx) })
		group = slices.DeleteFunc(group, func(s *nodeSync) bool { return s == head })
		each(group, func(s *nodeSync) { s.err = s.again(ctx) })
		group = slices.DeleteFunc(group, func(s *nodeSync) bool { return !s.needy() })
	}
	each(group, func(s *nodeSync) {
		if s.broken {
			s.err = s.retry(ctx)
		} else {
			s.err = s.direct(ctx)
		}
	})
}

// again looks anew what a node has, after something went wrong there.
func (s *nodeSync) again(ctx context.Context) error {
	s.byHeart, s.long, s.broken = titled{}, true, false
	return s.prepare(ctx)
}

// retry is direct for a node where something went wrong.
func (s *nodeSync) retry(ctx context.Context) error {
	if err := s.again(ctx); err != nil || s.view.same {
		return err
	}
	return s.direct(ctx)
}

// direct sends a node from here what it needs.
func (s *nodeSync) direct(ctx context.Context) error {
	err := s.sendAll(ctx)
	lost := new(LostError)
	if err == nil || s.long || !s.shortened || ctx.Err() != nil || errors.As(err, &lost) || errors.Is(err, errFileMoved) {
		return err
	}
	// The records there may not be what they were said to be.
	return s.retry(ctx)
}

// largeFirst sends the large files that have not come yet.
func (s *nodeSync) largeFirst(ctx context.Context) error {
	if !slices.ContainsFunc(s.plan.send, func(e *treeEntry) bool { return s.large(e) && s.placed[e.path] == nil }) {
		return nil
	}
	r := &syncRound{tree: s.tree, id: s.id, nodes: []*nodeSync{s}}
	s.err = nil
	r.sendLarge(ctx, r.nodes)
	return s.err
}

func (s *nodeSync) sendAll(ctx context.Context) error {
	if s.plan.empty() {
		return nil
	}
	if err := s.largeFirst(ctx); err != nil {
		return err
	}
	batches := s.plan.batches(s.tree.part)
	for i, b := range batches {
		s.report(sending(b, i, len(batches)))
		if err := s.send(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// sending is the progress line of a batch.
func sending(b *batch, i, of int) string {
	text := fmt.Sprintf("sending %s, %s", count(len(b.send), "file"), units.Bytes(b.bytes))
	if len(b.send) == 0 {
		text = "removing " + count(len(b.plan.remove)+len(b.plan.setBy), "file")
	}
	return text + partText(i, of)
}

func partText(i, of int) string {
	if of < 2 {
		return ""
	}
	return fmt.Sprintf(" (part %d of %d)", i+1, of)
}
