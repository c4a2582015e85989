package workbench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/atnode"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/money"
	"github.com/dlwb/dlwb/workbench/naming"
)

const (
	// leaseWatch is on machines that hold a lease; it prints the state of the
	// lease, and the provider's notice, for as long as somebody reads.
	leaseWatch = "sh /var/lib/dlwb/watch"
	// leaseRetry is how long a watch that broke off waits before the next.
	leaseRetry = 5 * time.Second
)

// nodeLease tells when a node will end by itself, and that the provider is
// about to take it away.
func (w *Workbench) nodeLease(ctx context.Context, s scope, l *link, node int) {
	told := money.Teller{Node: node, Publish: func(b event.Body) error { return w.publish(s, b) }, Leave: func(id string) {
		w.background(func(context.Context) { w.fetchBeforeEnd(ctx, s, l, node, id) })
	}}
	for ctx.Err() == nil {
		out := &atnode.LineWriter{Line: told.Line}
		_, err := l.nodes[node].Exec(ctx, remote.Cmd{Line: leaseWatch, Stdout: out, Quiet: remote.NoLimit})
		slog.Debug("the watch of a lease ended", "cluster", s.cluster, "node", node, "error", err)
		select {
		case <-time.After(leaseRetry):
		case <-ctx.Done():
		}
	}
}

// fetchBeforeEndEvery is how often it is looked whether all is home.
const fetchBeforeEndEvery = 300 * time.Millisecond

// fetchBeforeEnd sees to it that the results of a cluster are home before a node
// of it shuts down, and tells the node when they are. Whoever watches the run
// that was going on brings home what is its; what did not come earlier is tried
// again. The node waits for so long, and no longer.
func (w *Workbench) fetchBeforeEnd(ctx context.Context, s scope, l *link, node int, id string) {
	for {
		_, todo, err := w.unfinishedRun(s.cluster)
		if err == nil && !todo {
			break
		}
		select {
		case <-time.After(fetchBeforeEndEvery):
		case <-ctx.Done():
			return
		}
	}
	unsaved, err := w.results.Unsaved(s.cluster, s.life)
	for _, r := range unsaved {
		_, pullErr := w.results.Pull(ctx, r.Run, "")
		slog.Debug("fetched before the end of a lease", "run", r.Run, "error", pullErr)
	}
	_, execErr := l.nodes[node].Exec(ctx, remote.Cmd{Line: "echo " + id + " >~/.dlwb/fetched"})
	slog.Debug("the results are home before the end of a lease", "cluster", s.cluster, "node", node, "error", errors.Join(err, execErr))
}

// Extend moves the end of a cluster's lease, on every node. The budget is not
// touched: what it pays for stays the limit.
func (w *Workbench) Extend(ctx context.Context, cluster string, by time.Duration) error {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return err
	}
	if !traits(c.Provider).Leased {
		return &event.Fault{What: "extend the lease of cluster " + c.Name, Node: -1, Why: "machines of provider " + c.Provider + " have none"}
	}
	lock, err := w.locks.ClaimSoon(ctx, c.Name, locks.Change)
	if err != nil {
		return err
	}
	defer lock.Release()
	l, err := w.open(c)
	if err != nil {
		return err
	}
	// Once counts once, however often it is sent: an answer may get lost.
	line := remote.AsRoot(fmt.Sprintf("sh /var/lib/dlwb/lease extend %d --once %s", int(by.Seconds()), naming.NewLife()))
	err = l.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		r, err := n.Exec(ctx, remote.Cmd{Line: line})
		if err == nil && r.ExitCode != 0 {
			err = &event.Fault{What: "extend the lease", Node: i, Why: fmt.Sprintf("%q ended with %d", line, r.ExitCode), LastLines: event.LastLines(string(r.Stderr), 3)}
		}
		return err
	})
	if err != nil {
		return err
	}
	d := &drive{w: w, s: scope{cluster: c.Name, life: c.ID}, record: c}
	if d.data, err = w.clusterData(c); err != nil {
		return err
	}
	d.data.Cluster.ExpiresAt = d.data.Cluster.ExpiresAt.Add(by)
	if err := d.saveData(); err != nil {
		return err
	}
	return w.publish(d.s, clusterUp(d.data.Cluster))
}

// activeEvery is how often a node is told that somebody is at work on it: a
// long transfer shows in nothing that its lease looks at.
const activeEvery = 5 * time.Minute

// keepActive keeps the nodes' leases from taking a long step for idleness.
func (l *link) keepActive(ctx context.Context) {
	for traits(l.cluster.Provider).Leased {
		_ = l.each(ctx, func(ctx context.Context, _ int, n *remote.Node) error {
			_, err := n.Exec(ctx, remote.Cmd{Line: "touch ~/.dlwb/active"})
			return err
		})
		select {
		case <-time.After(activeEvery):
		case <-ctx.Done():
			return
		}
	}
}
