package transfer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// relayPolicy is when nodes pass files on to each other.
type relayPolicy struct {
	// from is how many bytes there must be, over all nodes but one, for the
	// detour to be worth the connections between them.
	from int64
	// slow is the rate, in bytes a second over all nodes, below which it is: on a
	// local network this machine reaches them as well as they reach each other.
	// It is measured. 0: it is, in any case.
	slow float64
	// gain is what it must save.
	gain time.Duration
}

var standardRelay = relayPolicy{from: 4 << 20, slow: 25e6, gain: time.Second}

// relay serves nodes by one stream, where that pays: it goes to one of them,
// which passes it on to the others. What these are to have, they are told here:
// what they get from elsewhere counts only when its checksums are right.
type relay struct {
	*group
	head *nodeSync
	name string // under which the others wait; empty: they don't
}

func newRelay(g *group) *relay { return &relay{group: g} }

// choose chooses who passes the files on.
func (g *relay) choose() bool {
	g.head, g.name = nil, ""
	alive := 0
	for _, s := range g.nodes {
		if s.err == nil {
			alive++
			if g.head == nil && s.view.sends {
				g.head = s
			}
		}
	}
	return g.head != nil && alive > 1
}

// bytes is how much there is to be sent to all nodes, and to the one that needs most.
func (g *relay) bytes() (all, most int64) {
	for _, s := range g.nodes {
		n := s.plan.bytes()
		all, most = all+n, max(most, n)
	}
	return all, most
}

// pays reports whether the detour is worth it, by how fast the first frame goes
// to all nodes that need the same.
func (g *relay) pays(ctx context.Context) bool {
	policy, all, most := g.tree.relay, int64(0), int64(0)
	if all, most = g.bytes(); g.nodes[0].view.pairing == "" || !g.choose() || all-most < policy.from {
		return false
	}
	if policy.slow == 0 {
		return true
	}
	files := g.nodes[0].of(g.batches[0])
	p := g.parcel(0, files)
	if len(p.frames) == 0 {
		return false
	}
	rate, packed := 0.0, 0.0
	for _, f := range p.frames[:min(probes, len(p.frames))] {
		m, err := p.take(f)
		if err != nil {
			return false // sending it says why
		}
		packed = float64(len(m.data)) / float64(max(1, f.raw))
		if rate = max(rate, g.rate(ctx, f, m.data, files)); rate == 0 || rate >= policy.slow {
			return false
		}
	}
	return packed*float64(all-most)/rate > policy.gain.Seconds()
}

// probes is how many frames show how fast the line is. The better one counts:
// what holds up a single frame may be something else.
const probes = 2

// rate sends a frame to all nodes that need the same files, and measures how
// many bytes a second they take together.
func (g *relay) rate(ctx context.Context, f *frame, data []byte, files []*treeEntry) float64 {
	var sent atomic.Int64
	began := time.Now()
	g.each(func(s *nodeSync) error {
		if s.hasCome(f) || needsOf(s.of(g.batches[0])) != needsOf(files) {
			return nil
		}
		s.ahead = append(s.ahead, f)
		sent.Add(int64(len(data)))
		err := s.sayEncoded(ctx, data)
		if err == nil {
			_, err = s.settle(ctx, files, wire.SyncSettle{})
		}
		return err
	})
	return float64(sent.Load()) / time.Since(began).Seconds()
}

// run brings all batches to the head, which passes them on, and from here what
// has not come that way.
func (g *relay) run(ctx context.Context) {
	for i, files := range g.batches {
		if i > 0 {
			g.each(func(s *nodeSync) error { return s.announce(ctx, s.of(files), false) })
		}
		p := newParcel(g.root, files, 1)
		p.better.Store(true)
		if !g.pass(ctx, p, files) {
			g.each(func(s *nodeSync) error { return s.deliver(ctx, s.of(files), g.parcel(i, s.of(files))) })
			continue
		}
		g.each(func(s *nodeSync) error {
			if s.lacks > 0 {
				s.report(fmt.Sprintf("not reached from %s: sending from here", g.head.node.Name()))
			}
			return s.finish(ctx, s.of(files))
		})
	}
	if g.name != "" && g.head.err == nil {
		if g.head.err = g.head.say(ctx, wire.SyncStep{Forward: &wire.SyncForward{Over: true}}); g.head.err == nil {
			_, g.head.err = g.head.settled(ctx, nil)
		}
	}
}

// pass brings a batch to the others by the head. Where that fails, another one
// takes its place. False: there is none left.
func (g *relay) pass(ctx context.Context, p *parcel, files []*treeEntry) bool {
	for {
		if (g.name == "" || g.head.err != nil) && !g.meet(ctx) {
			return false
		}
		if g.head.err == nil {
			g.together(ctx, p, files)
		}
		if g.head.err == nil {
			return true
		}
	}
}

// together brings a batch to the head, and from there to the others.
func (g *relay) together(ctx context.Context, p *parcel, files []*treeEntry) {
	head, others, what := g.head, g.others(), amount(files)
	head.report(fmt.Sprintf("sending %s, which go on to %s from there", what, count(len(others), "node")))
	through := make(chan struct{})
	var all sync.WaitGroup
	for _, s := range others {
		s.report(fmt.Sprintf("getting %s from %s", what, head.node.Name()))
		all.Go(func() { s.err = s.fromPeer(ctx, s.of(files), through) })
	}
	head.err = head.lead(ctx, p, files)
	close(through)
	all.Wait()
}

// meet has all but the head wait for what it sends.
func (g *relay) meet(ctx context.Context) bool {
	if !g.choose() {
		return false
	}
	g.name = "sync-" + randomWord()
	g.each(func(s *nodeSync) error {
		if s.relayed = true; s == g.head {
			return nil
		}
		if err := s.say(ctx, wire.SyncStep{Listen: g.name}); err != nil {
			return err
		}
		_, err := s.settled(ctx, nil)
		return err
	})
	var names []string
	for _, s := range g.others() {
		names = append(names, s.node.Name())
	}
	if g.head.err == nil {
		g.head.err = g.head.say(ctx, wire.SyncStep{Forward: &wire.SyncForward{Name: g.name, Peers: names}})
	}
	return true
}

// others are the nodes that get files from the head.
func (g *relay) others() (list []*nodeSync) {
	for _, s := range g.nodes {
		if s != g.head && s.err == nil {
			list = append(list, s)
		}
	}
	return list
}

// lead sends a batch to a node that passes it on.
func (s *nodeSync) lead(ctx context.Context, p *parcel, files []*treeEntry) error {
	err := s.bring(ctx, files, p)
	if err == nil {
		err = s.say(ctx, wire.SyncStep{Mark: true})
	}
	if err == nil {
		_, err = s.settle(ctx, s.of(files), wire.SyncSettle{})
	}
	return err
}

// fromPeer has a node take a batch from another one, until that is through.
func (s *nodeSync) fromPeer(ctx context.Context, files []*treeEntry, through <-chan struct{}) error {
	if err := s.say(ctx, wire.SyncStep{Settle: &wire.SyncSettle{Peer: true}}); err != nil {
		return err
	}
	told := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		select {
		case <-through:
			told <- s.say(ctx, wire.SyncStep{Through: true})
		case <-done:
			told <- nil
		}
	}()
	lacks, err := s.settled(ctx, files)
	close(done)
	if tellErr := <-told; err == nil {
		err = tellErr
	}
	s.lacks = len(lacks)
	return err
}
