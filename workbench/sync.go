package workbench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/sharing"
	"github.com/dlwb/dlwb/workbench/trust"
)

// tree is the code of a plan as it is now.
func (w *Workbench) tree(ctx context.Context, plan *planning.Plan) (*transfer.Tree, error) {
	rules, err := w.plans.Sent(plan.Profile)
	if err != nil {
		return nil, err
	}
	rules.NamesOnly = true // what is sent is read first
	tree, err := transfer.Scan(ctx, plan.Code.Dir, rules)
	if err != nil {
		return nil, &event.Fault{What: "read the code", Node: -1, Why: err.Error()}
	}
	tree.HashCache = w.checksums(plan)
	return tree, nil
}

func (w *Workbench) checksums(plan *planning.Plan) string {
	return filepath.Join(w.dir, "checksums", plan.Cluster)
}

// treeAtOnce is tree right after the plan was made: what was seen for that is not
// looked for again.
func (w *Workbench) treeAtOnce(ctx context.Context, plan *planning.Plan) (*transfer.Tree, error) {
	tree := plan.Tree
	if plan.Tree = nil; tree == nil {
		return w.tree(ctx, plan)
	}
	tree.HashCache = w.checksums(plan)
	return tree, nil
}

// sync copies the code to every node.
func (d *drive) sync(ctx context.Context) (string, bool, error) {
	return d.syncIn(ctx, event.StepSync)
}

// readCode is the code that is to be sent, when it was read.
type readCode struct {
	tree    *transfer.Tree
	secrets []string // sentences about what in it looks like a secret
	err     error
}

// read reads the code that is to be sent, which was seen with err.
func read(ctx context.Context, tree *transfer.Tree, err error) readCode {
	if err != nil {
		return readCode{err: err}
	}
	secrets, err := tree.Read(ctx)
	if err != nil {
		return readCode{err: &event.Fault{What: "read the code", Node: -1, Why: err.Error()}}
	}
	return readCode{tree: tree, secrets: secrets}
}

// readAhead begins to read the code where it was seen just now: the nodes are connected
// to meanwhile.
func (d *drive) readAhead(ctx context.Context) {
	if d.plan.Tree == nil {
		return
	}
	tree, err := d.w.treeAtOnce(ctx, d.plan)
	ahead := make(chan readCode, 1)
	d.ahead = ahead
	d.w.background(func(context.Context) { ahead <- read(ctx, tree, err) })
}

// syncIn is sync as a part of a step.
func (d *drive) syncIn(ctx context.Context, step string) (string, bool, error) {
	var code readCode
	if d.ahead != nil {
		code, d.ahead = <-d.ahead, nil
	} else {
		tree, err := d.w.treeAtOnce(ctx, d.plan)
		code = read(ctx, tree, err)
	}
	tree, secrets := code.tree, code.secrets
	if code.err != nil {
		return "", false, code.err
	}
	d.plan.Code.Held = planning.HeldFiles(tree) // by their content, too
	for _, warning := range tree.Warnings {
		_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: warning})
	}
	for _, warning := range secrets {
		_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: warning})
	}
	res, err := d.link.disks().Sync(ctx, d.link.nodes, tree, planning.RemoteCode(d.plan.Cluster),
		func(node int, text string) { d.say(step, node, text) })
	if err != nil {
		return "", false, &event.Fault{What: "copy the code", Node: -1, Why: err.Error()}
	}
	for _, text := range sharing.Notices(res) {
		_ = d.w.publish(d.s, text)
	}
	return res.String(), res.Files == 0 && res.Removed == 0, nil
}

// SyncPreview is what a sync would do.
type SyncPreview struct {
	Cluster  string                 `json:"cluster"`
	Up       bool                   `json:"up"` // whether there is a cluster to ask; else it is of new nodes
	Warnings []string               `json:"warnings"`
	Held     []transfer.HeldFile    `json:"held"` // look like secrets, and are not sent
	Nodes    []transfer.SyncPreview `json:"nodes"`
}

// PreviewSync works out what a sync of a plan's code would do. It changes
// nothing, here or there.
func (w *Workbench) PreviewSync(ctx context.Context, plan *planning.Plan) (SyncPreview, error) {
	p := SyncPreview{Cluster: plan.Cluster, Warnings: []string{}, Held: []transfer.HeldFile{}}
	tree, err := w.treeAtOnce(ctx, plan)
	if err != nil {
		return p, err
	}
	secrets, err := tree.Read(ctx)
	if err != nil {
		return p, &event.Fault{What: "read the code", Node: -1, Why: err.Error()}
	}
	p.Warnings = append(append(p.Warnings, tree.Warnings...), secrets...)
	p.Held = planning.HeldFiles(tree)
	var nodes []*remote.Node
	if l := w.linkOf(plan.Cluster); l != nil {
		nodes, p.Up = sharing.Some(l.nodes, l.disks().FirstAtCode), true
	}
	p.Nodes, err = transfer.PreviewSync(ctx, nodes, tree, planning.RemoteCode(plan.Cluster))
	if err != nil {
		err = &event.Fault{What: "ask the nodes what they have", Node: -1, Why: err.Error()}
	}
	return p, err
}

// linkOf is the connections to a cluster that is up; nil: there is none.
func (w *Workbench) linkOf(cluster string) *link {
	c, err := w.db.Cluster(cluster)
	if err != nil || c.EndedAt != nil {
		return nil
	}
	l, err := w.open(c)
	if err != nil {
		return nil
	}
	return l
}

