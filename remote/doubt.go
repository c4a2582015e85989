package remote

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// After a while without a network, the other end sends its next packet only
// when its timer says so: TCP doubles the pause with each try, so a connection
// that could go on is silent for as long again as it was cut off. And a dial
// that began before is no better off. So a silent connection is doubted before
// it is given up: when a new one is answered while it still says nothing, the
// new one takes its place.

// doubtAfter is how long a link may be silent: keepalives make the other end
// say something now and then.
func (n *Node) doubtAfter() time.Duration { return n.bounds.Every + n.bounds.Answer/5 }

// doubt watches whether a link is heard, and has it replaced when it is not.
func (n *Node) doubt(l *link) {
	tick := time.NewTicker(n.bounds.Every / 5)
	defer tick.Stop()
	for last, since := l.client.Heard(), time.Now(); ; {
		select {
		case <-l.dead:
			return
		case <-tick.C:
		}
		if at := l.client.Heard(); at != last {
			last, since = at, time.Now()
		} else if time.Since(since) > n.doubtAfter() {
			n.replace(l, func() bool { return l.client.Heard() == last })
		}
	}
}

// replace puts a new link in the place of one that is silent, if it can be had
// before that one is heard again.
func (n *Node) replace(l *link, silent func() bool) {
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	go func() {
		select {
		case <-l.dead:
			cancel()
		case <-ctx.Done():
		}
	}()
	w, err := n.open(ctx)
	if err != nil {
		return
	}
	n.mu.Lock()
	replaced := silent() && !n.closed && slices.Contains(n.links, l)
	if replaced {
		n.addLocked(w)
	}
	n.mu.Unlock()
	if !replaced {
		w.machine.Kill(ErrClosed)
		return
	}
	l.giveUp(fmt.Errorf("no answer within %v, while a new connection was answered", n.doubtAfter()))
	<-l.dead
}

// Rest pauses before the given try of something that a lost connection broke off,
// but no longer than until the node can be reached again; it reports false when
// ctx ended.
func (n *Node) Rest(ctx context.Context, try int) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan bool, 1)
	go func() { over <- sleepBackoff(ctx, try) }()
	for was := n.linked(); ; {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if !was && n.linked() {
			return ctx.Err() == nil
		}
		select {
		case ok := <-over:
			return ok
		case <-changed:
		}
	}
}

func (n *Node) linked() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.links) > 0
}

// sleepBackoff pauses before the given try; it reports false when ctx ended.
func sleepBackoff(ctx context.Context, try int) bool {
	pause := min(backoffMost, backoffLeast<<min(try, 10))
	select {
	case <-time.After(pause/2 + rand.N(pause/2+1)):
		return true
	case <-ctx.Done():
		return false
	}
}
