package workbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// The kinds of forwards.
const (
	// ForwardHTTP is an HTTP server, with a door before it: see
	// remote.ForwardHTTP.
	ForwardHTTP = "http"
	// ForwardTCP passes every connection on as it is: see RawReach.
	ForwardTCP = "tcp"
	// ForwardReverse leads from a port of the node to one of this machine.
	ForwardReverse = "reverse"
)

// RawReach says who reaches a raw TCP tunnel: where the system tells whose a
// connection is, no other user of this machine does.
var RawReach = map[bool]string{
	true:  "every program and web page of yours reaches it",
	false: "every program and web page of this machine reaches it",
}[remote.KnowsUsers]

// Forward opens a tunnel from a local port to node 0: to Jupyter or
// TensorBoard, which are started there when they do not run yet, or to a port,
// which is "8265" or, where it is known to be an HTTP server, "8265/http". It
// lives as long as this process, or until CloseForward; what is open already is
// found again, with a fresh address.
func (w *Workbench) Forward(ctx context.Context, cluster, what string) (event.ForwardOpened, error) {
	return w.ForwardAt(ctx, cluster, what, 0)
}

// ForwardAt is Forward with a local port of one's choice; 0 lets it choose: the
// one that it had before, else the usual one, else the next that is free.
func (w *Workbench) ForwardAt(ctx context.Context, cluster, what string, local int) (event.ForwardOpened, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return event.ForwardOpened{}, err
	}
	l, err := w.open(c)
	if err != nil {
		return event.ForwardOpened{}, err
	}
	s := scope{cluster: c.Name, life: c.ID}
	if opened, ok := w.openAlready(c.Name, what, local); ok {
		return opened, w.publish(s, opened)
	}
	target, err := w.target(ctx, c, l, what)
	if err != nil {
		return event.ForwardOpened{}, err
	}
	opened, err := w.openTunnel(s, l, what, local, target)
	if err == nil && target.ID != "" {
		err = w.awaitService(ctx, l.nodes[0], target)
	}
	if err != nil {
		w.dropTunnel(tunnelKey{c.Name, opened.LocalPort, false})
		return event.ForwardOpened{}, err
	}
	w.keepPort(c.Name, what, opened.LocalPort, local != 0)
	return opened, w.publish(s, opened)
}

// target is what a forward leads to: a service, which is started when it does
// not run yet, or a port.
func (w *Workbench) target(ctx context.Context, c store.Cluster, l *link, what string) (service, error) {
	text, isHTTP := strings.CutSuffix(what, "/http")
	port, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return w.startService(ctx, c, l, what)
	case port < 1 || port > 65535:
		return service{}, &event.Fault{What: "forward port " + what, Node: -1, Why: "ports go from 1 to 65535"}
	}
	return service{Path: "/", Port: port, HTTP: isHTTP, Note: silentPort(ctx, l.nodes[0], port)}, nil
}

// ForwardAll opens several forwards at once: those that are named, or with none
// all that the profile lists. It returns those that opened, in order, and the
// errors of the others.
func (w *Workbench) ForwardAll(ctx context.Context, cluster string, what []string) ([]event.ForwardOpened, error) {
	if len(what) == 0 {
		var err error
		if what, err = w.ListedForwards(cluster); err != nil {
			return nil, err
		}
	}
	opened := make([]event.ForwardOpened, len(what))
	errs := make([]error, len(what))
	var opening sync.WaitGroup
	for i, name := range what {
		opening.Go(func() { opened[i], errs[i] = w.Forward(ctx, cluster, name) })
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

// ListedForwards are the forwards that the profile of a cluster lists: of its
// newest run, or before there is one, of the file. None is an error.
func (w *Workbench) ListedForwards(cluster string) ([]string, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return nil, err
	}
	var listed []string
	runs, err := w.runs(c.Name)
	switch {
	case err != nil:
		return nil, err
	case len(runs) > 0 && runs[0].Life == c.ID:
		_, data, err := w.runRecord(runs[0].ID)
		if err != nil {
			return nil, err
		}
		listed = data.Forward
	case c.ProfileSource != "":
		p, err := profiles.Parse(c.ProfilePath, []byte(c.ProfileSource))
		if err != nil {
			return nil, err
		}
		listed = p.Forward
	}
	if len(listed) == 0 {
		return nil, &event.Fault{What: "open the forwards of cluster " + c.Name, Node: -1, Why: "its profile lists none",
			Next: "name one: dlwb forward " + c.Name + " jupyter; or list them in the profile: forward: [jupyter, 8265]"}
	}
	return listed, nil
}

// ReverseForward opens a tunnel from a port of node 0 (0: any free one), which
// listens there on 127.0.0.1 only, to a port of this machine.
func (w *Workbench) ReverseForward(_ context.Context, cluster string, port, local int) (event.ForwardOpened, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return event.ForwardOpened{}, err
	}
	l, err := w.open(c)
	if err != nil {
		return event.ForwardOpened{}, err
	}
	what := fmt.Sprintf("open port %d of the node to this machine", port)
	if traits(c.Provider).SharedHost {
		return event.ForwardOpened{}, &event.Fault{What: what, Node: 0,
			Why: fmt.Sprintf("the nodes of a local cluster are this machine: its port %d is there already", local)}
	}
	t, err := remote.Reverse(w.ctx, l.nodes[0], port, net.JoinHostPort("127.0.0.1", strconv.Itoa(local)))
	if err != nil {
		return event.ForwardOpened{}, &event.Fault{What: what, Node: 0, Why: err.Error(), Next: nextOf(err)}
	}
	opened := event.ForwardOpened{Kind: ForwardReverse, Name: "reverse", LocalPort: local, RemotePort: t.Port(), Node: 0}
	if conn, err := (&net.Dialer{Timeout: time.Second}).Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(local))); err != nil {
		opened.Note = fmt.Sprintf("nothing listens on port %d of this machine yet; the tunnel is there when it does", local)
	} else {
		_ = conn.Close()
	}
	s := scope{cluster: c.Name, life: c.ID}
	w.holdTunnel(tunnelKey{c.Name, t.Port(), true}, &tunnel{t: t, s: s, opened: opened})
	return opened, w.publish(s, opened)
}

// openForwards opens what the profile lists under forward, in the background:
// a tunnel that can't be opened is a warning and no matter of the run's. The
// function that it returns gives up on those that are not open yet, and
// returns when nothing more comes of them.
func (w *Workbench) openForwards(ctx context.Context, s scope, what []string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var opening sync.WaitGroup
	for _, name := range what {
		opening.Go(func() {
			_, err := w.Forward(ctx, s.cluster, name)
			if err == nil || ctx.Err() != nil {
				return
			}
			f := faultOf(err)
			_ = w.publish(s, event.Noticed{Level: "warning", Text: "forward " + name + ": " + f.Why, Next: f.Next})
		})
	}
	return func() {
		cancel()
		opening.Wait()
	}
}

// ShellCommand is a command that gives the terminal to a shell on a node.
func (w *Workbench) ShellCommand(cluster string, node int) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		exe = "dlwb"
	}
	return exec.Command(exe, "ssh", cluster, strconv.Itoa(node))
}
