//go:build unix

package keeper

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dlwb/dlwb/remote"
)

// awayMost is how long the node of a tunnel may be out of reach. It counts while
// this machine is awake.
const awayMost = 24 * time.Hour

// tunnelKey names a tunnel: one cluster has one of each name.
type tunnelKey struct {
	cluster, name string
	reverse       bool
}

// tunnel is one that is held until it is closed.
type tunnel struct {
	by   *held
	t    *remote.Tunnel
	wish remote.TunnelWish
	is   remote.TunnelHeld // as it was opened

	mu       sync.Mutex
	stands   remote.TunnelState
	away     time.Time // since when its node is not reached; zero: it is
	watchers map[chan struct{}]bool
	ended    chan struct{}
	why      string // valid after ended
}

// hold opens a tunnel, or finds it, and tells how it stands until the other side
// goes: the tunnel stays.
func (k *keeper) hold(conn net.Conn, in *bufio.Reader, q question) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		_, _ = in.Peek(1) // nothing more is said there: this is its end
	}()
	t, err := k.tunnel(ctx, q)
	if err != nil {
		_ = send(conn, answer{Failure: failureOf(err)})
		return
	}
	if t == nil {
		_ = send(conn, answer{})
		return
	}
	news := t.watch()
	defer t.unwatch(news)
	is := t.held()
	told := is.Stands
	if send(conn, answer{Tunnel: &is}) != nil {
		return
	}
	for {
		select {
		case <-news:
		case <-t.ended:
			_ = send(conn, tunnelNews{Stands: t.held().Stands, Ended: t.why})
			return
		case <-ctx.Done():
			return
		}
		if now := t.held().Stands; now != told {
			told = now
			if send(conn, tunnelNews{Stands: now}) != nil {
				return
			}
		}
	}
}

// tunnel finds the tunnel that is asked for, or opens it; nil: there is none, and
// only that was asked.
func (k *keeper) tunnel(ctx context.Context, q question) (*tunnel, error) {
	w := *q.Tunnel
	if t := k.found(w); t != nil || w.Find {
		return t, nil
	}
	if len(q.Targets) != 1 {
		return nil, nil
	}
	h, err := k.take(q.Targets[0])
	if err != nil {
		return nil, err
	}
	t, fresh, err := k.open(ctx, h, w)
	if !fresh { // whoever opened it uses the connection, even if it is this one
		k.release(h)
	}
	return t, err
}

// found is the tunnel that is wished for, where it is held.
func (k *keeper) found(w remote.TunnelWish) *tunnel {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.tunnels[tunnelKey{w.Cluster, w.Name, w.Reverse}]
	if t == nil || t.is.Life != w.Life || !w.Find && !t.serves(w) {
		return nil
	}
	return t
}

// serves reports whether a tunnel is what is wished for: a service that was started
// again has another port and another token.
func (t *tunnel) serves(w remote.TunnelWish) bool {
	if w.Fixed && w.Port != t.is.Port || w.Far != t.wish.Far || (w.HTTP == nil) != (t.wish.HTTP == nil) {
		return false
	}
	return w.HTTP == nil || *w.HTTP == *t.wish.HTTP
}

// open opens a tunnel; not fresh: somebody else just did. One of the same name that
// leads elsewhere ends.
func (k *keeper) open(ctx context.Context, h *held, w remote.TunnelWish) (t *tunnel, fresh bool, err error) {
	lent, err := h.node.Lend(ctx)
	if err != nil {
		return nil, false, err
	}
	id := tunnelKey{w.Cluster, w.Name, w.Reverse}
	done, err := k.opens(ctx, id)
	if err != nil {
		return nil, false, err
	}
	defer done()
	if t := k.found(w); t != nil {
		return t, false, nil
	}
	if err := context.Cause(ctx); err != nil { // who asked has given up, and would not know of it
		return nil, false, err
	}
	k.endTunnels("it leads elsewhere now", func(t *tunnel) bool { return t.key() == id })
	r, err := listen(h.node, w)
	if err != nil {
		return nil, false, err
	}
	t = &tunnel{by: h, t: r, wish: w, watchers: map[chan struct{}]bool{}, ended: make(chan struct{})}
	t.is = remote.TunnelHeld{Cluster: w.Cluster, Life: w.Life, Name: w.Name, Port: r.Port(), Far: w.Far, Host: r.Host(),
		HTTP: w.HTTP != nil, Reverse: w.Reverse, Since: time.Now()}
	t.stands.Connected = true // it was, just now
	r.OnState(t.becomes)
	k.mu.Lock()
	h.lent = lent
	k.tunnels[id] = t
	k.mu.Unlock()
	return t, true, nil
}

