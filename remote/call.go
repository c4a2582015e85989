package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/remote/wire"
)

// starting is an agent that is being started over a link, or was.
type starting struct {
	done    chan struct{}
	session *wire.Session // valid after done
	err     error         // likewise
}

// over reports whether an agent was started and has ended.
func (s *starting) over() bool {
	select {
	case <-s.done:
	default:
		return false
	}
	if s.err != nil {
		return true
	}
	select {
	case <-s.session.Done():
		return true
	default:
		return false
	}
}

// openTries bounds how often an agent is asked for: a node may take every
// connection and drop it at once.
const openTries = 4

// agent gives a session with the node's agent, on a link that is known to be
// alive: what is asked on it was not lost before it began.
func (n *Node) agent(ctx context.Context) (*link, *wire.Session, error) {
	for try := 1; ; try++ {
		l, err := n.live(ctx)
		if err != nil {
			return nil, nil, err
		}
		session, err := n.agentOn(ctx, l)
		if err == nil && n.fresh(ctx, l) {
			return l, session, nil
		}
		if ctx.Err() != nil {
			return nil, nil, n.wrap("reach dlwb's agent", context.Cause(ctx))
		}
		var none *NoAgentError
		if errors.As(err, &none) {
			return nil, nil, err
		}
		if err != nil {
			l.kill(err)
			<-l.dead
			if try == openTries || isLate(err) && (try > 1 || !n.hasServed(l)) {
				return nil, nil, &UnreachableError{n.target.Name, n.target.Addr, l.why}
			}
		} else if try == openTries {
			return nil, nil, &UnreachableError{n.target.Name, n.target.Addr, l.cause(errors.New("it does not answer"))}
		}
	}
}

// isLate reports whether somebody did not answer in time: the next try may be as
// long.
func isLate(err error) bool {
	var late *waits.LateError
	var silent *silentError
	return errors.As(err, &late) || errors.As(err, &silent)
}

// live returns a link that is up, dialing when there is none.
func (n *Node) live(ctx context.Context) (*link, error) {
	if n.visit != nil {
		return nil, n.noAgent()
	}
	for {
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return nil, n.wrap("connect", ErrClosed)
		}
		if len(n.links) > 0 {
			defer n.mu.Unlock()
			return n.links[len(n.links)-1], nil
		}
		n.mu.Unlock()
		if err := n.dialShared(ctx); err != nil {
			return nil, err
		}
	}
}

func (n *Node) hasServed(l *link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return l.served
}

