package workbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/peers"
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
	limit := max(bootLimit, d.data.Cluster.BootLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s of the start", units.Duration(limit)))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cluster := d.data.Cluster
	cluster.Nodes = slices.Clone(nodes) // host keys are written down meanwhile
	go d.watchAlive(ctx, stop, cluster)
	began := time.Now()
	err := d.link.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		quiet := time.AfterFunc(silentFor, func() { d.tellSilence(ctx, i, cluster) })
		err := awaitSSH(ctx, n, func() {
			d.say(event.StepCluster, i, "it does not show the host key that it was given; nothing is sent to it before it does")
		})
		quiet.Stop()
		if err != nil {
			return d.silent(ctx, i, cluster, err)
		}
		if d.booted {
			return d.awaitBoot(ctx, i, n)
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

// silentFor is how long a machine may say nothing before it is told why that may
// be: most answer within a minute or two.
const silentFor = 3 * time.Minute

// testimonyLimit bounds the questions to a provider about a silent machine.
const testimonyLimit = 20 * time.Second

// testify is what the provider knows of a machine that does not answer.
func (d *drive) testify(ctx context.Context, i int, cluster cloud.Cluster) (causes, console []string) {
	provider, err := d.w.provider(cluster.Provider)
	witness, can := provider.(cloud.Witness)
	if err != nil || !can {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), testimonyLimit)
	defer cancel()
	return witness.Testify(ctx, cluster, i)
}

// tellSilence says while a machine is waited for what may keep it from answering.
func (d *drive) tellSilence(ctx context.Context, i int, cluster cloud.Cluster) {
	if ctx.Err() != nil {
		return
	}
	causes, _ := d.testify(ctx, i, cluster)
	for _, cause := range causes {
		d.say(event.StepCluster, i, "no ssh answer yet: "+cause)
	}
}

// silent is that a machine never answered, with what the provider knows of it.
func (d *drive) silent(ctx context.Context, i int, cluster cloud.Cluster, err error) error {
	f := &event.Fault{What: "connect", Node: i, Why: err.Error(), Next: "dlwb down " + d.plan.Cluster + " removes the machines"}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return f // somebody has ended the wait, or another machine has
	}
	var causes []string
	causes, f.LastLines = d.testify(ctx, i, cluster)
	if len(causes) > 0 {
		f.Why += "; " + strings.Join(causes, "; ")
	}
	return f
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
// that it does not hold a lock that the environment step needs. What the boot was
// told to prepare and could not (a disk for data) stands in boot.failed, and is tried
// again: it may have been mended since.
const bootScript = `command -v cloud-init >/dev/null 2>&1 || exit 0
timeout 900 cloud-init status --wait >/dev/null 2>&1
[ $? -ne 124 ] || { echo 'cloud-init has not ended after 15 minutes' >&2; exit 73; }
dir=${DLWB_DIR:-/var/lib/dlwb}
[ ! -s "$dir/boot.failed" ] || [ ! -x "$dir/volumes" ] || sudo -n env DLWB_PATIENCE=5 "$dir/volumes" >/dev/null 2>&1
[ ! -s "$dir/boot.failed" ] || { cat "$dir/boot.failed" >&2; exit 73; }
exit 0`

// bootQuiet is how long that may say nothing: longer than the script waits.
const bootQuiet = 16 * time.Minute

// notPrepared is how bootScript says that.
const notPrepared = 73

func (d *drive) awaitBoot(ctx context.Context, i int, n *remote.Node) error {
	r, err := n.Exec(ctx, remote.Cmd{Line: shellword.Join("sh", "-c", bootScript), Quiet: bootQuiet})
	if lines := event.LastLines(string(r.Stderr), 5); err == nil && r.ExitCode == notPrepared && len(lines) > 0 {
		return &event.Fault{What: "prepare the machine at its boot", Node: i, Why: strings.Join(lines, "; "),
			Next: "mend it there (dlwb ssh), and bring the cluster up again; or take it down"}
	}
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
			c.Nodes[i].PeerHost, c.Nodes[i].PeerPort, c.Nodes[i].PeerUnsure, c.Nodes[i].PeerClosed = was.PeerHost, was.PeerPort, false, was.PeerClosed
		}
		if n.RotateHostKey {
			c.Nodes[i].HostKey, c.Nodes[i].NextHostKey, c.Nodes[i].RotateHostKey = was.HostKey, was.NextHostKey, was.RotateHostKey
		}
	}
	return c
}

// findWays finds out where the nodes reach each other, where that is not sure, and
// by which interface.
func (d *drive) findWays(ctx context.Context) error {
	look := peers.Search{Nodes: d.data.Cluster.Nodes, To: d.link.nodes, Life: d.data.Life}
	tried := peers.Unsure(look.Nodes)
	if tried {
		missing, closed := look.Find(ctx)
		if closed != "" {
			_ = d.w.publish(d.s, event.Noticed{Level: "info", Text: closed})
		}
		if len(missing) > 0 {
			_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: strings.Join(missing, "; ") +
				": ranks there that have to talk to each other would wait in vain, and code is sent to each from here",
				Next: "give the address by which the others reach it, such as {host: gpu2, peer: 10.0.0.6} in machines.hosts"})
		}
		d.link.cluster.Nodes = slices.Clone(look.Nodes)
		if err := d.pairReached(ctx); err != nil {
			return err
		}
	}
	learnt, err := look.Interfaces(ctx)
	if err != nil || !learnt && !tried {
		return err
	}
	return d.saveData()
}

// pairReached lets the nodes that reach each other do so, and no others: who waits
// for files that can't come loses time.
func (d *drive) pairReached(ctx context.Context) error {
	var known []remote.Peer
	reached := func(j int) bool { n := d.data.Cluster.Nodes[j]; return !n.PeerUnsure && !n.PeerClosed }
	for j := range d.data.Cluster.Nodes {
		if self := d.link.peerOf(j); reached(j) {
			known = append(known, self)
		} else if err := d.link.pair(ctx, func(node int) bool { return node == j }, []remote.Peer{self}); err != nil {
			return err
		}
	}
	return d.link.pair(ctx, reached, known)
}
