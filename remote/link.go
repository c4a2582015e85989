package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/sshconn"
)

const (
	// sessionsPerLink stays below sshd's MaxSessions, which is 10 per
	// connection by default.
	sessionsPerLink = 8
	// streamsPerLink leaves slots to short commands: these wait for each
	// other, and must never wait for a stream that lasts as long as a run.
	streamsPerLink = 6
	// linksPerNode bounds the connections of one node.
	linksPerNode = 8
)

// link is one TCP connection with ssh on it.
type link struct {
	client *sshconn.Conn
	conn   net.Conn
	born   time.Time
	dead   chan struct{} // closed when the connection has ended

	served atomic.Bool // it has given a session

	// guarded by Node.mu
	sessions, streams, limit int

	why error // why it ended; valid after dead
}

// kill closes the TCP connection: on a dead link nothing else is sure to
// return.
func (l *link) kill(why error) { l.client.Kill(why) }

// cause says why the link ended, where it has; else it returns err, with which
// something on it ended.
func (l *link) cause(err error) error {
	select {
	case <-l.dead:
		return l.why
	case <-time.After(100 * time.Millisecond):
		return err
	}
}

// addLocked takes a fresh connection into use and watches it.
func (n *Node) addLocked(client *sshconn.Conn, conn net.Conn) {
	l := &link{
		client: client, conn: conn, born: time.Now(),
		dead: make(chan struct{}), limit: sessionsPerLink,
	}
	n.links = append(n.links, l)
	n.wakeLocked()
	n.tasks.Go(func() { n.watch(l) })
	n.tasks.Go(func() { n.doubt(l) })
	n.tasks.Go(func() { keepAlive(l.client, l.conn, n.timing, l.dead, l.kill) })
}

// watch waits for the end of a link and takes it out of use.
func (n *Node) watch(l *link) {
	l.why = l.client.Wait()
	n.mu.Lock()
	n.links = slices.DeleteFunc(n.links, func(x *link) bool { return x == l })
	last := len(n.links) == 0 && !n.closed
	if time.Since(l.born) < stableAfter {
		n.backOffLocked(time.Now())
	} else {
		n.failures = 0
	}
	n.wakeLocked()
	n.mu.Unlock()
	close(l.dead)
	if last {
		n.tellDown(fmt.Sprintf("the connection was lost: %v", l.why))
	}
}

// keepAlive asks the other end for an answer now and then, and at once when this
// machine was asleep or has other addresses, until dead is closed.
func keepAlive(client *sshconn.Conn, conn net.Conn, t timing, dead <-chan struct{}, kill func(error)) {
	woken, enough := wakes.subscribe()
	defer enough()
	for {
		limit := t.keepaliveLimit
		select {
		case <-dead:
			return
		case <-time.After(t.keepaliveEvery):
		case <-woken:
			limit = min(limit, wakeLimit)
			if moved(conn) {
				limit = min(limit, movedLimit)
			}
		}
		answered := client.Ping()
		if !answeredIn(answered, dead, woken, limit) {
			kill(fmt.Errorf("no answer within %v", limit))
		}
		select {
		case <-answered:
		case <-dead:
			return
		}
	}
}

// answeredIn waits for an answer, or for the link's end. Whoever wakes up in
// between waits anew, and not for long: an answer may have come in the sleep.
func answeredIn(answered, dead, woken <-chan struct{}, limit time.Duration) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case <-answered:
			return true
		case <-dead:
			return true
		case <-woken:
			late.Reset(min(limit, wakeLimit))
		case <-late.C:
			return false
		}
	}
}

// live returns a link that is up, dialing when there is none.
func (n *Node) live(ctx context.Context) (*link, error) {
	for {
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return nil, n.wrap("connect", ErrClosed)
		}
		if len(n.links) > 0 {
			defer n.mu.Unlock()
			return n.links[0], nil
		}
		n.mu.Unlock()
		if err := n.dialShared(ctx); err != nil {
			return nil, err
		}
	}
}

