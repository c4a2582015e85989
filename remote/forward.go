package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// forwardDialLimit is how long a local connection waits for the remote end,
// which includes a new connection to the node where the old one is gone.
const forwardDialLimit = 15 * time.Second

// DialContext connects from the node to an address as the node sees it, over
// the ssh connection. The result knows no deadlines.
func (n *Node) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	what := fmt.Sprintf("connect to %s", addr)
	for try := 1; ; try++ {
		l, err := n.live(ctx)
		if err != nil {
			return nil, err
		}
		conn, err := l.client.Dial(ctx, network, addr)
		if err == nil {
			return conn, nil
		}
		var refused *ssh.OpenChannelError
		if ctx.Err() != nil || errors.As(err, &refused) {
			return nil, n.wrap(what, err)
		}
		// Whatever else it was: only the loss of the link is worth a retry.
		if why := l.cause(nil); why == nil || try == openTries {
			return nil, n.wrap(what, err)
		}
	}
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
func (t *Tunnel) accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			t.tasks.Go(func() { serve(conn) })
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

// dialFar connects to where the tunnel leads, and sees to it that the
// connection ends with the tunnel.
func (t *Tunnel) dialFar(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardDialLimit)
	defer cancel()
	far, err := t.node.DialContext(ctx, "tcp", t.remote)
	if t.ctx.Err() == nil {
		t.note(err)
	}
	return far, err
}

// serve carries one connection.
func (t *Tunnel) serve(local net.Conn) {
	if t.stranger(local) != nil {
		_ = local.Close()
		return
	}
	far, err := t.dialFar(t.ctx)
	if err != nil {
		_ = local.Close()
		return
	}
	t.join(local, far)
}

// join carries both directions of a connection until both have ended.
func (t *Tunnel) join(local, far net.Conn) {
	defer func() { _ = local.Close() }()
	// Close of a channel may block on a dead link: nobody waits for it.
	defer func() { go func() { _ = far.Close() }() }()
	stop := context.AfterFunc(t.ctx, func() {
		_ = local.Close()
		_ = far.Close()
	})
	defer stop()
	both := make(chan struct{}, 2)
	go halfCopy(far, local, both)
	go halfCopy(local, far, both)
	for range 2 {
		select {
		case <-both:
		case <-t.ctx.Done():
			return
		}
	}
}

// halfCopy carries one direction and passes its end on: the other direction
// may go on, as when a request has been sent and the answer is awaited. After
// an error nothing more can come of either.
func halfCopy(to, from net.Conn, done chan<- struct{}) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err == nil && ok {
		_ = half.CloseWrite()
	} else {
		_ = to.Close()
		_ = from.Close()
	}
	done <- struct{}{}
}
