package remote

import (
	"fmt"
	"slices"
	"time"

	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/sshconn"
)

// link is one open way to a node, with the agent that was started over it.
type link struct {
	machine transport.Machine
	client  *sshconn.Conn // nil: the way is another one than ssh
	loan    *borrowed     // nil: the connection is this process's own
	own     bool          // the user's own ssh keeps the connection
	born    time.Time
	dead    chan struct{} // closed when the way has ended
	why     error         // why it ended; valid after dead

	started *starting // of the agent; guarded by Node.mu; nil: nobody asked for it
	served  bool      // an agent has begun on it; guarded by Node.mu
}

// kill ends the way: on a dead link nothing else is sure to return.
func (l *link) kill(why error) { l.machine.Kill(why) }

// giveUp ends a way on which nothing comes any more.
func (l *link) giveUp(why error) {
	if l.client != nil {
		l.client.GiveUp(why)
		return
	}
	l.kill(why)
}

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

// addLocked takes a fresh way into use and watches it.
func (n *Node) addLocked(w way) {
	l := &link{machine: w.machine, client: w.client, loan: w.loan, own: w.own, born: time.Now(), dead: make(chan struct{})}
	n.links = append(n.links, l)
	n.wakeLocked()
	n.tasks.Go(func() { n.watch(l) })
	if l.client != nil {
		n.tasks.Go(func() { n.doubt(l) })
		n.tasks.Go(l.client.KeepAlive)
	}
}

// watch waits for the end of a link and takes it out of use.
func (n *Node) watch(l *link) {
	<-l.machine.Done()
	l.why = l.machine.Err()
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
