package workbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

const (
	// bootLimit is how long a machine that somebody pays for may take from
	// "running" to its first ssh answer. Images with GPU drivers take one to
	// two minutes.
	bootLimit = 10 * time.Minute
	// firstKeyLimit is how long a machine that boots may show another host
	// key than it will have: sshd may be up before the key is in its place.
	// Nothing is sent to it until it shows the right one. DLWB_FIRST_KEY makes
	// it shorter, for emulators.
	firstKeyLimit = 90 * time.Second
	// contactEvery is how often a machine that boots is dialed. The dialer's
	// own backoff is for machines that were there before.
	contactEvery = 300 * time.Millisecond
	// aliveEvery is how often the provider is asked meanwhile whether the
	// machines still run.
	aliveEvery = 10 * time.Second
)

// firstContact reaches machines that have just been started, all at once, and
// lets each of them make a host key of its own where the present one came by a
// way that others may read. It returns when every one is ready for work.
func (d *drive) firstContact(ctx context.Context) error {
	nodes := d.data.Cluster.Nodes
	ctx, cancel := context.WithTimeoutCause(ctx, bootLimit, fmt.Errorf("no answer within %s of the start", units.Duration(bootLimit)))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cluster := d.data.Cluster
	cluster.Nodes = slices.Clone(nodes) // host keys are written down meanwhile
	go d.watchAlive(ctx, stop, cluster)
	began := time.Now()
	err := d.link.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		if err := awaitSSH(ctx, n, func() {
			d.say(event.StepCluster, i, "it does not show the host key that it was given; nothing is sent to it before it does")
		}); err != nil {
			return &event.Fault{What: "connect", Node: i, Why: err.Error(),
				Next: "dlwb down " + d.plan.Cluster + " removes the machines; the system log is in the provider's console"}
		}
		if nodes[i].RotateHostKey {
			d.say(event.StepCluster, i, fmt.Sprintf("ssh answers after %s, with the key it was given", units.Duration(time.Since(began))))
			return d.awaitBoot(ctx, i, n)
		}
		return nil
	})
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		var f *event.Fault
		if errors.As(cause, &f) {
			return f
		}
	}
	if err != nil {
		return err
	}
	return d.changeHostKeys(ctx)
}

// watchAlive ends the wait for machines of which one is gone.
func (d *drive) watchAlive(ctx context.Context, stop context.CancelCauseFunc, cluster cloud.Cluster) {
	provider, err := d.w.provider(cluster.Provider)
	if err != nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(aliveEvery):
		}
		statuses, err := provider.Probe(ctx, cluster)
		for i, s := range statuses {
			if err == nil && s.State == cloud.Gone {
				stop(&event.Fault{What: "bring up the cluster", Node: i, Why: "the machine ended while it was booting: " + s.Why,
					Next: "dlwb down " + d.plan.Cluster + ", then again"})
				return
			}
		}
	}
}

// firstKeyWait is firstKeyLimit, or less.
func firstKeyWait() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("DLWB_FIRST_KEY")); err == nil && d > 0 {
		return min(d, firstKeyLimit)
	}
	return firstKeyLimit
}

// awaitSSH waits until a node answers with the right key and lets us in. That
// it shows another key is told once.
func awaitSSH(ctx context.Context, n *remote.Node, other func()) error {
	var since time.Time
	for {
		err := n.ConnectNow(ctx)
		var key *remote.HostKeyError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.As(err, &key):
		case since.IsZero():
			since = time.Now()
			other()
		case time.Since(since) > firstKeyWait():
			return err
		}
		select {
		case <-time.After(contactEvery):
		case <-ctx.Done():
		}
	}
}

// bootScript waits for what the image itself still does after ssh answers, so
// that it does not hold a lock that the environment step needs.
const bootScript = `command -v cloud-init >/dev/null 2>&1 || exit 0
timeout 300 cloud-init status --wait >/dev/null 2>&1
exit 0`

