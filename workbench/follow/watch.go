package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

const (
	// watchTick is how often what has gathered is written and looked at.
	watchTick = 100 * time.Millisecond
	// drainTick is how soon after the end of a run it is first looked again whether
	// its logs are home; each look after it waits twice as long, up to watchTick.
	drainTick = 5 * time.Millisecond
	// settleEnd is how long the end of a rank waits for its last lines.
	settleEnd = 300 * time.Millisecond
	// DrainLimit is how long the rest of the logs is waited for after the end while
	// nothing of it comes.
	DrainLimit = 30 * time.Second
	// askAfter is how long a node must be out of reach before its provider
	// is asked whether it still exists.
	askAfter = 15 * time.Second
	// failGrace is what a failed rank's peers get to end by themselves, or
	// to be stopped by the failed node, before they are stopped from here.
	failGrace = 8 * time.Second
)

// Run is a run as it is watched.
type Run struct {
	ID, Cluster string
	StartedAt   time.Time
	Replicas    []job.Replica
	Ranks       []event.RankInfo // the charts come from the output of the first
	Logs        []Log
	// Leads is set when the others have nothing to do once the first replica has
	// ended well.
	Leads bool
	// Stall is how long all ranks may be silent; 0: for ever.
	Stall time.Duration
	// Lost is how long a node may not be heard of, while others are, before the
	// run is ended without it; 0: for ever.
	Lost time.Duration
	// Grace is what its ranks get between TERM and KILL; 0: StopGrace.
	Grace time.Duration
	// Silent are replicas that did not answer when they were last asked; nil: all did.
	Silent   []bool
	Metrics  []metrics.UserMetric // that its profile names
	Progress event.ProgressChanged
	Pace     Pace
	// Dir is the directory of its record here.
	Dir string
	// Code is where it has its code, below the home directory; Results are the
	// paths of its results below that, Own is a directory of its own below the
	// home. Files of metrics are looked for in all of them.
	Code    string
	Results []string
	Own     string
	// Names are what the user calls the replicas.
	Names event.Names
}

// Log is a log of a run.
type Log struct {
	Number  int    // the rank, or event.LauncherLog
	Path    string // of the stored copy
	Replica int
	Name    string // as the replica calls it
}

// Owner is what a watch needs of whoever drives the run.
type Owner struct {
	Store *store.Store
	// Publish tells an event of the run.
	Publish func(event.Body) error
	// Events are the events of the run behind one, and the number of the last.
	Events func(after int64) ([]event.Event, int64, error)
	// Changed says that something was written that readers may want.
	Changed func()
	// Progress puts on record how far the run is.
	Progress func(event.ProgressChanged, Pace) error
	// Gone asks which replicas are proven to exist no more.
	Gone func(context.Context) []bool
	// Alone asks, where no replica is heard of, whether it is this machine that is cut
	// off. proof says what shows that it is not; where nothing does, doubt says why
	// that can't be told. nil: it can't.
	Alone func(context.Context) (proof, doubt string)
	// Superseded reports whether another dlwb has told the end of the run.
	Superseded func() (bool, error)
	// End puts the end of the run on record.
	End func(event.RunEnded) error
	// Beside begins what goes on beside the watch, and returns how it is
	// finished when the run is over; nil: nothing does.
	Beside func(context.Context, *Watch) (finish func(context.Context))
}

