package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/remote/transport"
)

// byOwn reaches the node by the user's own ssh.
func (n *Node) byOwn(ctx context.Context) (way, error) {
	m, err := transport.SSH(n.target.Own)(ctx)
	if err != nil {
		return way{}, &UnreachableError{n.target.Name, n.target.Own.Name, err}
	}
	return way{machine: m, own: true}, nil
}

// ownAnswers reports whether the agent on a link by the user's own ssh answers: of the
// connection that ssh keeps nothing is known. One that does not costs the link.
func (n *Node) ownAnswers(ctx context.Context, l *link) bool {
	n.mu.Lock()
	s := l.started
	n.mu.Unlock()
	if !l.own || s == nil {
		return true
	}
	select {
	case <-s.done:
	default:
		return true // it is just being started
	}
	if s.err != nil || s.session.Silent() < n.bounds.Every+freshFor {
		return true
	}
	late := time.NewTimer(n.bounds.Answer)
	defer late.Stop()
	select {
	case <-s.session.Ping():
		return true
	case <-late.C:
		l.kill(fmt.Errorf("no answer within %v over the connection that your own ssh keeps", n.bounds.Answer))
	case <-s.session.Done():
	case <-l.dead:
	case <-ctx.Done():
	}
	return false
}

// refused is when a login was refused, as an error says; zero: it says something else.
func refused(err error) time.Time {
	var own *ownssh.Error
	switch {
	case errors.As(err, new(*AuthError)):
		return time.Now()
	case errors.As(err, &own):
		return own.Refused
	}
	return time.Time{}
}

// Refused reports whether the last try to reach the node failed because the login was
// refused: that nothing is heard of the node says nothing of it then. Last is when a
// login was refused last; zero: never.
func (n *Node) Refused() (now bool, last time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused != nil, n.refusedAt
}
