// Package remote drives one kind of thing: a node, which is a machine with
// dlwb's agent on it. It dials with a checked host key, starts the agent or
// brings it there, and has it run commands, follow files by byte offset and
// forward ports. What moves files stands above it: package transfer. It knows no
// provider and no profile; whatever it needs to dial comes in a Target.
package remote

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/sshconn"
	"github.com/dlwb/dlwb/sshkeys"
)

const (
	backoffLeast = 200 * time.Millisecond
	backoffMost  = 3 * time.Second
	// A login that worked before and is refused is tried again, but more seldom: sites
	// lock out who tries too often.
	refusedLeast = 5 * time.Second
	refusedMost  = 5 * time.Minute
	// stableAfter is how long a link must have lived for the next dial to
	// start without a pause: a node that drops us at once is not hammered.
	stableAfter = 5 * time.Second
)

// Target says where a node is and how to prove who is who. It is plain data,
// as a provider hands it out.
type Target struct {
	Name string // what errors call it: "node0"
	Addr string // host:port
	User string
	// HostKey is the one key that the host may show, in authorized_keys form.
	HostKey string
	// NextHostKey is one that it may show too, while its key is being
	// changed; empty otherwise.
	NextHostKey string
	// KeyFile is the path of the private key to log in with; empty: only
	// Keys are tried.
	KeyFile string
	// Keys are what else to log in with.
	Keys sshkeys.Keys
	// Jumps are the hosts through which Addr is reached, in the order in
	// which they are dialed; none: it is reached directly.
	Jumps []Jump
	// Reach connects to the node where TCP does not lead there; nil: by Jumps
	// and TCP. It is bounded by its context.
	Reach func(ctx context.Context) (net.Conn, error) `json:"-"`
	// Own is the way by the user's own ssh, in place of all of the above but Name; none:
	// dlwb itself dials.
	Own ownssh.Way
	// Called is what the user calls the node; empty: Name.
	Called string
	// Shelf tells what is kept in the home directory there from what another node
	// keeps that has the same one; empty: none has.
	Shelf string
}

// Node is one machine. All that is asked of it goes over one connection and one
// stream of that, which is opened on first use and again after it died. Its
// methods may be called from several goroutines.
type Node struct {
	target  Target
	open    func(ctx context.Context) (way, error)
	lender  *Lender // nil: nobody is asked for a connection
	visit   *Visit  // nil: the agent is there
	bounds  sshconn.Bounds
	segment int64 // the length of logs' segments

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // dials, keepalives and watchers of links

	mu        sync.Mutex
	closed    bool
	links     []*link
	attempt   *attempt      // the dial under way; nil when there is none
	changed   chan struct{} // closed and replaced when a link came or went
	shown     string        // the host key of the last handshake that was accepted
	met       bool          // a login has worked
	refused   error         // what the last dial ended with where that was a refused login; nil: it was not
	refusedAt time.Time     // when one was refused last
	failures  int           // dials and short-lived links since the last good one
	notBefore time.Time     // when the next dial may start

	stateMu   sync.Mutex // held while listeners run, so that they see states in order
	listeners map[int]func(connected bool, why string)
	listened  int    // how many there ever were
	state     string // the last state told: "", "up", or why it is down
}

// Open returns the node of a target. It does no I/O.
func Open(t Target) *Node {
	n := newNode(t)
	n.open, n.lender = n.dial, lender
	return n
}

// OpenOver returns a node that is reached by another way than ssh. It does no
// I/O.
func OpenOver(name string, by transport.Opener) *Node {
	n := newNode(Target{Name: name})
	n.open = func(ctx context.Context) (way, error) {
		m, err := by(ctx)
		if err != nil {
			return way{}, &UnreachableError{name, "its machine", err}
		}
		return way{machine: m}, nil
	}
	return n
}

func newNode(t Target) *Node {
	ctx, cancel := context.WithCancel(context.Background())
	return &Node{
		target:  t,
		bounds:  sshconn.Standard,
		segment: logSegment,
		ctx:     ctx,
		cancel:  cancel,
		changed: make(chan struct{}),
	}
}

// Name is the node's name, as its target gave it.
func (n *Node) Name() string { return n.target.Name }

// Shelf is that of the target.
func (n *Node) Shelf() string { return n.target.Shelf }

// Target is what the node was opened with.
func (n *Node) Target() Target { return n.target }

// Connect makes sure that there is a live connection. Every other method does
// so by itself. The error is a *HostKeyError, an *AuthError, an
// *UnreachableError or the context's.
func (n *Node) Connect(ctx context.Context) error {
	if n.visit != nil && n.ctx.Err() == nil {
		return nil // each of its doors is opened when it is used
	}
	_, err := n.live(ctx)
	return err
}

// ConnectNow is Connect without a pause after earlier failures, for a machine
// that is booting: it can't be there yet, and then it is at once.
func (n *Node) ConnectNow(ctx context.Context) error {
	n.mu.Lock()
	n.failures, n.notBefore = 0, time.Time{}
	n.mu.Unlock()
	return n.Connect(ctx)
}

// OnState calls f whenever the node becomes reachable (why is empty) or stops
// being so, until forget is called. Calls come in order, one at a time; f must
// neither block nor ask the node for anything but Refused.
func (n *Node) OnState(f func(connected bool, why string)) (forget func()) {
	n.stateMu.Lock()
	defer n.stateMu.Unlock()
	if n.listeners == nil {
		n.listeners = map[int]func(bool, string){}
	}
	n.listened++
	id := n.listened
	n.listeners[id] = f
	return func() {
		n.stateMu.Lock()
		defer n.stateMu.Unlock()
		delete(n.listeners, id)
	}
}

// tell reports a state, once.
func (n *Node) tell(connected bool, why string) {
	n.stateMu.Lock()
	defer n.stateMu.Unlock()
	state := "up"
	if !connected {
		state = why
	}
	if n.state == state {
		return
	}
	n.state = state
	for _, f := range n.listeners {
		f(connected, why)
	}
}

// Close ends every connection and everything that runs over them here.
// Commands on the node lose their session, as with any lost connection.
func (n *Node) Close() error {
	n.mu.Lock()
	n.closed = true
	links := append([]*link(nil), n.links...)
	n.wakeLocked()
	n.mu.Unlock()
	n.cancel()
	for _, l := range links {
		l.kill(ErrClosed)
	}
	n.tasks.Wait()
	if n.visit != nil && n.visit.Close != nil {
		return n.visit.Close()
	}
	return nil
}

// wakeLocked lets everybody who waits for a link look again.
func (n *Node) wakeLocked() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// wrap puts what was tried, and on which node, before an error.
func (n *Node) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s on %s: %w", what, n.target.Name, err)
}