// opens waits until nobody else opens a tunnel of the same name: who comes second finds
// it. Another one's opening is not waited for: a node that does not answer holds up the
// reverse tunnel to it, and nothing else.
func (k *keeper) opens(ctx context.Context, id tunnelKey) (done func(), err error) {
	mine := make(chan struct{})
	for {
		k.mu.Lock()
		theirs := k.opening[id]
		if theirs == nil {
			k.opening[id] = mine
		}
		k.mu.Unlock()
		if theirs == nil {
			return func() {
				k.mu.Lock()
				delete(k.opening, id)
				k.mu.Unlock()
				close(mine)
			}, nil
		}
		select {
		case <-theirs:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// listen opens the listening side of a tunnel, which nobody's context ends.
func listen(n *remote.Node, w remote.TunnelWish) (*remote.Tunnel, error) {
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	ctx := context.Background()
	switch {
	case w.Reverse:
		return remote.Reverse(ctx, n, w.Port, at(w.Far))
	case w.HTTP != nil:
		return remote.ForwardHTTP(ctx, n, at(w.Port), at(w.Far), *w.HTTP)
	}
	return remote.Forward(ctx, n, at(w.Port), at(w.Far))
}

func (t *tunnel) key() tunnelKey { return tunnelKey{t.wish.Cluster, t.wish.Name, t.wish.Reverse} }

// becomes takes how the tunnel stands, and tells who watches.
func (t *tunnel) becomes(now remote.TunnelState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stands = now
	switch {
	case now.Connected:
		t.away = time.Time{}
	case t.away.IsZero():
		t.away = time.Now()
	}
	for w := range t.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (t *tunnel) watch() chan struct{} {
	news := make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers[news] = true
	return news
}

func (t *tunnel) unwatch(news chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watchers, news)
}

// held is the tunnel as it stands now.
func (t *tunnel) held() remote.TunnelHeld {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.is
	is.Stands = t.stands
	return is
}

// isLost reports whether its node was away for too long.
func (t *tunnel) isLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.away.IsZero() && time.Since(t.away) > awayMost
}

// endTunnels closes the tunnels that are picked.
func (k *keeper) endTunnels(why string, pick func(*tunnel) bool) (ended int) {
	var gone []*tunnel
	k.mu.Lock()
	for id, t := range k.tunnels {
		if pick(t) {
			delete(k.tunnels, id)
			gone = append(gone, t)
		}
	}
	k.mu.Unlock()
	for _, t := range gone {
		_ = t.t.Close()
		t.why = why
		close(t.ended)
		k.release(t.by)
	}
	return len(gone)
}

// endLike closes the tunnels that are like one.
func (k *keeper) endLike(conn net.Conn, like *remote.TunnelHeld) {
	if like != nil {
		k.endTunnels("closed", func(t *tunnel) bool { return t.is.Like(*like) })
	}
	_ = send(conn, answer{})
}

// ticket gives a ticket for a tunnel.
func (k *keeper) ticket(conn net.Conn, like *remote.TunnelHeld) {
	var a answer
	k.mu.Lock()
	for _, t := range k.tunnels {
		if like != nil && t.is.Like(*like) {
			a.Ticket = t.t.Ticket()
		}
	}
	k.mu.Unlock()
	_ = send(conn, a)
}

// tunnelsLocked are the tunnels, by cluster and name.
func (k *keeper) tunnelsLocked() []remote.TunnelHeld {
	all := []remote.TunnelHeld{}
	for _, t := range k.tunnels {
		all = append(all, t.held())
	}
	slices.SortFunc(all, func(a, b remote.TunnelHeld) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	return all
}