// Watch follows one run to its end: it stores every byte that the ranks print,
// turns the first rank's output into points, and says how the run ended. It can
// be dropped at any moment and begun again, here or in another process: the
// stored logs say where it was.
type Watch struct {
	run   Run
	owner Owner

	mu        sync.Mutex
	nodes     []nodeEnd
	ends      map[int]rankEnd
	fell      map[int]rankEnd   // of ranks that their launcher may start again
	order     int               // of the ends, as they are told
	endSeen   map[int]time.Time // when the end of a rank became known here
	told      map[int]bool      // ranks whose end was published
	printed   map[int]time.Time // when a rank last printed
	before    map[int]time.Time // and when before that
	marks     map[int]marks     // what explains how a rank ends
	pids      map[int]int       // of the ranks, on their nodes
	starved   map[int]int       // processes of ranks that the kernel ended for lack of memory
	clocks    []nodeClock       // of the nodes
	noticed   map[string]bool   // what was told once
	gone      map[int]time.Time // nodes out of reach, since when
	heard     []time.Time       // when each node last told anything
	company   time.Time         // since when at least one node can be reached; zero: none can
	proof     string            // what showed that this machine is not cut off, where no node was heard of
	toldAlone time.Duration     // for how long none was heard of when that was said
	askAlone  time.Time         // not before that is asked again
	asking    bool              // the nodes that can be reached are asked, before others are given up
	failed    time.Time         // when the first failure became known
	broken    time.Time         // the same, of one that was not told to stop
	headOver  time.Time         // when the first replica had ended well
	nextStop  time.Time         // not before
	probed    time.Time         // when the provider was last asked for lost nodes
	probing   bool              // it is being asked
	group     *errgroup.Group
	savedAt   time.Time
	points    []metrics.Point
	storing   sync.Mutex // held while points go to the store
	reader    *metrics.Reader
	added     []*expression // by which the chart rank's log is read too
	taken     int64         // the event up to which they were looked for
	fed       int64         // how far the chart rank's stored log was read; readStored alone has it
	piece     []byte        // what it reads into
	unread    chan struct{} // there is more of it
	logs      map[int]*logFile
	late      bool            // it began some time after the run did
	notes     []event.Noticed // what replicas have said that is to be told

	overNews chan struct{} // the run is over on a node
}

// ToEnd follows a run until it has ended, and says how.
func ToEnd(ctx context.Context, run Run, owner Owner) (event.RunEnded, error) {
	t := newWatch(run, owner)
	defer t.closeLogs()
	if err := t.resume(); err != nil {
		return event.RunEnded{}, err
	}
	restOfFiles, restBeside := t.watchFiles(ctx), func(context.Context) {}
	if owner.Beside != nil {
		restBeside = owner.Beside(ctx, t)
	}
	err := t.follow(ctx)
	restBeside(ctx) // first: a machine that is taken away has little time
	restOfFiles(ctx)
	if err != nil {
		return event.RunEnded{}, err
	}
	// Nothing comes any more: what came last is still to be read and written.
	if err := errors.Join(t.readRest(ctx), t.tellEnds(0)); err != nil {
		return event.RunEnded{}, err
	}
	return t.conclude(ctx)
}

// readRest reads what was stored last. Behind a flood that takes longer than it took to
// print it: values go to the store one by one.
func (t *Watch) readRest(ctx context.Context) error {
	rest := t.logs[t.chartRank()].stored() - t.fed
	defer waits.Begin(waits.Wait{On: "the store", What: "to take the values in the last " + units.Bytes(rest) + " of the log"})()
	return errors.Join(t.readStored(ctx), t.lastPoints())
}

func newWatch(run Run, owner Owner) *Watch {
	t := &Watch{
		run: run, owner: owner, nodes: make([]nodeEnd, len(run.Replicas)),
		ends: map[int]rankEnd{}, fell: map[int]rankEnd{}, endSeen: map[int]time.Time{}, told: map[int]bool{},
		printed: map[int]time.Time{}, before: map[int]time.Time{}, marks: map[int]marks{}, pids: map[int]int{}, starved: map[int]int{},
		clocks: make([]nodeClock, len(run.Replicas)), noticed: map[string]bool{}, gone: map[int]time.Time{}, logs: map[int]*logFile{},
		heard: make([]time.Time, len(run.Replicas)), company: time.Now(), overNews: make(chan struct{}, 1), unread: make(chan struct{}, 1),
	}
	t.owner.Publish = func(b event.Body) error {
		if n, is := b.(event.Noticed); is {
			n.Text = run.Names.In(n.Text)
			b = n
		}
		return owner.Publish(b)
	}
	for _, r := range run.Ranks {
		if r.Node < len(t.nodes) {
			t.nodes[r.Node].ranks = append(t.nodes[r.Node].ranks, r.Rank)
		}
	}
	for i := range t.heard {
		t.heard[i] = time.Now()
	}
	for i, silent := range run.Silent {
		if silent {
			t.gone[i] = time.Now()
		}
	}
	return t
}

