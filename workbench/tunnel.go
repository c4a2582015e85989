package workbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

// tunnelKey names an open tunnel: the port of one cluster that is listened on,
// here or, for a reverse one, on the node.
type tunnelKey struct {
	cluster string
	port    int
	reverse bool
}

// tunnel is a forward that this process holds open.
type tunnel struct {
	t      *remote.Tunnel
	s      scope
	opened event.ForwardOpened
	ended  chan struct{} // closed when it is dropped
}

// openAlready finds a forward that this process holds, with an entry that nobody
// has used yet.
func (w *Workbench) openAlready(cluster, what string, local int) (event.ForwardOpened, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, t := range w.tunnels {
		if k.cluster == cluster && !k.reverse && t.opened.Name == what && (local == 0 || local == k.port) {
			return t.fresh(), true
		}
	}
	return event.ForwardOpened{}, false
}

// WithEntry gives a forward that this process holds an entry that nobody has
// used yet; others stay as they are.
func (w *Workbench) WithEntry(cluster string, o event.ForwardOpened) event.ForwardOpened {
	w.mu.Lock()
	t := w.tunnels[tunnelKey{cluster, o.LocalPort, false}]
	w.mu.Unlock()
	if t == nil || t.opened.URL != o.URL {
		return o
	}
	return t.fresh()
}

// fresh is the forward with a new entry.
func (t *tunnel) fresh() event.ForwardOpened {
	opened := t.opened
	if ticket := t.t.Ticket(); ticket != "" {
		opened.Entry = opened.URL + "?" + remote.TicketKey + "=" + ticket
	}
	return opened
}

// wanted is the local port to try first: the one that was asked for, the one
// that this forward had before, or the one that is usual. The nodes of a local
// cluster are this machine: there a tunnel on the node's own port would lead to
// itself, over and over.
func wanted(l *link, local, before int, target service) (port int, note string, err error) {
	port = target.Prefer
	if port == 0 {
		port = target.Port
	}
	if before != 0 {
		port = before
	}
	if local != 0 {
		port = local
	}
	if !traits(l.cluster.Provider).SharedHost || port != target.Port {
		return port, "", nil
	}
	why := fmt.Sprintf("port %d is the node's own, and the node is this machine", port)
	if local != 0 {
		return 0, "", &event.Fault{What: "forward", Node: -1, Why: why, Next: "give another one, or leave --port out"}
	}
	if port++; port > 65535 {
		port = 0
	}
	return port, why, nil
}

// openTunnel listens on the wanted local port or the next free one after it.
func (w *Workbench) openTunnel(s scope, l *link, what string, local int, target service) (event.ForwardOpened, error) {
	want, note, err := wanted(l, local, w.keptPort(s.cluster, what), target)
	if err != nil {
		return event.ForwardOpened{}, err
	}
	opened := event.ForwardOpened{Kind: ForwardTCP, Name: what, RemotePort: target.Port, Node: 0, Note: joinNotes(note, target.Note)}
	if target.HTTP {
		opened.Kind = ForwardHTTP
	}
	// The tunnel lives as long as this process: the caller's context is only
	// that of the opening.
	t, err := listen(w.ctx, l, what, want, target)
	var taken *remote.PortTakenError
	for tries := 0; local == 0 && tries < 5 && errors.As(err, &taken); tries++ {
		t, err = listen(w.ctx, l, what, taken.Next, target)
	}
	switch {
	case errors.As(err, &taken):
		return opened, &event.Fault{What: "forward " + what, Node: -1,
			Why:  fmt.Sprintf("local port %d is taken: something on this machine listens there", taken.Port),
			Next: fmt.Sprintf("port %d is free: --port %d; without --port a free one is chosen", taken.Next, taken.Next)}
	case err != nil:
		return opened, &event.Fault{What: "forward " + what, Node: -1, Why: err.Error()}
	}
	if t.Port() != want && want != 0 {
		opened.Note = joinNotes(fmt.Sprintf("local port %d is taken; %s is on the next free one, %d", want, what, t.Port()), opened.Note)
	}
	opened.LocalPort, opened.URL = t.Port(), "http://"+t.Host()+target.Path
	held := &tunnel{t: t, s: s, opened: opened}
	w.holdTunnel(tunnelKey{s.cluster, t.Port(), false}, held)
	return held.fresh(), nil
}

// listen opens the local side of a forward.
func listen(ctx context.Context, l *link, what string, port int, target service) (*remote.Tunnel, error) {
	n := l.nodes[0]
	here, there := net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), net.JoinHostPort("127.0.0.1", strconv.Itoa(target.Port))
	if target.HTTP {
		return remote.ForwardHTTP(ctx, n, here, there, remote.HTTP{Token: target.login(), Name: strings.TrimSuffix(what, "/http") + "-" + l.cluster.Name})
	}
	return remote.Forward(ctx, n, here, there)
}

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// silentPort says so when nothing listens on a port of the node. That is no
// failure: what listens there may be about to start.
func silentPort(ctx context.Context, n *remote.Node, port int) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := n.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Sprintf("nothing answers on port %d of %s yet; the tunnel is there when it does", port, n.Name())
	}
	_ = conn.Close()
	return ""
}

// holdTunnel keeps a tunnel, and tells how it stands whenever that changes.
func (w *Workbench) holdTunnel(k tunnelKey, t *tunnel) {
	t.ended = make(chan struct{})
	w.mu.Lock()
	w.tunnels[k] = t
	w.mu.Unlock()
	news := make(chan struct{}, 1)
	t.t.OnState(func(remote.TunnelState) {
		select {
		case news <- struct{}{}:
		default: // the one that waits will see this state too
		}
	})
	w.background(func(ctx context.Context) {
		told := remote.TunnelState{Connected: true} // as one that was just opened counts
		for {
			select {
			case <-news:
			case <-t.ended:
				return
			case <-ctx.Done():
				return
			}
			if is := t.t.State(); is != told {
				told = is
				_ = w.publish(t.s, event.ForwardChanged{Kind: t.opened.Kind, Name: t.opened.Name, LocalPort: t.opened.LocalPort,
					RemotePort: t.opened.RemotePort, Connected: is.Connected, Why: is.Why})
			}
		}
	})
}

// CloseForward closes the tunnel that listens on a local port.
func (w *Workbench) CloseForward(cluster string, port int) {
	w.closeTunnel(tunnelKey{cluster, port, false}, "closed")
}

func (w *Workbench) closeTunnel(k tunnelKey, why string) {
	if t := w.dropTunnel(k); t != nil {
		_ = w.publish(t.s, event.ForwardClosed{Kind: t.opened.Kind, Name: t.opened.Name, LocalPort: t.opened.LocalPort,
			RemotePort: t.opened.RemotePort, Why: why})
	}
}

// dropTunnel closes a tunnel and says nothing of it.
func (w *Workbench) dropTunnel(k tunnelKey) *tunnel {
	w.mu.Lock()
	t := w.tunnels[k]
	delete(w.tunnels, k)
	w.mu.Unlock()
	if t != nil {
		close(t.ended)
		_ = t.t.Close()
	}
	return t
}

// closeTunnels closes the tunnels of a cluster, or with "" all.
func (w *Workbench) closeTunnels(cluster, why string) {
	w.mu.Lock()
	var open []tunnelKey
	for k := range w.tunnels {
		if cluster == "" || k.cluster == cluster {
			open = append(open, k)
		}
	}
	w.mu.Unlock()
	for _, k := range open {
		w.closeTunnel(k, why)
	}
}