// acquire takes a slot on a live link, dialing when there is none. A stream
// that finds all slots taken gets a further link.
func (n *Node) acquire(ctx context.Context, stream bool) (*link, error) {
	for {
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return nil, n.wrap("connect", ErrClosed)
		}
		l := n.pickLocked(stream)
		changed := n.changed
		dial := l == nil && n.needLinkLocked(stream)
		queued := l == nil && !dial
		if queued {
			n.queue++
		}
		w := n.waiting
		n.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case dial:
			if err := n.dialShared(ctx); err != nil {
				return nil, err
			}
		default:
			n.dismiss(w) // what only waits makes room
			select {
			case <-changed:
			case <-ctx.Done():
			}
			n.mu.Lock()
			n.queue--
			n.mu.Unlock()
			if ctx.Err() != nil {
				return nil, n.wrap("wait for a free ssh session", context.Cause(ctx))
			}
		}
	}
}

func (n *Node) pickLocked(stream bool) *link {
	for _, l := range n.links {
		if l.sessions >= l.limit || stream && l.streams >= min(streamsPerLink, l.limit) {
			continue
		}
		l.sessions++
		if stream {
			l.streams++
		}
		return l
	}
	return nil
}

// needLinkLocked reports whether waiting for a slot would be in vain. A short
// command waits for other short commands only; a stream waits for nobody.
func (n *Node) needLinkLocked(stream bool) bool {
	if len(n.links) >= linksPerNode {
		return false
	}
	onlyStreams := func(l *link) bool { return l.streams >= l.limit }
	return stream || !slices.ContainsFunc(n.links, func(l *link) bool { return !onlyStreams(l) })
}

func (n *Node) release(l *link, stream bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.sessions--
	if stream {
		l.streams--
	}
	n.wakeLocked()
}

// session is an ssh session together with the slot that it holds.
type session struct {
	*sshconn.Session
	link *link
	free func() // closes the session and gives the slot back; may be called twice
}

// openTries bounds how often a session is asked for: a node may take every
// connection and drop it at once. refusedTries is for a server that has given
// sessions before: it may not know yet that our last one is over, and then some
// other waiter may be quicker.
const (
	openTries    = 4
	refusedTries = 60
)

// session opens a session. A link that proves dead is left for a fresh one:
// nothing has been asked of the node yet. One that opens none within its bound
// gets a second chance only where it has opened others before.
func (n *Node) session(ctx context.Context, stream bool) (*session, error) {
	for lost, refusals := 0, 0; ; {
		l, err := n.acquire(ctx, stream)
		if err != nil {
			return nil, err
		}
		s, err := n.openSession(ctx, l, stream)
		if err == nil {
			l.served.Store(true)
			return s, nil
		}
		var refused *ssh.OpenChannelError
		switch {
		case ctx.Err() != nil:
			return nil, n.wrap("open an ssh session", context.Cause(ctx))
		case errors.As(err, &refused):
			if n.makeRoom(l) || n.lowerLimit(l) {
				continue
			}
			refusals++
			if refusals >= openTries && !l.served.Load() || refusals >= refusedTries || !sleepBriefly(ctx, refusals) {
				return nil, n.wrap("open an ssh session", err)
			}
		default:
			l.kill(err)
			<-l.dead
			var late *waits.LateError
			hopeless := errors.As(err, &late) && (lost > 0 || !l.served.Load())
			if lost++; lost == openTries || hopeless {
				return nil, &UnreachableError{n.target.Name, n.target.Addr, l.why}
			}
		}
	}
}

// sleepBriefly pauses for a server to take note of what has ended: up to half a
// second. It reports false when ctx ended.
func sleepBriefly(ctx context.Context, try int) bool {
	pause := min(500*time.Millisecond, 20*time.Millisecond<<min(try, 5))
	select {
	case <-time.After(pause/2 + rand.N(pause)):
		return true
	case <-ctx.Done():
		return false
	}
}

// lowerLimit learns that this server allows fewer sessions than most. It
// reports false when it allowed none at all.
func (n *Node) lowerLimit(l *link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.limit = max(1, l.sessions)
	return l.sessions > 0
}

// openSession waits for a session no longer than ctx; one that comes later is
// closed.
func (n *Node) openSession(ctx context.Context, l *link, stream bool) (*session, error) {
	raw, err := l.client.Session(ctx)
	if err != nil {
		n.release(l, stream)
		return nil, err
	}
	s := &session{Session: raw, link: l}
	s.free = sync.OnceFunc(func() {
		raw.Close()
		n.release(l, stream)
	})
	return s, nil
}