// resume opens the stored logs and reads what they already say.
func (t *Watch) resume() error {
	t.reader = metrics.NewReader(t.run.Metrics)
	t.late = time.Since(t.run.StartedAt) > atOnce
	for _, l := range t.run.Logs {
		f, err := openLog(l.Path)
		if err != nil {
			return err
		}
		t.logs[l.Number] = f
		t.printed[l.Number] = time.Now()
	}
	if err := t.readStored(context.Background()); err != nil {
		return err
	}
	if err := t.takeExpressions(); err != nil {
		return err
	}
	events, _, err := t.owner.Events(0)
	if err != nil {
		return err
	}
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.RankEnded:
			t.told[b.Rank] = true
		case event.Noticed:
			t.noticed[b.Text] = true
		}
	}
	return t.flushPoints()
}

// chartRank is the rank whose output the charts come from: the lowest.
func (t *Watch) chartRank() int { return t.run.Ranks[0].Rank }

// logOf is a log by its number.
func (t *Watch) logOf(number int) Log {
	for _, l := range t.run.Logs {
		if l.Number == number {
			return l
		}
	}
	return Log{Number: number}
}

// follow reads everything until every node has said that the run is over there
// and the logs are home.
func (t *Watch) follow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	t.group = g
	for i, r := range t.run.Replicas {
		g.Go(func() error {
			r.Reach(ctx, func(connected bool, why string) { t.reach(i, connected, why) })
			return nil
		})
		g.Go(func() error { return t.tolerate(ctx, i, t.followStatus(ctx, i, r)) })
	}
	for _, l := range t.run.Logs {
		log := t.logs[l.Number]
		g.Go(func() error {
			return t.tolerate(ctx, l.Replica, t.run.Replicas[l.Replica].FollowLog(ctx, l.Name, log.cursor(),
				func(c job.Chunk) error { return t.logged(l.Number, log, c) }))
		})
	}
	g.Go(func() error { return t.readOn(ctx) })
	g.Go(func() error {
		defer stop()
		return t.tend(ctx)
	})
	return g.Wait()
}

func (t *Watch) followStatus(ctx context.Context, node int, r job.Replica) error {
	err := r.WatchStatus(ctx, func(s job.Status) error {
		t.mu.Lock()
		t.heard[node] = time.Now()
		t.status(node, s)
		notes := t.notes
		t.notes = nil
		t.mu.Unlock()
		for _, n := range notes {
			t.notice(n.Text, n.Next)
		}
		t.clock(node, s.Time, s.Uptime)
		return nil
	}, func(state job.State) { t.looked(node, state) })
	var lost *job.UnrecordedError
	if errors.As(err, &lost) {
		t.unrecorded(node, lost)
		return nil
	}
	return err
}

// unrecorded takes in that the run is over on a node and that nothing there
// says how. What the ranks recorded themselves still counts.
func (t *Watch) unrecorded(node int, lost *job.UnrecordedError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.nodes[node]
	n.ended, n.code, n.why, n.rebooted = true, 1, cmp.Or(lost.State.Why, lost.Error()), lost.State.Rebooted
	for rank, e := range lost.State.Ranks {
		if _, known := t.ends[rank]; !known && t.has(node, rank) {
			t.order++
			t.final(rankEnd{rank: rank, node: node, code: e.Code, signal: e.Signal, at: e.End.Unix(), order: t.order})
		}
	}
	if t.failed.IsZero() {
		t.failed, t.broken = time.Now(), time.Now()
	}
}