func (d *drive) awaitBoot(ctx context.Context, i int, n *remote.Node) error {
	r, err := n.Exec(ctx, remote.Cmd{Line: shellword.Join("sh", "-c", bootScript), Quiet: bootLimit})
	if err == nil && r.ExitCode != 0 {
		err = &event.Fault{What: "wait for the end of the boot", Node: i, Why: fmt.Sprintf("sh ended with %d", r.ExitCode),
			LastLines: event.LastLines(string(r.Stderr), 3)}
	}
	return err
}

// changeHostKeys gives each node that needs it a host key of its own. A node
// is told to use its new key only when that is on record: whoever is killed in
// between knows both.
func (d *drive) changeHostKeys(ctx context.Context) error {
	nodes := d.data.Cluster.Nodes
	fresh := make([]string, len(nodes))
	err := d.link.each(ctx, func(ctx context.Context, i int, n *remote.Node) (err error) {
		switch {
		case !nodes[i].RotateHostKey:
		case nodes[i].NextHostKey != "" && n.HostKey() == nodes[i].NextHostKey:
			fresh[i] = nodes[i].NextHostKey // an earlier dlwb got this far
		default:
			fresh[i], err = n.NewHostKey(ctx)
		}
		return err
	})
	if err != nil {
		return &event.Fault{What: "change the host keys", Node: -1, Why: err.Error()}
	}
	changed := false
	for i, key := range fresh {
		if key != "" {
			nodes[i].NextHostKey, changed = key, true
		}
	}
	if !changed {
		return nil
	}
	if err := d.saveData(); err != nil {
		return err
	}
	err = d.link.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		if fresh[i] == "" || n.HostKey() == fresh[i] {
			return nil
		}
		return n.UseNewHostKey(ctx)
	})
	if err != nil {
		return &event.Fault{What: "change the host keys", Node: -1, Why: err.Error()}
	}
	for i, key := range fresh {
		if key != "" {
			nodes[i].HostKey, nodes[i].NextHostKey, nodes[i].RotateHostKey = key, "", false
		}
	}
	if err := d.saveData(); err != nil {
		return err
	}
	// Connections that were made with the old key prove nothing more.
	d.w.unlink(d.plan.Cluster)
	d.link, err = d.w.open(d.record)
	return err
}

// remember keeps what was learnt of machines that are the same as before: of
// one that has changed its host key the provider knows only the one it gave.
func remember(c cloud.Cluster, before cloud.Cluster) cloud.Cluster {
	old := map[string]cloud.Node{}
	for _, n := range before.Nodes {
		old[n.ID] = n
	}
	for i, n := range c.Nodes {
		was, ok := old[n.ID]
		if !ok || n.ID == "" {
			continue
		}
		c.Nodes[i].Interface = was.Interface
		given := n.PeerHost == was.PeerHost && n.PeerPort == was.PeerPort
		if n.PeerUnsure && !was.PeerUnsure && was.Addr == n.Addr && n.PeerGiven == was.PeerGiven && (!n.PeerGiven || given) {
			c.Nodes[i].PeerHost, c.Nodes[i].PeerPort, c.Nodes[i].PeerUnsure = was.PeerHost, was.PeerPort, false
		}
		if n.RotateHostKey {
			c.Nodes[i].HostKey, c.Nodes[i].NextHostKey, c.Nodes[i].RotateHostKey = was.HostKey, was.NextHostKey, was.RotateHostKey
		}
	}
	return c
}

// findInterfaces learns which network interface leads from each node to the
// others: NCCL and gloo have to be told where a machine has several.
func (d *drive) findInterfaces(ctx context.Context) error {
	nodes := d.data.Cluster.Nodes
	var changed atomic.Bool
	err := d.link.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		if nodes[i].Interface != "" || len(nodes) < 2 {
			return nil
		}
		peer := nodes[(i+1)%len(nodes)].PeerHost
		r, err := n.Exec(ctx, remote.Cmd{Line: shellword.Join("ip", "-o", "route", "get", peer)})
		if err != nil || r.ExitCode != 0 {
			return err // without ip the libraries choose by themselves
		}
		words := strings.Fields(string(r.Stdout))
		for j, word := range words[:max(0, len(words)-1)] {
			if word == "dev" {
				nodes[i].Interface = words[j+1]
				changed.Store(true)
			}
		}
		return nil
	})
	if err != nil || !changed.Load() {
		return err
	}
	return d.saveData()
}