// agentOn gives the session of a link, which everybody shares. The start goes on
// when ctx ends: somebody else may be waiting for it.
func (n *Node) agentOn(ctx context.Context, l *link) (*wire.Session, error) {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, n.wrap("connect", ErrClosed)
	}
	s := l.started
	if s == nil || s.over() {
		s = &starting{done: make(chan struct{})}
		l.started = s
		n.tasks.Go(func() { n.startOn(l, s) })
	}
	n.mu.Unlock()
	select {
	case <-s.done:
		return s.session, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (n *Node) startOn(l *link, s *starting) {
	defer close(s.done)
	if l.loan != nil {
		n.borrowOn(l, s)
		return
	}
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	go func() {
		select {
		case <-l.dead:
			cancel()
		case <-ctx.Done():
		}
	}()
	b := boot{name: n.target.Name, machine: l.machine, limit: n.bounds.Shell}
	if l.client != nil {
		b.upload = func(ctx context.Context, name string, bytes []byte) error {
			return uploadTo(ctx, l.client, name, bytes, n.bounds)
		}
	}
	if s.session, s.err = b.run(ctx); s.err != nil {
		var silent *silentError
		if errors.As(s.err, &silent) { // what hangs there may hold its session for ever
			l.kill(s.err)
		} else if isDone(l.machine) {
			<-l.dead
			s.err = l.why
		}
		return
	}
	n.attend(l, s.session)
}

// attend watches a session that has begun.
func (n *Node) attend(l *link, s *wire.Session) {
	n.mu.Lock()
	l.served = true
	n.mu.Unlock()
	n.tasks.Go(func() { n.probe(l, s) })
	n.tasks.Go(func() { // everything on it ends with the link
		select {
		case <-l.dead:
		case <-s.Done():
		}
		_ = s.Close()
	})
}

// freshFor is how long after its last byte a connection is held to be alive,
// beyond the time between two keepalives.
const freshFor = time.Second

// fresh reports whether a link is alive: it was heard a moment ago, or answers
// now. A command whose loss can't be told from its success is not given to
// another one.
func (n *Node) fresh(ctx context.Context, l *link) bool {
	if l.loan != nil {
		return time.Since(l.born) < freshFor || l.loan.fresh(ctx)
	}
	if l.own {
		return n.ownAnswers(ctx, l)
	}
	if l.client == nil || time.Since(l.client.Heard()).Abs() < n.bounds.Every+freshFor {
		return true
	}
	select {
	case <-l.client.Ping():
		return true
	case <-l.dead:
	case <-ctx.Done():
	}
	return false
}

// Call calls a service of the node's agent, for packages above this one that
// exchange messages of their own with it. An error of the agent's comes with the
// stream's first message. blame makes an error of the stream one that says whose
// it was: a *LostError where the connection was lost, else what the agent says.
// Whoever gets the stream ends it: Close where its end was received, else Reset.
func (n *Node) Call(ctx context.Context, service string, request any) (st *wire.Stream, blame func(error) error, err error) {
	st, l, err := n.callOn(ctx, service, request)
	return st, func(err error) error { return n.callError(service, l, err) }, err
}

// callOn makes a call and says on which link it goes.
func (n *Node) callOn(ctx context.Context, service string, request any) (*wire.Stream, *link, error) {
	for try := 1; ; try++ {
		l, session, err := n.agent(ctx)
		if err != nil {
			return nil, nil, err
		}
		st, err := session.Call(ctx, service, request)
		switch {
		case err == nil:
			return st, l, nil
		case ctx.Err() != nil:
			return nil, nil, n.wrap("call "+service, context.Cause(ctx))
		case try == openTries:
			return nil, nil, &UnreachableError{n.target.Name, n.target.Addr, l.cause(err)}
		}
	}
}

// Ask asks a service of the node's agent one question, which must be one that can
// be asked twice: it is asked again when it was lost with its connection. answer
// may be nil.
func (n *Node) Ask(ctx context.Context, service string, request, answer any) error {
	return n.askFor(ctx, 0, service, request, answer)
}

// askFor is Ask for a question whose answer takes a while.
func (n *Node) askFor(ctx context.Context, while time.Duration, service string, request, answer any) error {
	return untilKept(ctx, func() error {
		st, _, err := n.begin(ctx, opening{"answer " + service, service, request, while + n.bounds.Quiet}, answer)
		if err == nil {
			st.Reset()
		}
		return err
	})
}

// mostTries is how often something is done over connections that break.
const mostTries = 4

// untilKept does something again whose connection was lost.
func untilKept(ctx context.Context, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		var lost *LostError
		var late *waits.LateError
		if errors.As(err, &lost) && !errors.As(err, &late) && try < mostTries-1 && sleepBackoff(ctx, try) {
			continue
		}
		return err
	}
}

// opening is a call that begins with an answer, within a limit. what says in
// errors what the agent is to do.
type opening struct {
	what, service string
	request       any
	limit         time.Duration
}

// begin makes a call and receives its first answer; the call goes on. answer may
// be nil.
func (n *Node) begin(ctx context.Context, o opening, answer any) (*wire.Stream, *link, error) {
	st, l, err := n.callOn(ctx, o.service, o.request)
	if err != nil {
		return nil, nil, err
	}
	limited, cancel := waits.Within(ctx, waits.Wait{On: n.target.Name, What: "to " + o.what, Limit: o.limit})
	defer cancel()
	stop := context.AfterFunc(limited, st.Reset)
	var ignored struct{}
	if answer == nil {
		answer = &ignored
	}
	if err = st.Recv(answer); !stop() {
		err = n.wrap(o.what, context.Cause(limited))
	} else {
		err = n.callError(o.what, l, err)
	}
	if err != nil {
		st.Reset()
		return nil, nil, err
	}
	return st, l, nil
}

// isBroken reports whether an agent broke the protocol: asking it again is no use.
func isBroken(err error) bool { return errors.As(err, new(*wire.ProtocolError)) }

// callError makes the error of a call one that says whether it was the agent's
// or the connection's.
func (n *Node) callError(what string, l *link, err error) error {
	var fault *wire.Fault
	var take *takeError
	var broken *wire.ProtocolError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return n.wrap(what, fault)
	case errors.As(err, &broken):
		return n.wrap(what, broken)
	case errors.As(err, &take):
		return n.wrap(what, take.error)
	case l == nil:
		return &LostError{n.target.Name, what, err}
	}
	return &LostError{n.target.Name, what, l.cause(fmt.Errorf("the agent there has ended (%w)", err))}
}
