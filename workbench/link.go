package workbench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/atnode"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/sharing"
)

// link is this process's connections to the nodes of one life of a cluster.
// They are shared by everything that talks to the nodes.
type link struct {
	w        *Workbench
	life     int64
	lifeID   string // as nodes know it
	job      string // whose machines these are; empty: the cluster's own
	dir      string // where the ranks of that job work; empty: in the cluster's code
	cluster  cloud.Cluster
	nodes    []*remote.Node
	told     []job.Replica   // of a job whose service tells of its machines; nil: nodes do
	ctx      context.Context // ends with the link
	cancel   context.CancelFunc
	observed sync.Once
}

func newLink(w *Workbench, life int64, c cloud.Cluster) *link {
	l := &link{w: w, life: life, cluster: c}
	l.ctx, l.cancel = context.WithCancel(w.ctx)
	for _, n := range c.Nodes {
		t := atnode.Target(n, c.KeyFile)
		t.Reach = atnode.Way(c, n, w.provider)
		l.nodes = append(l.nodes, remote.Open(t))
	}
	return l
}

func (l *link) close() {
	l.cancel()
	for _, n := range l.nodes {
		_ = n.Close()
	}
}

// each does something on every node at once. The first error ends the others.
func (l *link) each(ctx context.Context, do func(ctx context.Context, i int, n *remote.Node) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, n := range l.nodes {
		g.Go(func() error { return do(ctx, i, n) })
	}
	return g.Wait()
}

// disks say which nodes see one disk.
func (l *link) disks() sharing.Nodes { return l.cluster.Nodes }

// parts are what a run has on each node.
func (l *link) parts(run string) []job.Replica {
	if l.told != nil {
		return l.told
	}
	all := make([]job.Replica, len(l.nodes))
	for i, n := range l.nodes {
		all[i] = atnode.Run{Node: n, ID: l.disks().Run(i, run), Iface: l.cluster.Nodes[i].Interface, Files: l.disks().FilesOf(i)}
	}
	return all
}

// peers are the nodes as they see each other, without node i (-1: all).
func (l *link) peers(without int) (peers []remote.Peer) {
	for i := range l.cluster.Nodes {
		if i != without {
			peers = append(peers, l.peerOf(i))
		}
	}
	return peers
}

// peerOf is one node as the others see it.
func (l *link) peerOf(i int) remote.Peer {
	n := l.cluster.Nodes[i]
	return remote.Peer{Name: n.Name, Host: n.PeerHost, Port: n.PeerPort, User: n.User, HostKey: n.HostKey}
}

// pair lets those of the nodes that fit reach some, or itself, and be reached: what they
// need for that lies in each home directory once.
func (l *link) pair(ctx context.Context, fits func(node int) bool, peers []remote.Peer) error {
	var nodes []*remote.Node
	var lives []string
	for i, n := range l.cluster.Nodes {
		if !l.disks().FirstAtHome(i) || !fits(i) {
			continue
		}
		life := ""
		if n.Beside {
			life = l.lifeID
		}
		nodes, lives = append(nodes, l.nodes[i]), append(lives, life)
	}
	return remote.Pair(ctx, nodes, lives, peers, l.w.peerKey(l.cluster.Name))
}

