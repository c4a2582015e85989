package tunnel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

// RawReach says who reaches a raw TCP tunnel: where the system tells whose a
// connection is, no other user of this machine does.
var RawReach = map[bool]string{
	true:  "every program and web page of yours reaches it",
	false: "every program and web page of this machine reaches it",
}[remote.KnowsUsers]

// Forward opens a tunnel from a local port to a node: to Jupyter or
// TensorBoard, which are started there when they do not run yet, or to a port,
// which is "8265" or, where it is known to be an HTTP server, "8265/http". The
// node is node 0, or another one by "node1:" before that. It lives as long as this
// process, or with Keep as the keeper, or until CloseForward; what is open already is
// found again, with a fresh address.
func (t *Tunnels) Forward(ctx context.Context, cluster, what string) (event.ForwardOpened, error) {
	return t.ForwardAt(ctx, cluster, what, 0)
}

// ForwardAt is Forward with a local port of one's choice; 0 lets it choose: the
// one that it had before, else the usual one, else the next that is free.
func (t *Tunnels) ForwardAt(ctx context.Context, cluster, what string, local int) (event.ForwardOpened, error) {
	node, name := profiles.SplitForward(what)
	what = profiles.JoinForward(node, name) // node0:8265 is 8265
	c, err := t.owner.Find(cluster, node)
	if err != nil {
		return event.ForwardOpened{}, err
	}
	opened, ok := t.openAlready(c.Name, what, local)
	if !ok {
		opened, ok = t.heldAlready(ctx, c, what, local)
	}
	if ok {
		return opened, t.publish(c, opened)
	}
	var found bool
	opened, found, err = t.reach(ctx, c, what, local)
	if ended := (serviceEnded{}); found && errors.As(err, &ended) { // it was about to end when it was found
		opened, _, err = t.reach(ctx, c, what, local)
	}
	if err != nil {
		return event.ForwardOpened{}, err
	}
	t.keepPort(c.Name, what, opened.LocalPort, local != 0)
	return opened, t.publish(c, opened)
}

// reach opens a tunnel to what answers behind it; found: that ran already.
func (t *Tunnels) reach(ctx context.Context, c Cluster, what string, local int) (opened event.ForwardOpened, found bool, err error) {
	target, err := t.target(ctx, c, what)
	if err != nil {
		return opened, false, err
	}
	opened, err = t.openTunnel(c, what, local, target)
	if err == nil && target.ID != "" {
		err = awaitService(ctx, c, target)
	}
	if err != nil {
		t.drop(key{c.Name, opened.LocalPort, false})
	}
	return opened, target.Found, err
}

// Check tells what is wrong with the name of a forward: one of a service, or a port.
func Check(what string) error {
	node, name := profiles.SplitForward(what)
	text, _ := strings.CutSuffix(name, "/http")
	switch port, err := strconv.Atoi(text); {
	case err == nil && (port < 1 || port > 65535):
		return &event.Fault{What: "forward port " + what, Node: -1, Why: "ports go from 1 to 65535"}
	case err == nil || serviceKinds[name].prefer != 0:
		return nil
	}
	next := "dlwb forward --help; 8265/http is a port with an HTTP server"
	if near := nearword.Nearest(name, slices.Sorted(maps.Keys(serviceKinds))); near != "" {
		next = "did you mean " + profiles.JoinForward(node, near) + "? " + next
	}
	return &event.Fault{What: "forward " + what, Node: -1, Why: "it is none of jupyter, tensorboard and a port number, nor one of these behind node1: or the like", Next: next}
}

// target is what a forward leads to: a service, which is started when it does
// not run yet, or a port.
func (t *Tunnels) target(ctx context.Context, c Cluster, what string) (service, error) {
	if err := Check(what); err != nil {
		return service{}, err
	}
	_, name := profiles.SplitForward(what)
	text, isHTTP := strings.CutSuffix(name, "/http")
	port, err := strconv.Atoi(text)
	visit := c.Node.Visit()
	switch {
	case err != nil && visit != nil:
		return startedThere(c, name, visit.Note), nil
	case err != nil:
		return startService(ctx, c, name)
	case visit != nil:
		return service{Path: "/", Port: port, HTTP: isHTTP, Note: visit.Note}, nil
	}
	return service{Path: "/", Port: port, HTTP: isHTTP, Note: silentPort(ctx, c.Node, port)}, nil
}

