package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
)

// Place is a directory of a node, below its home.
type Place struct {
	Node *remote.Node
	Dir  string
}

// sharing is a Place as the tests may stand in for it.
type sharing struct {
	node syncPeer
	dir  string
}

// Share copies what is in a directory of one node to other nodes, over their
// own network, with the node-to-node key: none of it comes by here. Each takes
// it only when its SHA-256 is the one that the sender tells us, and puts it in
// place whole, where it takes the place of whatever was there. most bounds its
// bytes.
//
// There is an error for each of the nodes; one that has one has got nothing,
// and nothing is left there. A node that can't be reached is left out, as in a
// Sync. One that takes the connection and reads nothing holds up the others for
// some seconds; then it is left out too.
func Share(ctx context.Context, from Place, to []Place, most int64) []error {
	list := make([]sharing, len(to))
	for i, p := range to {
		list[i] = sharing{peer{p.Node}, p.Dir}
	}
	return share(ctx, sharing{peer{from.Node}, from.Dir}, list, most)
}

func share(ctx context.Context, from sharing, to []sharing, most int64) []error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := func() { stop(errors.New("it has not come in time")) }
	limit := time.AfterFunc(shareLimit(most), late)
	defer limit.Stop()
	name := "share-" + randomWord()
	errs, takers := make([]error, len(to)), make([]*taker, len(to))
	each := func(do func(i int)) {
		var all sync.WaitGroup
		for i := range to {
			all.Go(func() { do(i) })
		}
		all.Wait()
	}
	each(func(i int) { takers[i], errs[i] = to[i].take(ctx, name, most) })
	var names []string
	for i, s := range to {
		if errs[i] == nil {
			names = append(names, s.node.Name())
		}
	}
	began := time.Now()
	given, err := from.give(ctx, name, names)
	grace := time.AfterFunc(max(relayGrace, time.Since(began)), late)
	defer grace.Stop()
	each(func(i int) {
		if errs[i] != nil {
			return
		}
		if err != nil { // why the node has got nothing
			takers[i].st.Reset()
			errs[i] = fmt.Errorf("%s could not send it: %w", from.node.Name(), err)
			return
		}
		errs[i] = takers[i].conclude(ctx, given)
	})
	return errs
}

// relayGrace is how long nodes have at least to finish after the one that sends
// is through.
const relayGrace = 20 * time.Second

// shareLimit is how long so many bytes may take: at less than a megabyte a
// second, nodes are hardly nearer to each other than to where the bytes are from.
func shareLimit(most int64) time.Duration {
	return time.Minute + time.Duration(most>>20)*time.Second
}

// give has a node send the directory.
func (s sharing) give(ctx context.Context, name string, names []string) (given wire.ShareGiven, err error) {
	st, wrap, err := s.node.talk(ctx, wire.Give, wire.ShareGive{Dir: s.dir, Name: name, Peers: names})
	if err != nil {
		return given, err
	}
	t := &taker{st: st, wrap: wrap}
	defer st.Reset()
	return given, t.hear(ctx, &given)
}

// taker is a node that takes what another one sends.
type taker struct {
	st   talking
	wrap func(error) error
}

func (s sharing) take(ctx context.Context, name string, most int64) (*taker, error) {
	st, wrap, err := s.node.talk(ctx, wire.Take, wire.ShareTake{Dir: s.dir, Name: name, Most: most})
	if err != nil {
		return nil, err
	}
	t := &taker{st, wrap}
	if err := t.hear(ctx, &wire.ShareReady{}); err != nil {
		st.Reset()
		return nil, err
	}
	return t, nil
}

func (t *taker) hear(ctx context.Context, v any) error {
	stop := context.AfterFunc(ctx, t.st.Reset)
	err := t.st.Recv(v)
	if !stop() {
		return context.Cause(ctx)
	}
	return t.wrap(tooEarly(err))
}

// conclude tells the node what it must have got.
func (t *taker) conclude(ctx context.Context, given wire.ShareGiven) error {
	defer t.st.Reset()
	_ = t.st.Send(given) // the node says why it does not listen
	return t.hear(ctx, &wire.ShareReady{})
}
