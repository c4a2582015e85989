package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/dlwb/dlwb/remote/duplex"
	"github.com/dlwb/dlwb/remote/wire"
)

// mostBack is how many connections of one port a node may have at a time.
const mostBack = 256

// ReverseRefusedError says that the node does not listen for us.
type ReverseRefusedError struct {
	Node string
	Port int
	Why  string
	Next string
}

func (e *ReverseRefusedError) Error() string {
	return fmt.Sprintf("listen on port %d of %s: %s", e.Port, e.Node, e.Why)
}

// Advice is what to do about it.
func (e *ReverseRefusedError) Advice() string { return e.Next }

// Reverse opens a tunnel the other way round, from a port of the node (0: any
// free one) to localAddr as this machine sees it, until ctx ends or Close. The
// node's agent listens on its 127.0.0.1 only. When the link is lost the node is
// dialed and asked again for the same port; an agent that breaks the protocol is
// not.
func Reverse(ctx context.Context, n *Node, port int, localAddr string) (*Tunnel, error) {
	if _, _, err := net.SplitHostPort(localAddr); err != nil {
		return nil, fmt.Errorf("lead to %q: %w", localAddr, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &Tunnel{node: n, remote: localAddr, port: port, ctx: ctx, cancel: cancel}
	first, err := t.listenThere()
	if err != nil {
		cancel()
		return nil, err
	}
	t.port = first.port
	t.become(func(s *TunnelState) { s.Connected = true })
	t.tasks.Go(func() { t.keepThere(first) })
	return t, nil
}

// distant is a port of the node that its agent listens on for as long as the
// call lasts.
type distant struct {
	*wire.Stream
	link *link
	port int
}

// keepThere serves what comes from the node and listens again whenever the link
// was lost.
func (t *Tunnel) keepThere(d *distant) {
	for d != nil {
		stop := context.AfterFunc(t.ctx, d.Reset)
		err := t.receive(d)
		stop()
		d.Reset()
		if t.ctx.Err() != nil {
			return
		}
		why := d.link.cause(fmt.Errorf("the node does not listen any more: %w", err))
		t.become(func(s *TunnelState) { *s = TunnelState{Why: fmt.Sprintf("the connection was lost: %v", why)} })
		if isBroken(err) {
			return
		}
		d = t.listenAgain()
	}
}

// receive serves what connects to a port. Where too many are connected, the
// agent's next word waits.
func (t *Tunnel) receive(d *distant) error {
	room := make(chan struct{}, mostBack)
	for {
		var c wire.Connected
		if err := d.Recv(&c); err != nil {
			return err
		}
		select {
		case room <- struct{}{}:
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
		t.tasks.Go(func() {
			defer func() { <-room }()
			t.serveHere(c)
		})
	}
}

// listenAgain returns nil when the tunnel was closed or can't go on. A node that has not
// noticed yet that our old connection is gone still holds the port.
func (t *Tunnel) listenAgain() *distant {
	for try := 0; t.ctx.Err() == nil; try++ {
		d, err := t.listenThere()
		if err == nil {
			t.become(func(s *TunnelState) { *s = TunnelState{Connected: true} })
			return d
		}
		t.become(func(s *TunnelState) { *s = TunnelState{Why: err.Error()} })
		if isBroken(err) {
			return nil
		}
		select {
		case <-time.After(min(backoffMost, backoffLeast<<min(try, 10))):
		case <-t.ctx.Done():
		}
	}
	return nil
}

// serveHere carries one connection that came from the node.
func (t *Tunnel) serveHere(c wire.Connected) {
	ctx, cancel := context.WithTimeout(t.ctx, forwardDialLimit)
	defer cancel()
	far, err := t.node.carried(ctx, "take over a connection", wire.FetchPort, c)
	if err != nil {
		t.note(err)
		return
	}
	local, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.remote)
	t.note(err)
	if err != nil {
		_ = far.Close()
		return
	}
	duplex.Join(t.ctx, local.(*net.TCPConn), far)
}

// listenThere asks the node to listen.
func (t *Tunnel) listenThere() (*distant, error) {
	ctx, cancel := context.WithTimeout(t.ctx, forwardDialLimit)
	defer cancel()
	var on wire.Listening
	what := fmt.Sprintf("listen on port %d", t.port)
	st, l, err := t.node.begin(ctx, opening{what, wire.ListenPort, wire.ListenRequest{Port: t.port}, t.node.bounds.Reply}, &on)
	var fault *wire.Fault
	switch {
	case errors.As(err, &fault):
		return nil, &ReverseRefusedError{t.node.Name(), t.port, fault.Text, "try another port"}
	case err != nil:
		return nil, err
	case on.Port != t.port && t.port != 0 || on.Port < 1 || on.Port > 65535:
		st.Reset()
		return nil, t.node.wrap(what, fmt.Errorf("the agent there listens on port %d", on.Port))
	}
	return &distant{st, l, on.Port}, nil
}
