package remote

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/remote/wire"
)

// A process that holds connections for others (package keeper) lends them its
// session with a node's agent: their calls are passed on by it. To who borrows it
// is a way like any other, which ends when the connection behind it does.

// Lent is a session with a node's agent that others may use.
type Lent struct {
	node    *Node
	link    *link
	session *wire.Session
}

// Lend gives the session with the node's agent, on a connection that answers now: who
// dials knows that, too. It dials at once: whoever borrows has pauses of its own.
func (n *Node) Lend(ctx context.Context) (*Lent, error) {
	n.mu.Lock()
	n.failures, n.notBefore = 0, time.Time{}
	n.mu.Unlock()
	for try := 1; ; try++ {
		l, s, err := n.agent(ctx)
		if err != nil {
			return nil, err
		}
		if n.answers(ctx, l) {
			return &Lent{n, l, s}, nil
		}
		if ctx.Err() != nil {
			return nil, n.wrap("reach dlwb's agent", context.Cause(ctx))
		}
		if try == openTries {
			return nil, &UnreachableError{n.target.Name, n.target.Addr, errors.New("it takes connections and does not answer")}
		}
		<-l.dead
	}
}

// lentSilent is how long a connection may owe an answer before a new one is tried in
// its place.
const lentSilent = 2 * time.Second

