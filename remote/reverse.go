package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// unlistenLimit is how long Close waits for the node to stop listening.
const unlistenLimit = 2 * time.Second

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
// node listens on its 127.0.0.1 only; where its sshd would listen on more, that
// is refused. When the link is lost the node is dialed and asked again for the
// same port.
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

// distant is a port of the node that is listened on over one link.
type distant struct {
	net.Listener
	link *link
	port int
}

// end gives the port back. On a dead link nobody is there to be told.
func (d *distant) end() {
	told := make(chan struct{})
	go func() {
		defer close(told)
		_ = d.Close()
	}()
	select {
	case <-told:
	case <-d.link.dead:
	case <-time.After(unlistenLimit):
	}
}

// keepThere serves what comes from the node and listens again whenever the link
// was lost.
func (t *Tunnel) keepThere(d *distant) {
	for d != nil {
		stop := context.AfterFunc(t.ctx, d.end)
		for {
			conn, err := d.Accept()
			if err != nil {
				break
			}
			t.tasks.Go(func() { t.serveHere(conn) })
		}
		if !stop() {
			return // Close has ended it
		}
		why := d.link.cause(errors.New("the node does not listen any more"))
		t.become(func(s *TunnelState) { *s = TunnelState{Why: fmt.Sprintf("the connection was lost: %v", why)} })
		d = t.listenAgain()
	}
}

// listenAgain returns nil when the tunnel was closed. A node that has not
// noticed yet that our old connection is gone still holds the port.
func (t *Tunnel) listenAgain() *distant {
	for try := 0; t.ctx.Err() == nil; try++ {
		d, err := t.listenThere()
		if err == nil {
			t.become(func(s *TunnelState) { *s = TunnelState{Connected: true} })
			return d
		}
		t.become(func(s *TunnelState) { *s = TunnelState{Why: err.Error()} })
		select {
		case <-time.After(min(backoffMost, backoffLeast<<min(try, 10))):
		case <-t.ctx.Done():
		}
	}
	return nil
}

// serveHere carries one connection that came from the node.
func (t *Tunnel) serveHere(far net.Conn) {
	ctx, cancel := context.WithTimeout(t.ctx, forwardDialLimit)
	local, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.remote)
	cancel()
	t.note(err)
	if err != nil {
		go func() { _ = far.Close() }()
		return
	}
	t.join(local, far)
}

// listenThere asks the node to listen, and looks whether it does so on
// loopback only. The link is left when the node does not answer.
func (t *Tunnel) listenThere() (*distant, error) {
	ctx, cancel := context.WithTimeout(t.ctx, forwardDialLimit)
	defer cancel()
	l, err := t.node.live(ctx)
	if err != nil {
		return nil, err
	}
	ln, err := l.client.Listen(ctx, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: t.port})
	if err != nil && ctx.Err() != nil {
		return nil, t.node.wrap(fmt.Sprintf("listen on port %d", t.port), context.Cause(ctx))
	}
	if err != nil {
		return nil, t.refusedThere(l, err)
	}
	d := &distant{ln, l, ln.Addr().(*net.TCPAddr).Port}
	if err := t.onlyLoopback(ctx, d.port); err != nil {
		d.end()
		return nil, err
	}
	return d, nil
}

func (t *Tunnel) refusedThere(l *link, err error) error {
	select {
	case <-l.dead:
		return t.node.wrap(fmt.Sprintf("listen on port %d", t.port), l.why)
	default:
	}
	if !strings.Contains(err.Error(), "denied by peer") {
		return t.node.wrap(fmt.Sprintf("listen on port %d", t.port), err)
	}
	return &ReverseRefusedError{t.node.Name(), t.port, "its ssh server refuses: the port is in use there, or it allows no reverse forwards",
		"try another port; if none works, AllowTcpForwarding in its sshd_config must be yes or remote"}
}

// onlyLoopback looks whether the port can be reached from elsewhere: sshd with
// GatewayPorts yes listens on all addresses, whatever it was asked for. Where
// the node has no /proc nothing is known against it.
func (t *Tunnel) onlyLoopback(ctx context.Context, port int) error {
	r, err := t.node.Exec(ctx, Cmd{Line: "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null"})
	if err != nil {
		return err
	}
	if addr := listensBeyond(string(r.Stdout), port); addr != "" {
		return &ReverseRefusedError{t.node.Name(), port, "its ssh server would let others reach it (it listens on " + addr + ")",
			"set GatewayPorts no, or clientspecified, in its sshd_config"}
	}
	return nil
}

// listensBeyond finds a listener on a port that is not on loopback in the
// tables of Linux (/proc/net/tcp and tcp6), and gives its address as it stands
// there, in hexadecimal.
func listensBeyond(tables string, port int) string {
	const listening = "0A"
	for line := range strings.Lines(tables) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != listening {
			continue
		}
		addr, hexPort, ok := strings.Cut(f[1], ":")
		n, err := strconv.ParseUint(hexPort, 16, 16)
		if !ok || err != nil || int(n) != port || strings.HasSuffix(addr, "7F") && (len(addr) == 8 || strings.Contains(addr, "FFFF0000")) ||
			addr == "00000000000000000000000001000000" {
			continue
		}
		return addr
	}
	return ""
}
