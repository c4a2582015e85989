// Package sshconn logs in by ssh, and is a connection on which nothing can be
// waited for without a bound. x/crypto's calls know no context and block for ever on a
// link that is dead or a server that does not answer; here each of them ends
// with its context, with its bound, and with the connection. Nobody else may
// make an ssh.Client: a test holds that.
package sshconn

import (
	"context"
	"errors"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/waits"
)

// Conn is one connection, after its login.
type Conn struct {
	name   string // of the other end, as waits and errors name it
	client *ssh.Client
	conn   net.Conn
	heard  *heard
	bounds Bounds
	over   chan struct{} // closed when the connection has ended

	once sync.Once
	why  error // what ended it; valid after over
}

// Handshake makes a connection of conn: versions, keys, the host's key and the
// login. It ends with ctx, which the caller bounds; conn is closed when it
// fails. name is what waits and errors call the other end.
func Handshake(ctx context.Context, name string, conn net.Conn, addr string, config *ssh.ClientConfig, b Bounds) (*Conn, error) {
	listening, is := conn.(*heard)
	if !is {
		listening = &heard{Conn: conn}
	}
	conn = listening.Conn
	// The handshake knows no context: closing the connection ends it.
	stop := context.AfterFunc(ctx, func() { closeSoon(conn) })
	inner, chans, reqs, err := ssh.NewClientConn(listening, addr, config)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		closeSoon(conn)
		return nil, err
	}
	c := &Conn{name: name, client: ssh.NewClient(inner, chans, reqs), conn: conn, heard: listening, bounds: b, over: make(chan struct{})}
	joins()
	go func() { c.Kill(c.client.Wait()) }()
	return c, nil
}

// closeSoon closes a connection without waiting for that: one that leads
// through another connection blocks when that one does.
func closeSoon(conn net.Conn) {
	if _, direct := conn.(*net.TCPConn); direct {
		_ = conn.Close()
		return
	}
	go func() { _ = conn.Close() }()
}

// Kill ends the connection at once, whether or not the other end takes note.
// The first reason is kept.
func (c *Conn) Kill(why error) {
	c.once.Do(func() {
		c.why = why
		closeSoon(c.conn)
		close(c.over)
		leaves()
	})
}

// GiveUp ends a connection on which nothing comes any more.
func (c *Conn) GiveUp(why error) {
	fellSilent(c.conn)
	c.Kill(why)
}

// Close ends the connection at once and waits for nothing.
func (c *Conn) Close() error {
	c.Kill(net.ErrClosed)
	return nil
}

// Wait waits for the end of the connection and says what ended it.
func (c *Conn) Wait() error {
	<-c.over
	return c.why
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.over }

// ServerVersion is what the server calls itself.
func (c *Conn) ServerVersion() string { return string(c.client.ServerVersion()) }

// ask makes one call that may block and waits for it: within the limit, no
// longer than ctx and no longer than the connection. One that takes longer than
// its limit ends the connection. What comes too late is given to undo.
func ask[T any](ctx context.Context, c *Conn, w waits.Wait, call func() (T, error), undo func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	w.On = c.name
	limited, cancel := waits.Within(ctx, w)
	defer cancel()
	answered := make(chan answer)
	go func() {
		value, err := call()
		select {
		case answered <- answer{value, err}:
		case <-limited.Done(): // nobody waits any more
			if err == nil && undo != nil {
				undo(value)
			}
		}
	}()
	var none T
	select {
	case a := <-answered:
		return a.value, a.err
	case <-c.over:
		return none, c.why
	case <-limited.Done():
		err := context.Cause(limited)
		var late *waits.LateError
		if ctx.Err() == nil && errors.As(err, &late) {
			c.GiveUp(err)
		}
		return none, err
	}
}

// tell is ask for a call that has no value.
func (c *Conn) tell(ctx context.Context, w waits.Wait, call func() error) error {
	_, err := ask(ctx, c, w, func() (struct{}, error) { return struct{}{}, call() }, nil)
	return err
}

// Session opens a session.
func (c *Conn) Session(ctx context.Context) (*Session, error) {
	return ask(ctx, c, waits.Wait{What: "to open an ssh session", Limit: c.bounds.Open, Then: "a command is started on it"},
		func() (*Session, error) {
			raw, err := c.client.NewSession()
			if err != nil {
				return nil, err
			}
			return &Session{raw: raw, conn: c}, nil
		}, (*Session).Close)
}

// Dial connects from the other end to an address as that sees it.
func (c *Conn) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return ask(ctx, c, waits.Wait{What: "to connect to " + addr, Limit: c.bounds.Open},
		func() (net.Conn, error) { return c.client.Dial(network, addr) }, closeSoon)
}

// Ping asks for an answer, which any server gives. It does not end the
// connection: how long an answer may take differs.
func (c *Conn) Ping() <-chan struct{} {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _, _ = c.client.SendRequest("keepalive@openssh.com", true, nil)
	}()
	return answered
}