// answers reports whether a link answers; else it has ended, or ctx has.
func (n *Node) answers(ctx context.Context, l *link) bool {
	if l.client == nil {
		return n.ownAnswers(ctx, l)
	}
	asked := time.Now()
	heard := func() bool { return !l.client.Heard().Before(asked) }
	answered, late := l.client.Ping(), time.NewTimer(lentSilent)
	defer late.Stop()
	for {
		select {
		case <-answered: // or it can't be asked any more
			if !heard() {
				l.kill(errors.New("the connection was lost"))
			}
			return heard()
		case <-late.C:
			n.mu.Lock()
			if !n.closed {
				n.tasks.Go(func() { n.replace(l, func() bool { return !heard() }) })
			}
			n.mu.Unlock()
		case <-l.dead:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Done is closed when the node was closed here, or its connection has ended.
func (l *Lent) Done() <-chan struct{} { return l.link.dead }

// To passes the calls that come over a connection on to the agent, until one of both
// ends.
func (l *Lent) To(conn io.ReadWriteCloser) error {
	session, err := wire.AnswerLocal(conn)
	if err != nil {
		return err
	}
	control, err := session.Accept()
	if err != nil {
		_ = session.Close()
		return err
	}
	defer control.Reset()
	ctx, cancel := context.WithCancel(context.Background())
	var under sync.WaitGroup
	defer under.Wait()
	defer cancel()
	defer session.Close()
	under.Go(func() { l.answer(ctx, control) })
	under.Go(func() { session.Relay(l.session) })
	select {
	case <-session.Done():
		return nil
	case <-l.link.dead:
	case <-l.session.Done():
	}
	why := l.link.cause(errors.New("the agent there has ended"))
	_ = control.Send(loanNews{Lost: why.Error()})
	select { // until that was read
	case <-session.Done():
	case <-time.After(time.Second):
	}
	return why
}

// loanNews is what the lender says on the first stream of a loan: that the
// connection is alive, as was asked, or why it has ended.
type loanNews struct {
	Alive bool
	Lost  string
}

// answer says whether the connection is alive whenever that is asked.
func (l *Lent) answer(ctx context.Context, control *wire.Stream) {
	for {
		var question struct{}
		if control.Recv(&question) != nil {
			return
		}
		if l.node.fresh(ctx, l.link) && control.Send(loanNews{Alive: true}) != nil {
			return
		}
	}
}

// Loan is a session with a node's agent that another process of this machine holds.
type Loan struct {
	// Conn carries the calls.
	Conn io.ReadWriteCloser
	// HostKey is what the node showed, in authorized_keys form.
	HostKey string
}

// Lender is another process that holds connections.
type Lender struct {
	// Lend asks for a node's agent. It gives neither a loan nor an error where there
	// is none to be had: then the node is dialed by who asked.
	Lend func(ctx context.Context, t Target) (*Loan, error)
	// Drop has connections ended that are not to be kept.
	Drop func(targets []Target)
	// Hold has a tunnel held, or finds one that is; nil and nil as with Lend.
	Hold func(ctx context.Context, t Target, w TunnelWish) (*KeptTunnel, error)
	// End closes the tunnels that are like one.
	End func(like TunnelHeld)
}

// lender is who is asked by all nodes of this process; nil: nobody.
var lender *Lender

// BorrowFrom has the nodes of this process that are opened from now on use the
// connections of another one, where it has or makes them.
func BorrowFrom(l *Lender) { lender = l }

// Leave ends the connections to machines that another process keeps: they go away,
// or are other ones from now on.
func Leave(targets []Target) {
	if lender != nil && len(targets) > 0 {
		lender.Drop(targets)
	}
}

// borrow gives the way that a lender has to a node; found: there is one.
func (n *Node) borrow(ctx context.Context) (w way, found bool, err error) {
	if n.lender == nil || n.target.Reach != nil {
		return way{}, false, nil
	}
	loan, err := n.lender.Lend(ctx, n.target)
	if loan == nil || err != nil {
		return way{}, false, err
	}
	b := &borrowed{conn: loan.Conn, done: make(chan struct{}), alive: make(chan struct{}, 1)}
	if b.session, err = wire.Dial(loan.Conn); err != nil {
		return way{}, false, nil
	}
	if b.control, err = b.session.OpenControl(ctx); err != nil {
		_ = b.session.Close()
		return way{}, false, nil
	}
	// yamux tells the other side of a stream with the first bytes on it.
	if err = b.control.Send(struct{}{}); err != nil {
		_ = b.session.Close()
		return way{}, false, nil
	}
	go b.listen()
	n.mu.Lock()
	n.shown = loan.HostKey
	n.mu.Unlock()
	return way{machine: b, loan: b}, true, nil
}

// borrowOn gives the session of a loan: who lends has started the agent.
func (n *Node) borrowOn(l *link, s *starting) {
	select {
	case <-l.loan.session.Done():
		s.err = errLenderGone
	default:
		s.session = l.loan.session
		n.attend(l, s.session)
	}
}

// borrowed is a way to a node that another process holds.
type borrowed struct {
	conn    io.ReadWriteCloser
	session *wire.Session
	control *wire.Stream
	alive   chan struct{} // has an answer, when one has come

	once sync.Once
	done chan struct{}
	why  error // valid after done
}

// errLenderGone is the end of a loan of which nothing was told.
var errLenderGone = errors.New("dlwb's keeper, which held the connection, has ended")

// listen takes the lender's news until the loan ends.
func (b *borrowed) listen() {
	for {
		var news loanNews
		switch err := b.control.Recv(&news); {
		case err != nil:
			b.Kill(errLenderGone)
			return
		case news.Lost != "":
			b.Kill(errors.New(news.Lost))
			return
		}
		select {
		case b.alive <- struct{}{}:
		default:
		}
	}
}

// fresh asks the lender whether its connection is alive.
func (b *borrowed) fresh(ctx context.Context) bool {
	select {
	case <-b.alive: // an older answer
	default:
	}
	if b.control.Send(struct{}{}) != nil {
		return false
	}
	select {
	case <-b.alive:
		return true
	case <-b.done:
	case <-ctx.Done():
	}
	return false
}

// Start is for no loan: the agent runs already.
func (b *borrowed) Start(context.Context, string) (transport.Command, error) {
	return nil, errors.New("another process holds this connection: it starts no commands")
}

func (b *borrowed) Kill(why error) {
	b.once.Do(func() {
		b.why = why
		_ = b.conn.Close()
		close(b.done)
	})
}

func (b *borrowed) Done() <-chan struct{} { return b.done }

func (b *borrowed) Err() error {
	<-b.done
	return b.why
}