// logged stores what a rank printed, or that output is gone for ever: a node
// keeps only so much of a log, and nobody read this part in time.
func (t *Watch) logged(rank int, log *logFile, c job.Chunk) error {
	var err error
	if c.Missing > 0 {
		_, err = log.drop(c)
	} else {
		err = log.append(c)
	}
	if err != nil {
		return &event.Fault{What: fmt.Sprintf("store the output of rank %d", rank), Node: -1, Why: err.Error(),
			Next: "the run goes on; make room, then dlwb attach " + t.run.Cluster}
	}
	if c.Missing > 0 {
		l := t.logOf(rank)
		if err := t.owner.Publish(event.Noticed{Level: "warning", Text: fmt.Sprintf(
			"%d bytes of %s are missing: node%d had dropped them before they were read", c.Missing, l.Name, l.Replica),
			Next: "limits.log in the profile keeps more"}); err != nil {
			return err
		}
	}
	t.came(rank)
	return nil
}

// tend looks after the run until it has ended and all logs are here.
func (t *Watch) tend(ctx context.Context) error {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	var rest drain
	soon := drainTick
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-t.overNews:
		}
		if err := t.flushPoints(); err != nil {
			return err
		}
		if err := t.tellEnds(settleEnd); err != nil {
			return err
		}
		if t.ended() {
			tick.Reset(soon)
			soon = min(2*soon, watchTick)
			t.findLost(ctx, probeAgain, true) // nothing more comes from a machine that went away after the end
			switch {
			case t.drained(ctx):
				return nil
			case rest.over(time.Now(), t.stored(), t.drainLimit()):
				return t.owner.Publish(event.Noticed{Level: "warning", Text: fmt.Sprintf(
					"the run is over, and for %s no more of its logs came home: what is stored of them may not be all", t.drainLimit())})
			}
			continue
		}
		t.intervene(ctx)
		if err := t.superseded(); err != nil {
			return err
		}
	}
}

func (t *Watch) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.nodes {
		if !n.ended && !n.writtenOff() {
			return false
		}
	}
	return true
}

// ErrSuperseded ends a watch of which another dlwb has told the end.
var ErrSuperseded = errors.New("another dlwb took the cluster down")

// superseded looks once a second whether a teardown that could not wait has
// told the end of the run, or removed the cluster.
func (t *Watch) superseded() error {
	if time.Since(t.savedAt) < time.Second {
		return nil
	}
	t.savedAt = time.Now()
	if err := t.takeExpressions(); err != nil {
		return err
	}
	is, err := t.owner.Superseded()
	if is && err == nil {
		return ErrSuperseded
	}
	return err
}

// drained reports whether all that the replicas hold of the logs is here.
func (t *Watch) drained(ctx context.Context) bool {
	lost := t.Lost()
	for i, r := range t.run.Replicas {
		if lost[i] {
			continue
		}
		have := map[string]job.Cursor{}
		for _, l := range t.run.Logs {
			if l.Replica == i {
				have[l.Name] = t.logs[l.Number].cursor()
			}
		}
		if all, err := r.HasAll(ctx, have); err != nil || !all {
			return false
		}
	}
	return true
}

// tellEnds publishes the ends of ranks that became known some time ago: their
// last lines had time to come.
func (t *Watch) tellEnds(after time.Duration) error {
	t.mu.Lock()
	var due []rankEnd
	for _, r := range t.run.Ranks {
		e, ended := t.ends[r.Rank]
		if ended && !t.told[r.Rank] && time.Since(t.endSeen[r.Rank]) >= after {
			t.told[r.Rank] = true
			due = append(due, e)
		}
	}
	t.mu.Unlock()
	for _, e := range due {
		b := event.RankEnded{Rank: e.rank, Node: e.node, ExitCode: e.code, Signal: e.signal, ByUs: e.byUs}
		if e.code != 0 {
			b.LastLines = t.logs[e.rank].tail(12)
		}
		if err := t.owner.Publish(b); err != nil {
			return err
		}
	}
	return nil
}
