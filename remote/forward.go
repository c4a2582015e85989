package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dlwb/dlwb/remote/duplex"
	"github.com/dlwb/dlwb/remote/wire"
)

// forwardDialLimit is how long a local connection waits for the remote end,
// which includes a new connection to the node where the old one is gone.
const forwardDialLimit = 15 * time.Second

// DialContext connects to an address as the node's agent sees it.
func (n *Node) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := n.dialThere(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (n *Node) dialThere(ctx context.Context, network, addr string) (farConn, error) {
	if n.visit != nil {
		return n.dialVisited(ctx, network, addr)
	}
	var conn *wire.Conn
	err := untilKept(ctx, func() (err error) {
		conn, err = n.carried(ctx, "connect to "+addr, wire.DialPort, wire.DialRequest{Network: network, Addr: addr})
		return err
	})
	return conn, err
}

// carried is a connection that the agent has at its other end.
func (n *Node) carried(ctx context.Context, what, service string, request any) (*wire.Conn, error) {
	st, _, err := n.begin(ctx, opening{what, service, request, n.bounds.Reply}, &wire.Dialed{})
	if err != nil {
		return nil, err
	}
	return st.Conn(), nil
}

// Tunnel is a forward: a port on this machine's loopback that leads to an
// address as the node sees it, or with Reverse the other way round.
type Tunnel struct {
	node      *Node
	remote    string         // where it leads
	listeners []net.Listener // none for Reverse, which listens anew on each link
	port      int
	door      *door // in front of HTTP; nil: every connection is passed on as it is
	ctx       context.Context
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	standing

	mu        sync.Mutex
	err       error
	strangers map[int]bool // users that were refused, each told of once
}

// Forward opens a tunnel from listen ("127.0.0.1:port" or ":port"; port 0: any
// free one) to remoteAddr, until ctx ends or Close. It listens on loopback
// only, and where the system says whose a connection is, another user's is
// refused. The node is dialed for each connection, so that a tunnel outlives a
// lost link; whether something listens at the far end shows then, in Err.
func Forward(ctx context.Context, n *Node, listen, remoteAddr string) (*Tunnel, error) {
	t, err := newTunnel(ctx, n, listen, remoteAddr)
	if err != nil {
		return nil, err
	}
	for _, l := range t.listeners {
		t.tasks.Go(func() { t.accept(l, t.serve) })
	}
	return t, nil
}

// HTTP says what a tunnel to an HTTP server knows of that server.
type HTTP struct {
	// Token is what the server itself asks for, as Jupyter does; empty:
	// nothing. It is added to every request, and who shows it gets in.
	Token string
	// Name is what the tunnel's host name begins with.
	Name string
}

// ForwardHTTP is Forward for an HTTP server. Whoever opens an address with a
// Ticket may use it; a page of another site, another user of this machine and
// a name that was made to lead here are refused. See door.
func ForwardHTTP(ctx context.Context, n *Node, listen, remoteAddr string, h HTTP) (*Tunnel, error) {
	t, err := newTunnel(ctx, n, listen, remoteAddr)
	if err != nil {
		return nil, err
	}
	t.door = newDoor(h.Name, t.port, h.Token)
	server := &http.Server{
		Handler: t.ours(t.door.before(t.proxy(h))), ConnContext: t.withPeer,
		ReadHeaderTimeout: forwardDialLimit, ErrorLog: silentLog,
	}
	context.AfterFunc(t.ctx, func() { _ = server.Close() })
	for _, l := range t.listeners {
		t.tasks.Go(func() { _ = server.Serve(l) })
	}
	return t, nil
}

func newTunnel(ctx context.Context, n *Node, listen, remoteAddr string) (*Tunnel, error) {
	if _, _, err := net.SplitHostPort(remoteAddr); err != nil {
		return nil, n.wrap(fmt.Sprintf("forward to %q", remoteAddr), err)
	}
	listeners, err := listenLoopback(ctx, listen)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &Tunnel{
		node: n, remote: remoteAddr, listeners: listeners,
		port: portOf(listeners[0]), ctx: ctx, cancel: cancel,
	}
	context.AfterFunc(ctx, t.unlisten)
	t.tasks.Go(t.keep)
	return t, nil
}

// Ticket is a token that lets one browser in, once: put it into the address as
// the value of TicketKey. Empty for a tunnel that is not to an HTTP server.
func (t *Tunnel) Ticket() string {
	if t.door == nil {
		return ""
	}
	return t.door.ticket()
}

// Host is the host and port that a browser names to reach the tunnel: one of its
// own for an HTTP server, else loopback.
func (t *Tunnel) Host() string {
	if t.door == nil {
		return t.plainHost()
	}
	return t.door.host
}

// Port is the port that is listened on: here, or for Reverse on the node.
func (t *Tunnel) Port() int { return t.port }

// Err says why the latest connection did not reach the far end; nil when it
// did.
func (t *Tunnel) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Close ends the tunnel and all connections through it.
func (t *Tunnel) Close() error {
	t.cancel()
	t.unlisten()
	t.tasks.Wait()
	return nil
}

func (t *Tunnel) unlisten() {
	for _, l := range t.listeners {
		_ = l.Close()
	}
}

// accept hands on what connects, until the listener is closed.
func (t *Tunnel) accept(l net.Listener, serve func(*net.TCPConn)) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			t.tasks.Go(func() { serve(conn.(*net.TCPConn)) })
		case t.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		default: // out of file descriptors, for instance: that passes
			t.note(fmt.Errorf("accept on 127.0.0.1:%d: %w", t.port, err))
			select {
			case <-time.After(100 * time.Millisecond):
			case <-t.ctx.Done():
			}
		}
	}
}

// note keeps what became of the latest connection.
func (t *Tunnel) note(err error) {
	t.mu.Lock()
	t.err = err
	t.mu.Unlock()
	t.failed(err)
}

// dialFar connects to where the tunnel leads.
func (t *Tunnel) dialFar(ctx context.Context) (farConn, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardDialLimit)
	defer cancel()
	far, err := t.node.dialThere(ctx, "tcp", t.remote)
	if t.ctx.Err() == nil {
		t.note(err)
	}
	return far, err
}

// serve carries one connection.
func (t *Tunnel) serve(local *net.TCPConn) {
	defer local.Close()
	if t.stranger(local) != nil {
		return
	}
	if far, err := t.dialFar(t.ctx); err == nil {
		duplex.Join(t.ctx, local, far)
	}
}
