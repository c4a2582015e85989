package tunnel

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

// key names an open tunnel: the port of one cluster that is listened on,
// here or, for a reverse one, on the node.
type key struct {
	cluster string
	port    int
	reverse bool
}

// listener is a tunnel that listens: of this process (remote.Tunnel) or of the
// keeper (remote.KeptTunnel).
type listener interface {
	Ticket() string
	Host() string
	Port() int
	State() remote.TunnelState
	OnState(func(remote.TunnelState))
	Close() error
}

// tunnel is a forward that this process has open.
type tunnel struct {
	t      listener
	c      Cluster
	opened event.ForwardOpened
	ended  chan struct{} // closed when it is dropped
}

// openAlready finds a forward that this process holds, with an entry that nobody
// has used yet.
func (t *Tunnels) openAlready(cluster, what string, local int) (event.ForwardOpened, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, held := range t.open {
		if k.cluster == cluster && !k.reverse && held.opened.Name == what && (local == 0 || local == k.port) {
			return held.fresh(), true
		}
	}
	return event.ForwardOpened{}, false
}

// WithEntry gives a forward that this process holds an entry that nobody has
// used yet; others stay as they are.
func (t *Tunnels) WithEntry(cluster string, o event.ForwardOpened) event.ForwardOpened {
	t.mu.Lock()
	held := t.open[key{cluster, o.LocalPort, false}]
	t.mu.Unlock()
	if held == nil || held.opened.URL != o.URL {
		return o
	}
	return held.fresh()
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
func wanted(c Cluster, local, before int, target service) (port int, note string, err error) {
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
	if !c.SharedHost || port != target.Port {
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
func (t *Tunnels) openTunnel(c Cluster, what string, local int, target service) (event.ForwardOpened, error) {
	want, note, err := wanted(c, local, t.keptPort(c.Name, what), target)
	if err != nil {
		return event.ForwardOpened{}, err
	}
	opened := event.ForwardOpened{Kind: event.ForwardTCP, Name: what, RemotePort: target.Port, Node: c.Number, Note: joinNotes(note, target.Note)}
	if target.HTTP {
		opened.Kind = event.ForwardHTTP
	}
	r, err := t.listen(c, what, want, local != 0, target)
	var taken *remote.PortTakenError
	for tries := 0; local == 0 && tries < 5 && errors.As(err, &taken); tries++ {
		r, err = t.listen(c, what, taken.Next, false, target)
	}
	switch {
	case errors.As(err, &taken):
		return opened, &event.Fault{What: "forward " + what, Node: -1,
			Why:  fmt.Sprintf("local port %d is taken: something on this machine listens there", taken.Port),
			Next: fmt.Sprintf("port %d is free: --port %d; without --port a free one is chosen", taken.Next, taken.Next)}
	case err != nil:
		return opened, &event.Fault{What: "forward " + what, Node: -1, Why: err.Error()}
	}
	if r.Port() != want && want != 0 {
		opened.Note = joinNotes(fmt.Sprintf("local port %d is taken; %s is on the next free one, %d", want, what, r.Port()), opened.Note)
	}
	opened.LocalPort, opened.URL = r.Port(), "http://"+r.Host()+target.Path
	_, opened.Kept = r.(*remote.KeptTunnel)
	held := &tunnel{t: r, c: c, opened: opened}
	t.hold(key{c.Name, r.Port(), false}, held)
	return held.fresh(), nil
}

// listen opens the local side of a forward: in the keeper, where it is to outlive
// this process and the keeper reaches the node. The caller's context is only that of
// the opening.
func (t *Tunnels) listen(c Cluster, what string, port int, fixed bool, target service) (listener, error) {
	wish := remote.TunnelWish{Cluster: c.Name, Life: c.Life, Name: what, Port: port, Fixed: fixed, Far: target.Port}
	if target.HTTP {
		wish.HTTP = &remote.HTTP{Token: target.login(), Name: strings.ReplaceAll(strings.TrimSuffix(what, "/http"), ":", "-") + "-" + c.Name}
	}
	if kept, err := t.inKeeper(c, wish); kept != nil || err != nil {
		return kept, err
	}
	here, there := net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), net.JoinHostPort("127.0.0.1", strconv.Itoa(target.Port))
	if wish.HTTP != nil {
		return remote.ForwardHTTP(t.ctx, c.Node, here, there, *wish.HTTP)
	}
	return remote.Forward(t.ctx, c.Node, here, there)
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

// hold keeps a tunnel, and tells how it stands whenever that changes.
func (t *Tunnels) hold(k key, held *tunnel) {
	held.ended = make(chan struct{})
	t.mu.Lock()
	t.open[k] = held
	t.mu.Unlock()
	news := make(chan struct{}, 1)
	gone := make(<-chan struct{})
	kept, isKept := held.t.(*remote.KeptTunnel)
	if isKept {
		gone = kept.Done()
		t.noteKept(held)
	}
	held.t.OnState(func(remote.TunnelState) {
		select {
		case news <- struct{}{}:
		default: // the one that waits will see this state too
		}
	})
	t.owner.Background(func(ctx context.Context) {
		told := remote.TunnelState{Connected: true} // as one that was just opened counts
		for {
			select {
			case <-news:
			case <-held.ended:
				return
			case <-gone:
				t.keptEnded(ctx, k, held, kept)
				return
			case <-ctx.Done():
				return
			}
			if is := held.t.State(); is != told {
				told = is
				_ = t.publish(held.c, event.ForwardChanged{Kind: held.opened.Kind, Name: held.opened.Name, LocalPort: held.opened.LocalPort,
					RemotePort: held.opened.RemotePort, Connected: is.Connected, Why: is.Why})
			}
		}
	})
}

// CloseForward closes the tunnel that listens on a local port.
func (t *Tunnels) CloseForward(cluster string, port int) {
	t.close(key{cluster, port, false}, "closed")
	t.closeKept(cluster, "closed", func(o event.ForwardOpened) bool { return o.Kind != event.ForwardReverse && o.LocalPort == port })
}

func (t *Tunnels) close(k key, why string) {
	if held := t.drop(k); held != nil {
		t.tellClosed(held.c, held.opened, why)
	}
}

func (t *Tunnels) tellClosed(c Cluster, o event.ForwardOpened, why string) {
	_ = t.publish(c, o.Closed(why))
}

// drop closes a tunnel and says nothing of it.
func (t *Tunnels) drop(k key) *tunnel {
	t.mu.Lock()
	held := t.open[k]
	delete(t.open, k)
	t.mu.Unlock()
	if held != nil {
		close(held.ended)
		_ = held.t.Close()
		t.forgetKept(held)
	}
	return held
}

// CloseAll closes the tunnels of a cluster, or with "" all of this process: those
// that the keeper holds are only left.
func (t *Tunnels) CloseAll(cluster, why string) {
	t.mu.Lock()
	var open []key
	for k, held := range t.open {
		if kept, is := held.t.(*remote.KeptTunnel); is && cluster == "" {
			delete(t.open, k)
			close(held.ended)
			kept.Leave()
		} else if cluster == "" || k.cluster == cluster {
			open = append(open, k)
		}
	}
	t.mu.Unlock()
	for _, k := range open {
		t.close(k, why)
	}
	if cluster != "" {
		t.closeKept(cluster, why, func(event.ForwardOpened) bool { return true })
		remote.EndHeld(remote.TunnelHeld{Cluster: cluster})
	}
}