// ForwardAll opens several forwards at once: those that are named, or with none
// all that the profile lists. It returns those that opened, in order, and the
// errors of the others.
func (t *Tunnels) ForwardAll(ctx context.Context, cluster string, what []string) ([]event.ForwardOpened, error) {
	if len(what) == 0 {
		var err error
		if what, err = t.owner.Listed(cluster); err != nil {
			return nil, err
		}
	}
	opened := make([]event.ForwardOpened, len(what))
	errs := make([]error, len(what))
	var opening sync.WaitGroup
	for i, name := range what {
		opening.Go(func() { opened[i], errs[i] = t.Forward(ctx, cluster, name) })
	}
	opening.Wait()
	var good []event.ForwardOpened
	for i, o := range opened {
		if errs[i] == nil {
			good = append(good, o)
		}
	}
	return good, errors.Join(errs...)
}

// Reverse opens a tunnel from a port of node 0 (0: any free one), which
// listens there on 127.0.0.1 only, to a port of this machine.
func (t *Tunnels) Reverse(_ context.Context, cluster string, port, local int) (event.ForwardOpened, error) {
	c, err := t.owner.Find(cluster, 0)
	if err != nil {
		return event.ForwardOpened{}, err
	}
	what := fmt.Sprintf("open port %d of the node to this machine", port)
	if c.SharedHost {
		return event.ForwardOpened{}, &event.Fault{What: what, Node: 0,
			Why: fmt.Sprintf("the nodes of a local cluster are this machine: its port %d is there already", local)}
	}
	r, err := t.listenThere(c, port, local)
	if err != nil {
		return event.ForwardOpened{}, &event.Fault{What: what, Node: 0, Why: err.Error(), Next: event.NextOf(err)}
	}
	opened := event.ForwardOpened{Kind: event.ForwardReverse, Name: "reverse", LocalPort: local, RemotePort: r.Port(), Node: 0}
	if conn, err := (&net.Dialer{Timeout: time.Second}).Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(local))); err != nil {
		opened.Note = fmt.Sprintf("nothing listens on port %d of this machine yet; the tunnel is there when it does", local)
	} else {
		_ = conn.Close()
	}
	_, opened.Kept = r.(*remote.KeptTunnel)
	t.hold(key{c.Name, r.Port(), true}, &tunnel{t: r, c: c, opened: opened})
	return opened, t.publish(c, opened)
}

// listenThere opens the far side of a reverse tunnel, as listen does the near one's.
func (t *Tunnels) listenThere(c Cluster, port, local int) (listener, error) {
	kept, err := t.inKeeper(c, remote.TunnelWish{Cluster: c.Name, Life: c.Life, Name: reverseName(local), Port: port, Fixed: port != 0, Far: local, Reverse: true})
	if kept != nil || err != nil {
		return kept, err
	}
	return remote.Reverse(t.ctx, c.Node, port, net.JoinHostPort("127.0.0.1", strconv.Itoa(local)))
}

// OpenListed opens what the profile lists under forward, in the background:
// a tunnel that can't be opened is a warning and no matter of the run's. The
// function that it returns gives up on those that are not open yet, and
// returns when nothing more comes of them.
func (t *Tunnels) OpenListed(ctx context.Context, cluster string, life int64, what []string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var opening sync.WaitGroup
	for _, name := range what {
		opening.Go(func() {
			_, err := t.Forward(ctx, cluster, name)
			if err == nil || ctx.Err() != nil {
				return
			}
			f := event.FaultOf(err)
			_ = t.owner.Publish(cluster, life, event.Noticed{Level: "warning", Text: "forward " + name + ": " + f.Why, Next: f.Next})
		})
	}
	return func() {
		cancel()
		opening.Wait()
	}
}

// ListedForwards are those that the profile of a cluster lists; none is an error.
func (t *Tunnels) ListedForwards(cluster string) ([]string, error) { return t.owner.Listed(cluster) }