const (
	// watchEvery is how often the code is looked at, and longer where that
	// takes long: looking costs a small part of one processor.
	watchEvery = 500 * time.Millisecond
	watchShare = 20
	// watchSettle is how long nothing may change for a sync to begin: an editor
	// writes several files, git many.
	watchSettle = 200 * time.Millisecond
	// watchAgain is when a sync that failed is tried again.
	watchAgain = 5 * time.Second
)

// WatchSync syncs a plan's code again soon after each change, until ctx ends or
// the cluster is gone, neither of which is an error. Each sync that did
// something is told by a StepEnded, each that failed by a Noticed.
func (w *Workbench) WatchSync(ctx context.Context, plan *planning.Plan) error {
	var done string // the state of the code that the nodes have
	told := heldText(plan.Code.Held)
	refused := "" // the state of the profile that was told to be untrusted
	for {
		began := time.Now()
		c, err := w.db.Cluster(plan.Cluster)
		if err != nil || c.EndedAt != nil {
			return err
		}
		tree, err := w.tree(ctx, plan)
		pause := max(watchEvery, watchShare*time.Since(began))
		if err == nil && tree.Fingerprint() != done {
			state := ""
			if tree, err = w.settled(ctx, plan, tree); err == nil {
				state = tree.Fingerprint()
				err = w.syncOnce(ctx, plan, c, tree)
			}
			if now := tree; err == nil && heldText(now.Held) != told {
				told = heldText(now.Held)
				_ = w.publish(scope{cluster: c.Name, life: c.ID}, event.Noticed{Level: "warning", Text: now.HeldBack()})
			}
			if err == nil {
				done = state
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if u := trust.Of(err); u != nil {
			pause = watchEvery
			if u.Key != refused {
				refused = u.Key
				_ = w.publish(scope{cluster: c.Name, life: c.ID}, untrustedNotice(err))
			}
		} else if err != nil {
			pause = watchAgain
			_ = w.publish(scope{cluster: c.Name, life: c.ID}, event.Noticed{Level: "warning", Text: event.FaultOf(err).Error(), Next: "it is tried again"})
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// untrustedNotice says that a watch waits for the user's word: what decides
// what is sent is not what was trusted.
func untrustedNotice(err error) event.Noticed {
	var u *trust.Untrusted
	_ = errors.As(err, &u)
	return event.Noticed{Level: "warning", Text: u.Subject.Path + " is not trusted any more: " + u.Subject.Since() + "; nothing is sent until it is",
		Next: "look at what has changed, then: " + u.Command()}
}

// heldText tells lists of files that are held back apart.
func heldText(list []transfer.HeldFile) string { return fmt.Sprint(list) }

// settled waits until the code has not changed for a moment.
func (w *Workbench) settled(ctx context.Context, plan *planning.Plan, tree *transfer.Tree) (*transfer.Tree, error) {
	for sleep(ctx, watchSettle) {
		next, err := w.tree(ctx, plan)
		if err != nil || next.Fingerprint() == tree.Fingerprint() {
			return next, err
		}
		tree = next
	}
	return nil, ctx.Err()
}

// syncOnce is one sync of a watch.
func (w *Workbench) syncOnce(ctx context.Context, plan *planning.Plan, c store.Cluster, tree *transfer.Tree) error {
	if err := w.gate.Still(ctx, plan.Trusted); err != nil {
		return err
	}
	lock, err := w.locks.ClaimSoon(ctx, plan.Cluster, locks.Change)
	if err != nil {
		return err
	}
	defer lock.Release()
	l, err := w.open(c)
	if err != nil {
		return err
	}
	res, err := l.disks().Sync(ctx, l.nodes, tree, planning.RemoteCode(plan.Cluster), nil)
	if err != nil {
		return &event.Fault{What: "copy the code", Node: -1, Why: err.Error()}
	}
	s := scope{cluster: c.Name, life: c.ID}
	for _, notice := range sharing.Notices(res) {
		_ = w.publish(s, notice)
	}
	if res.Changed == 0 {
		return nil
	}
	return w.publish(s, event.StepEnded{Step: event.StepSync, OK: true, Duration: res.Duration.Seconds(), Text: res.String()})
}

// sleep waits; false: ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// connectAhead begins to connect to the nodes of a cluster.
func (w *Workbench) connectAhead(c store.Cluster) {
	if l, err := w.open(c); err == nil {
		for _, n := range l.nodes {
			w.background(func(context.Context) { _ = n.Connect(l.ctx) }) // whoever needs it is told
		}
	}
}

// madeBy is the cluster of a name, where that is up and idle and was made with
// a profile that is the same to the last byte.
func (w *Workbench) madeBy(cluster string, p *profiles.Profile) (store.Cluster, bool) {
	c, err := w.db.Cluster(cluster)
	return c, err == nil && c.EndedAt == nil && event.Phase(c.Phase) == event.PhaseReady && c.Provider == p.Provider &&
		c.ProfilePath == p.Path && c.ProfileSource == p.Source
}

// readyFor reports whether the cluster of a profile waits for its code, and
// begins to connect to it.
func (w *Workbench) readyFor(p *profiles.Profile) bool {
	c, up := w.madeBy(p.Name, p)
	if up {
		w.connectAhead(c)
	}
	return up
}