// open gives the connections to a cluster, making them on first use.
func (w *Workbench) open(c store.Cluster) (*link, error) {
	d, err := w.clusterData(c)
	if err != nil {
		return nil, err
	}
	if p, is := w.jobs[c.Provider]; is {
		if err := lacks("reach the nodes of cluster "+c.Name, d.Cluster, job.Exec); err != nil {
			return nil, err
		}
		return w.enter(c, d.Cluster, jobs{p, w})
	}
	if len(d.Cluster.Nodes) == 0 {
		return nil, &event.Fault{What: "reach cluster " + c.Name, Node: -1, Why: "it never came up",
			Next: "dlwb down " + c.Name + " removes what there is of it"}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.links[c.Name]; l != nil && l.life == c.ID {
		return l, nil
	}
	l := newLink(w, c.ID, d.Cluster)
	l.lifeID = d.Life
	w.links[c.Name] = l
	return l, nil
}

// unlink closes the connections to a cluster, and the tunnels that lead over
// them.
func (w *Workbench) unlink(cluster string) {
	w.tunnels.CloseAll(cluster, "the machines have other addresses or keys now")
	w.mu.Lock()
	l := w.links[cluster]
	delete(w.links, cluster)
	w.mu.Unlock()
	if l != nil {
		l.close()
	}
	if c, err := w.FindCluster(cluster); err == nil {
		if d, err := w.clusterData(c); err == nil {
			atnode.Leave(d.Cluster)
		}
	}
}

// Node gives the connection to one node of a cluster, for a shell, a command
// or a copy.
func (w *Workbench) Node(cluster string, node int) (*remote.Node, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return nil, err
	}
	l, err := w.visit(c, "reach the nodes of cluster "+c.Name, job.Shell)
	if err != nil {
		return nil, err
	}
	return l.node(c.Name, node)
}

// visit gives the link to a cluster for what may be there without any command: a shell,
// a port. Where there is no more, its nodes can do only that.
func (w *Workbench) visit(c store.Cluster, what string, need job.Capability) (*link, error) {
	d, err := w.clusterData(c)
	if err == nil {
		err = lacks(what, d.Cluster, need)
	}
	if err != nil {
		return nil, err
	}
	p, is := w.jobs[c.Provider]
	if !is || job.LackOf(d.Cluster.Lacks, job.Exec) == nil {
		return w.open(c)
	}
	on, err := jobs{p, w}.reach(c)
	if err != nil {
		return nil, err
	}
	return on.(*jobCarrier).outside()
}

// node is one of a cluster's nodes, by its number.
func (l *link) node(cluster string, number int) (*remote.Node, error) {
	if number < 0 || number >= len(l.nodes) {
		return nil, &event.Fault{What: fmt.Sprintf("find node %d of cluster %s", number, cluster), Node: -1,
			Why: fmt.Sprintf("it has %d, counted from 0", len(l.nodes))}
	}
	return l.nodes[number], nil
}

// NodeCount is how many nodes a cluster has.
func (w *Workbench) NodeCount(cluster string) (int, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return 0, err
	}
	d, err := w.clusterData(c)
	return len(d.Cluster.Nodes), err
}

// connectLimit bounds the first connection to all nodes, for the odd slow one.
const connectLimit = 60 * time.Second

// connect reaches every node, puts the scripts there and lets the nodes reach
// each other.
func (w *Workbench) connect(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	err := l.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		if err := n.Connect(ctx); err != nil {
			return &event.Fault{What: "connect", Node: i, Why: err.Error()}
		}
		if !l.disks().FirstAtHome(i) {
			return nil // another node puts them there
		}
		if err := n.Install(ctx); err != nil {
			return &event.Fault{What: "put the scripts in ~/.dlwb/bin", Node: i, Why: err.Error()}
		}
		return nil
	})
	if err != nil || len(l.nodes) < 2 {
		return err
	}
	if err := os.MkdirAll(w.keysDir(l.cluster.Name), 0o700); err != nil {
		return err
	}
	if err := l.pair(ctx, func(int) bool { return true }, l.peers(-1)); err != nil {
		return &event.Fault{What: "let the nodes reach each other", Node: -1, Why: err.Error()}
	}
	return nil
}

// heldOf gives, when it is called, connections to the nodes that a cluster has.
func (w *Workbench) heldOf(cluster string) func(context.Context) []cloud.Held {
	return func(ctx context.Context) []cloud.Held {
		c, err := w.db.Cluster(cluster)
		if err != nil || c.EndedAt != nil || event.Phase(c.Phase) == event.PhaseStopped {
			return nil
		}
		if l, err := w.open(c); err == nil {
			return atnode.Held(ctx, l.cluster.Nodes, l.nodes)
		}
		return nil
	}
}

// peerKey is the key with which the nodes of a cluster reach each other.
func (w *Workbench) peerKey(cluster string) string {
	return filepath.Join(w.keysDir(cluster), "peer")
}
