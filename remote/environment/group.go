package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
)

// Dir is a directory of one of a group's nodes, below its home.
type Dir struct {
	Node int
	Path string
}

// Copy copies a directory of one node to others, where it is whole or not at
// all. most bounds its bytes. There is an error for each of the others.
type Copy func(ctx context.Context, from Dir, to []Dir, most int64) []error

// Group is nodes whose environments are made at the same time and that share
// one line to the package index: the first one that needs packages fetches
// them, and the others of its kind get them from there. None depends on that:
// where it does not work, a node installs as it would alone.
type Group struct {
	names []string
	copy  Copy

	mu      sync.Mutex
	fetches map[string]*fetch // by the kind of node
	used    []usedDir
	copies  sync.WaitGroup
	stops   []context.CancelFunc // of the copies
}

// usedDir is where a node has its wheels.
type usedDir struct {
	run  Runner
	path string
}

// wheels are what was fetched.
type wheels struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

// String is how many and how much, as a person says it.
func (w wheels) String() string {
	plural := "s"
	if w.Count == 1 {
		plural = ""
	}
	return fmt.Sprintf("%d wheel%s, %s", w.Count, plural, units.Bytes(w.Bytes))
}

// most bounds what they may be as an archive.
func (w wheels) most() int64 { return 1<<20 + w.Bytes + int64(w.Count)*4096 }

// fetch is what one node fetches for those of its kind.
type fetch struct {
	head    Dir
	over    bool // it has them, or none
	got     wheels
	waiting []*waiter
}

// waiter is a node that waits for that.
type waiter struct {
	dir  Dir
	tell func(string)
	came chan error // whether they are there; room for one
}

var errNoWheels = errors.New("it has none to share")

// NewGroup makes a group of the nodes with these names.
func NewGroup(names []string, copy Copy) *Group {
	return &Group{names: names, copy: copy, fetches: map[string]*fetch{}}
}

// Close removes the wheels from all nodes, after the last one has its
// environment. A group that never fetched any asks no node.
func (g *Group) Close(ctx context.Context) {
	if g == nil {
		return
	}
	for _, stop := range g.stops {
		stop() // nobody waits for it any more
	}
	g.copies.Wait()
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	var all sync.WaitGroup
	for _, d := range g.used {
		all.Go(func() { _, _, _, _ = d.run.Exec(ctx, `rm -rf "$HOME"/`+shellword.Quote(d.path)) })
	}
	all.Wait()
}

// closeLimit is for a node that is gone: what it keeps is removed with the next
// environment that is made there.
const closeLimit = 10 * time.Second

// join gives the fetch of a kind of node, and whether the caller is to do it.
func (g *Group) join(ctx context.Context, kind string, run Runner, w *waiter) (f *fetch, head bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used = append(g.used, usedDir{run, w.dir.Path})
	f = g.fetches[kind]
	if f == nil {
		f = &fetch{head: w.dir}
		g.fetches[kind] = f
		return f, true
	}
	f.waiting = append(f.waiting, w)
	if f.over {
		g.handOutLocked(ctx, f)
	} else {
		w.tell("waiting for the wheels from " + g.names[f.head.Node])
	}
	return f, false
}

// leave is for a node that waits no longer.
func (g *Group) leave(f *fetch, w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.waiting = slices.DeleteFunc(f.waiting, func(other *waiter) bool { return other == w })
}

// fetched ends the waiting for a fetch. Only the first call counts.
func (g *Group) fetched(ctx context.Context, f *fetch, got wheels) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.over {
		return
	}
	f.over, f.got = true, got
	g.handOutLocked(ctx, f)
}

// handOutLocked has the wheels copied to all who wait.
func (g *Group) handOutLocked(ctx context.Context, f *fetch) {
	to := f.waiting
	f.waiting = nil
	if f.got.Count == 0 {
		for _, w := range to {
			w.came <- errNoWheels
		}
		return
	}
	if len(to) == 0 {
		return
	}
	dirs := make([]Dir, len(to))
	for i, w := range to {
		dirs[i] = w.dir
		w.tell(fmt.Sprintf("getting %s from %s", f.got, g.names[f.head.Node]))
	}
	ctx, stop := context.WithCancel(ctx)
	g.stops = append(g.stops, stop)
	g.copies.Go(func() {
		for i, err := range g.copy(ctx, f.head, dirs, f.got.most()) {
			to[i].came <- err
		}
	})
}

// together makes a virtual environment with the wheels of another node of its
// kind, or with its own, which the others then get.
func (p preparer) together(ctx context.Context, n node, base interpreter, j job) (answer, error) {
	began := time.Now()
	j.Pause = true
	a, err := p.command(ctx, n, base, j, nil)
	if err != nil || a.Kind == "" {
		return a, err
	}
	// Two nodes may share a home: each has a directory of its own.
	j.Wheels = fmt.Sprintf("dlwb/%s/.wheels.%d", p.spec.Cluster, p.spec.Node)
	j.Pause, j.Force, j.Made = false, false, a.Made
	g, w := p.spec.Group, &waiter{dir: Dir{p.spec.Node, j.Wheels}, tell: p.progress, came: make(chan error, 1)}
	f, head := g.join(ctx, a.Kind, p.run, w)
	var fetched func(wheels)
	if head {
		j.Fetch, fetched = true, func(got wheels) { g.fetched(ctx, f, got) }
		defer g.fetched(ctx, f, wheels{}) // in case that it never says so
	} else if err := p.await(ctx, f, w); err != nil {
		if ctx.Err() != nil {
			return answer{}, fmt.Errorf("environment: installing %s: %w", p.file(), context.Cause(ctx))
		}
		p.progress(fmt.Sprintf("no wheels from %s: %v", g.names[f.head.Node], err))
		j.Wheels = ""
	}
	j.Limit = max(1, (p.limit - time.Since(began)).Seconds())
	return p.command(ctx, n, base, j, fetched)
}

// await waits until this node has the wheels that another one fetches: for half
// of its time, so that alone it then has as long as it has waited. That is no
// loss where the line is what takes the time: this node would have had to share
// it with the one that fetches.
func (p preparer) await(ctx context.Context, f *fetch, w *waiter) error {
	patience := p.patience
	if patience == 0 {
		patience = p.limit / 2
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case err := <-w.came:
		return err
	case <-ctx.Done():
		p.spec.Group.leave(f, w)
		return context.Cause(ctx)
	case <-enough.C:
		p.spec.Group.leave(f, w)
		return fmt.Errorf("they are not here after %s", units.Duration(patience))
	}
}
