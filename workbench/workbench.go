package workbench

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/settings"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/cleanup"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/market"
	"github.com/dlwb/dlwb/workbench/money"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/results"
	"github.com/dlwb/dlwb/workbench/silence"
	"github.com/dlwb/dlwb/workbench/statedir"
	"github.com/dlwb/dlwb/workbench/told"
	"github.com/dlwb/dlwb/workbench/trust"
	"github.com/dlwb/dlwb/workbench/tunnel"
)

// Options says where a workbench keeps its state and where machines come from.
type Options struct {
	// Dir is the state directory; see statedir.Default.
	Dir string
	// Providers make the clusters, each under its Kind.
	Providers []cloud.Provider
	// Jobs take whole jobs, each under its Kind.
	Jobs []cloud.JobProvider
	// Settings says what the user allows the profile of a path, each time it is
	// asked; nil: nothing.
	Settings func(profile string) (settings.Settings, error)
}

// Workbench drives experiments and remembers them. Several processes may have
// the same state directory open at once: every event goes through the store,
// and locks per cluster decide who changes it and who watches it.
type Workbench struct {
	dir       string
	locks     locks.Dir
	db        *store.Store
	providers map[string]cloud.Provider
	jobs      map[string]cloud.JobProvider
	settings  func(profile string) (settings.Settings, error)
	gate      *trust.Gate // every profile goes through it
	history   *history.History
	results   *results.Fetcher
	tunnels   *tunnel.Tunnels
	ssh       *tunnel.SSH
	cleaner   *cleanup.Cleaner
	plans     *planning.Maker
	market    *market.Market

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	busy   sync.WaitGroup // everything that runs in the background; nothing is added once it is closed

	said silence.LastStep // when a step was last heard of

	mu       sync.Mutex
	closed   bool
	news     chan struct{} // closed and replaced when something was written
	links    map[string]*link
	roster   event.Roster         // of the nodes
	watching map[string]bool      // clusters that a background watch is held for
	seen     map[int64]seenStates // what the providers said last, by life
	books    *money.Books
}

// Open opens the state directory and makes it when it is not there.
func Open(o Options) (*Workbench, error) {
	if err := statedir.Make(o.Dir); err != nil {
		return nil, err
	}
	db, err := store.Open(filepath.Join(o.Dir, "dlwb.sqlite"))
	if err != nil {
		return nil, err
	}
	w := &Workbench{
		dir: o.Dir, locks: locks.Dir(filepath.Join(o.Dir, "locks")), db: db, gate: trust.New(o.Dir), settings: o.Settings, providers: map[string]cloud.Provider{}, jobs: map[string]cloud.JobProvider{},
		news: make(chan struct{}), links: map[string]*link{},
		watching: map[string]bool{}, seen: map[int64]seenStates{},
	}
	w.books = money.NewBooks(func(life, after int64) ([]event.Event, error) {
		rows, err := db.SinceLife(life, after, 0)
		return told.All(rows), err
	})
	w.results = results.New(db, results.Owner{Dir: w.runDir, Run: w.runWithResults, Told: w.toldOf, Readable: w.readable, Kept: w.keeps, Reach: w.reachResults})
	w.history = history.New(db, history.Records{Runs: w.Runs, Run: w.pastRun, Placed: w.results.Placed, ReadLog: w.ReadLog, Holder: w.holder, Changed: w.changed})
	w.cleaner = cleanup.New(db, cleanup.Owner{Runs: func() ([]store.Run, error) { return w.runs("") }, FindRun: w.FindRun,
		Needed: w.neededStill, Dir: w.runDir, Results: w.results.Of, Changed: w.changed})
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.ssh = tunnel.NewSSH(o.Dir, w.machinesOf)
	w.tunnels = tunnel.New(w.ctx, o.Dir, tunnel.Owner{Find: w.tunnelTo, Listed: w.listedForwards, Background: w.background,
		Publish: func(cluster string, life int64, b event.Body) error {
			return w.publish(scope{cluster: cluster, life: life}, b)
		}})
	if w.settings == nil {
		w.settings = func(string) (settings.Settings, error) { return settings.Settings{}, nil }
	}
	for _, p := range o.Providers {
		w.providers[p.Kind()] = p
	}
	for _, p := range o.Jobs {
		w.jobs[p.Kind()] = p
	}
	w.plans = planning.New(planning.Owner{Dir: o.Dir, Gate: w.gate, History: w.history, Settings: w.settings, Kinds: w.kinds,
		Check: w.checkWith, Steps: w.stepsOf, Up: w.upNow, Ready: w.readyFor, Remember: w.rememberProfile})
	w.market = market.New(market.Owner{Kinds: w.kinds, Provider: w.provider, Check: w.checkWith, Lives: w.lives,
		Jobs: func(kind string) (cloud.JobProvider, bool) { p, is := w.jobs[kind]; return p, is },
		Unresolved: func(r cloud.Receipt, perHour float64, err error) error {
			return &UnresolvedError{Receipt: r, PerHour: perHour, Err: err}
		}})
	return w, nil
}

// Close ends what runs in the background and closes the store. Clusters and
// their runs go on.
func (w *Workbench) Close() error {
	w.cancel()
	w.tunnels.CloseAll("", "dlwb has ended")
	w.mu.Lock()
	links := w.links
	w.links = map[string]*link{}
	w.closed = true
	w.mu.Unlock()
	for _, l := range links {
		l.close()
	}
	w.busy.Wait()
	return w.db.Close()
}

// Dir is the state directory.
func (w *Workbench) Dir() string { return w.dir }

// History answers questions about runs of the past.
func (w *Workbench) History() *history.History { return w.history }

// Tunnels are the forwards that this process holds open.
func (w *Workbench) Tunnels() *tunnel.Tunnels { return w.tunnels }

// SSH writes what the user's own ssh needs to reach nodes.
func (w *Workbench) SSH() *tunnel.SSH { return w.ssh }

// Cleaner removes runs of the past.
func (w *Workbench) Cleaner() *cleanup.Cleaner { return w.cleaner }

// Plans works out what profiles would do.
func (w *Workbench) Plans() *planning.Maker { return w.plans }

// Market asks the providers what there is, and what was left behind.
func (w *Workbench) Market() *market.Market { return w.market }

// Gate decides which profiles are acted on.
func (w *Workbench) Gate() *trust.Gate { return w.gate }

func (w *Workbench) provider(kind string) (cloud.Provider, error) {
	if p, ok := w.providers[kind]; ok {
		return p, nil
	}
	if _, is := w.jobs[kind]; is {
		return nil, &event.Fault{What: "find machines of provider " + kind, Node: -1,
			Why: "it takes whole jobs and hands out no machines", Next: "dlwb run hands one in"}
	}
	return nil, &event.Fault{What: "find the provider " + kind, Node: -1,
		Why: "this dlwb has no provider of that name", Next: "dlwb doctor lists the providers it has"}
}

// background runs f until it returns; Close waits for it. What somebody begins beside
// Close has a context that has ended, and is waited for by nobody.
func (w *Workbench) background(f func(context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		go f(w.ctx)
		return
	}
	w.busy.Go(func() { f(w.ctx) })
}

// changed wakes every reader of this process.
func (w *Workbench) changed() {
	w.mu.Lock()
	close(w.news)
	w.news = make(chan struct{})
	w.mu.Unlock()
}

func (w *Workbench) newsChannel() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.news
}

// now is the time that records get: wall clock, UTC, without the monotonic
// part, so that it reads back from the store as it was written.
func now() time.Time { return time.Now().UTC().Round(0) }
