package tunnel

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

// Tunnels that outlive the process that opened them are held by the keeper. It knows
// no cluster and no store: what it is to hold is on record here, so that whoever comes
// next finds it, and opens again what a keeper that was killed took with it.

// Keep has the keeper hold the tunnels that are opened from now on, where it reaches
// the nodes by itself.
func (t *Tunnels) Keep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep = remote.HasHolder()
}

func (t *Tunnels) keeps() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keep
}

// inKeeper opens a tunnel in the keeper; neither a tunnel nor an error: it is this
// process's.
func (t *Tunnels) inKeeper(c Cluster, wish remote.TunnelWish) (listener, error) {
	if !t.keeps() {
		return nil, nil
	}
	kept, err := c.Node.Hold(t.ctx, wish)
	if kept == nil { // no value of the interface, then
		return nil, err
	}
	return kept, err
}

// reverseName is the name by which the keeper knows a reverse tunnel.
func reverseName(local int) string { return fmt.Sprintf("reverse to %d", local) }

// heldAlready finds a tunnel that the keeper holds. A service that does not answer
// behind it is opened anew.
func (t *Tunnels) heldAlready(ctx context.Context, c Cluster, what string, local int) (event.ForwardOpened, bool) {
	all := t.keptOf(c.Name)
	on := slices.IndexFunc(all, func(k keptForward) bool {
		return k.Life == c.Life && k.Name == what && k.Kind != event.ForwardReverse && (local == 0 || k.LocalPort == local)
	})
	if on < 0 || !stillLeadsTo(ctx, c, all[on]) {
		return event.ForwardOpened{}, false
	}
	held := t.follow(ctx, c, all[on])
	if held == nil {
		return event.ForwardOpened{}, false
	}
	return held.fresh(), true
}

// stillLeadsTo reports whether a tunnel leads to what it was opened for: a service
// may have ended, and another one may run.
func stillLeadsTo(ctx context.Context, c Cluster, k keptForward) bool {
	_, name := profiles.SplitForward(k.Name)
	if _, isService := serviceKinds[name]; !isService {
		return true
	}
	s, running, err := identify(ctx, c, name)
	return err == nil && running && s.Port == k.RemotePort
}

// follow hears of a tunnel that the keeper holds; nil: it holds none such.
func (t *Tunnels) follow(ctx context.Context, c Cluster, k keptForward) *tunnel {
	name := k.Name
	if k.Kind == event.ForwardReverse {
		name = reverseName(k.LocalPort)
	}
	kept, err := c.Node.Hold(ctx, remote.TunnelWish{Cluster: c.Name, Life: c.Life, Name: name, Reverse: k.Kind == event.ForwardReverse, Find: true})
	if kept == nil || err != nil {
		return nil
	}
	held := &tunnel{t: kept, c: c, opened: k.ForwardOpened}
	t.hold(key{c.Name, kept.Port(), k.Kind == event.ForwardReverse}, held)
	return held
}

// Adopt takes over the tunnels that the keeper holds for a cluster, in the
// background: how they stand is told, and those that a keeper which was killed took
// with it are opened again. It does so only where tunnels are to be kept.
func (t *Tunnels) Adopt(cluster string) {
	if !t.keeps() {
		return
	}
	t.owner.Background(func(ctx context.Context) {
		for _, k := range t.keptOf(cluster) {
			c, err := t.owner.Find(cluster, k.Node)
			switch {
			case err != nil:
				return // its nodes are away: what was open stays on record
			case c.Life != k.Life:
				t.forget(cluster, k)
			case t.has(cluster, k) || t.follow(ctx, c, k) != nil:
			default:
				t.again(ctx, c, k)
			}
		}
	})
}

// has reports whether this process hears of a tunnel.
func (t *Tunnels) has(cluster string, k keptForward) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.open[k.key(cluster)]
	return held != nil && held.opened.Kept
}

// again opens a tunnel that was lost with its keeper, on the same port. What can't be
// opened is told as closed.
func (t *Tunnels) again(ctx context.Context, c Cluster, k keptForward) {
	t.forget(c.Name, k)
	var err error
	if k.Kind == event.ForwardReverse {
		_, err = t.Reverse(ctx, c.Name, k.RemotePort, k.LocalPort)
	} else {
		_, err = t.Forward(ctx, c.Name, k.Name)
	}
	if err != nil && ctx.Err() == nil {
		t.tellClosed(c, k.ForwardOpened, "dlwb's keeper, which held it, has ended, and it can't be opened again: "+event.FaultOf(err).Why)
	}
}

// keptEnded is told of the end of a tunnel that the keeper held.
func (t *Tunnels) keptEnded(ctx context.Context, k key, held *tunnel, kept *remote.KeptTunnel) {
	t.mu.Lock()
	mine := t.open[k] == held
	if mine {
		delete(t.open, k)
	}
	t.mu.Unlock()
	if !mine {
		return
	}
	on := keptForward{held.c.Life, held.opened}
	switch why := kept.Why(); {
	case why != "":
		t.forgetKept(held)
		t.tellClosed(held.c, held.opened, why)
	case t.keeps():
		t.again(ctx, held.c, on)
	default: // who has it kept opens it again
		t.tellClosed(held.c, held.opened, "dlwb's keeper, which held it, has ended")
	}
}

// closeKept closes tunnels of the keeper that this process does not hear of.
func (t *Tunnels) closeKept(cluster, why string, pick func(event.ForwardOpened) bool) {
	for _, k := range t.keptOf(cluster) {
		if !pick(k.ForwardOpened) {
			continue
		}
		remote.EndHeld(remote.TunnelHeld{Cluster: cluster, Port: k.key(cluster).port, Reverse: k.Kind == event.ForwardReverse})
		t.forget(cluster, k)
		t.tellClosed(Cluster{Name: cluster, Life: k.Life}, k.ForwardOpened, why)
	}
}

// CloseNamed closes tunnels of a cluster that go on when dlwb ends: those that are
// named, by what they lead to or by their port, or with none all. It returns which; a
// name that is none's closes nothing.
func (t *Tunnels) CloseNamed(cluster string, names []string) (closed []event.ForwardOpened, err error) {
	is := func(o event.ForwardOpened, name string) bool {
		return profiles.JoinForward(profiles.SplitForward(name)) == o.Name || name == fmt.Sprint(o.LocalPort)
	}
	open := t.Kept(cluster)
	for _, name := range names {
		if !slices.ContainsFunc(open, func(o event.ForwardOpened) bool { return is(o, name) }) {
			return nil, noneOpen("close "+name, cluster, open)
		}
	}
	if len(open) == 0 {
		return nil, noneOpen("close tunnels to cluster "+cluster, cluster, open)
	}
	t.closeKept(cluster, "closed", func(o event.ForwardOpened) bool {
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return is(o, name) }) {
			return false
		}
		closed = append(closed, o)
		return true
	})
	return closed, nil
}

func noneOpen(what, cluster string, open []event.ForwardOpened) error {
	f := &event.Fault{What: what, Node: -1, Why: "no tunnel to cluster " + cluster + " is open in the background",
		Next: "the ones of a dlwb that runs end with it"}
	if len(open) > 0 {
		var have []string
		for _, o := range open {
			have = append(have, fmt.Sprintf("%s (port %d)", o.Name, o.LocalPort))
		}
		f.Why, f.Next = "no such tunnel is open in the background", "there are "+strings.Join(have, ", ")
	}
	return f
}

// Kept are the tunnels of a cluster that go on when dlwb ends.
func (t *Tunnels) Kept(cluster string) (all []event.ForwardOpened) {
	for _, k := range t.keptOf(cluster) {
		all = append(all, k.ForwardOpened)
	}
	return all
}

// keptForward is a tunnel on record. No ticket is in it.
type keptForward struct {
	Life int64 `json:"life"`
	event.ForwardOpened
}

func (k keptForward) key(cluster string) key {
	if k.Kind == event.ForwardReverse {
		return key{cluster, k.RemotePort, true}
	}
	return key{cluster, k.LocalPort, false}
}

func (t *Tunnels) keptFile(cluster string) string {
	return filepath.Join(t.dir, "forwards", "kept", cluster+".json")
}

// keptOf are the tunnels of a cluster that the keeper is to hold.
func (t *Tunnels) keptOf(cluster string) (kept []keptForward) {
	b, err := os.ReadFile(t.keptFile(cluster))
	if err == nil {
		_ = json.Unmarshal(b, &kept)
	}
	return kept
}

// noteKept puts a tunnel on record, in place of the one that had its port.
func (t *Tunnels) noteKept(held *tunnel) {
	on := keptForward{held.c.Life, held.opened}
	on.Entry = ""
	t.changeKept(held.c.Name, func(all []keptForward) []keptForward {
		return append(without(all, held.c.Name, on), on)
	})
}

func (t *Tunnels) forgetKept(held *tunnel) {
	if held.opened.Kept {
		t.forget(held.c.Name, keptForward{held.c.Life, held.opened})
	}
}

func (t *Tunnels) forget(cluster string, k keptForward) {
	t.changeKept(cluster, func(all []keptForward) []keptForward { return without(all, cluster, k) })
}

func without(all []keptForward, cluster string, k keptForward) []keptForward {
	return slices.DeleteFunc(all, func(o keptForward) bool { return o.key(cluster) == k.key(cluster) })
}

func (t *Tunnels) changeKept(cluster string, change func([]keptForward) []keptForward) {
	t.alone(func() {
		if err := t.writeKept(cluster, change(t.keptOf(cluster))); err != nil {
			slog.Debug("the tunnels that are kept were not noted", "cluster", cluster, "error", err)
		}
	})
}

// writeKept writes the record; none needs no file.
func (t *Tunnels) writeKept(cluster string, kept []keptForward) error {
	path := t.keptFile(cluster)
	if len(kept) == 0 {
		err := os.RemoveAll(path)
		_ = os.Remove(filepath.Dir(path)) // if it is empty
		return err
	}
	b, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return wholefile.Write(path, b, 0o600)
}
