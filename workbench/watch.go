package workbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/engine"
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
	// drainLimit bounds the wait for the rest of the logs after the end.
	drainLimit = 30 * time.Second
	// lostAfter is how long a node must be out of reach before its provider
	// is asked whether it still exists.
	lostAfter = 15 * time.Second
	// failGrace is what a failed rank's peers get to end by themselves, or
	// to be stopped by the failed node, before they are stopped from here.
	failGrace = 8 * time.Second
)

// watch follows one run to its end: it stores every byte that the ranks print,
// turns rank 0's output into points, and says how it ended. It can be dropped
// at any moment and begun again, here or in another process: the logs' own
// sizes say where it was.
type watch struct {
	w    *Workbench
	s    scope
	link *link
	run  store.Run
	data runData

	mu       sync.Mutex
	nodes    []nodeEnd
	ends     map[int]rankEnd
	endSeen  map[int]time.Time // when the end of a rank became known here
	told     map[int]bool      // ranks whose end was published
	printed  map[int]time.Time // when a rank last printed
	pids     map[int]int       // of the ranks, on their nodes
	starved  map[int]int       // processes of ranks that the kernel ended for lack of memory
	clocks   []nodeClock       // of the nodes
	noticed  map[string]bool   // what was told once
	gone     map[int]time.Time // nodes out of reach, since when
	failed   time.Time         // when the first failure became known
	nextStop time.Time         // not before
	probed   time.Time         // when the provider was last asked for lost nodes
	group    *errgroup.Group
	savedAt  time.Time
	points   []metrics.Point
	storing  sync.Mutex // held while points go to the store
	reader   *metrics.Reader
	added    []*expression // by which the chart rank's log is read too
	taken    int64         // the event up to which they were looked for
	logs     map[int]*logFile
	late     bool // it began some time after the run did

	overNews chan struct{} // the run is over on a node
}

// watchRun follows a run until it has ended, and records how.
func (w *Workbench) watchRun(ctx context.Context, s scope, l *link, id string) (event.RunEnded, error) {
	run, data, err := w.runRecord(id)
	if err != nil {
		return event.RunEnded{}, err
	}
	t := &watch{
		w: w, s: s, link: l, run: run, data: data, nodes: make([]nodeEnd, len(l.nodes)),
		ends: map[int]rankEnd{}, endSeen: map[int]time.Time{}, told: map[int]bool{},
		printed: map[int]time.Time{}, pids: map[int]int{}, starved: map[int]int{},
		clocks: make([]nodeClock, len(l.nodes)), noticed: map[string]bool{}, gone: map[int]time.Time{}, logs: map[int]*logFile{},
		overNews: make(chan struct{}, 1),
	}
	t.s.run = id
	defer t.closeLogs()
	if err := t.resume(); err != nil {
		return event.RunEnded{}, err
	}
	restOfFiles, restOfCheckpoints := t.watchFiles(ctx), t.watchCheckpoints(ctx)
	err = t.follow(ctx)
	restOfCheckpoints(ctx) // first: a machine that is taken away has little time
	restOfFiles(ctx)
	if err != nil {
		return event.RunEnded{}, err
	}
	// Nothing comes any more: what came last is still to be written.
	if err := errors.Join(t.lastPoints(), t.tellEnds(0)); err != nil {
		return event.RunEnded{}, err
	}
	return t.conclude(ctx)
}

// resume opens the stored logs and reads what they already say.
func (t *watch) resume() error {
	t.reader = metrics.NewReader(userMetrics(t.data.Metrics))
	t.late = time.Since(t.run.StartedAt) > atOnce
	for _, rank := range t.allLogs() {
		f, err := openLog(t.w.logPath(t.run.ID, rank))
		if err != nil {
			return err
		}
		t.logs[rank] = f
		t.printed[rank] = time.Now()
	}
	err := t.logs[t.chartRank()].replay(func(p []byte) error {
		t.points = append(t.points, t.reader.Feed(p, now())...)
		if len(t.points) < pointsAtOnce {
			return nil
		}
		return t.storePoints()
	})
	if err != nil {
		return err
	}
	if err := t.takeExpressions(); err != nil {
		return err
	}
	events, err := t.w.db.RunEvents(t.run.ID, 0, 0)
	if err != nil {
		return err
	}
	for _, e := range decodeAll(events) {
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
func (t *watch) chartRank() int { return t.data.Ranks[0].Rank }

// allLogs numbers the logs of the run: the ranks and, for an engine that has a
// launcher, one of each node.
func (t *watch) allLogs() []int {
	var logs []int
	for _, r := range t.data.Ranks {
		logs = append(logs, r.Rank)
	}
	if engine.HasLauncher(t.run.Engine) {
		for n := range t.data.Nodes {
			logs = append(logs, LauncherLog(n))
		}
	}
	return logs
}

// nodeOf is the node that a log is on, and its name there.
func (t *watch) nodeOf(rank int) (node int, name string) {
	if rank < 0 {
		return LauncherLog(rank), "agent.log"
	}
	return t.data.Ranks[rank].Node, logName(rank)
}

// follow reads everything until every node has said that the run is over there
// and the logs are home.
func (t *watch) follow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	t.group = g
	for i, n := range t.link.nodes {
		defer n.OnState(func(connected bool, why string) { t.reach(i, connected, why) })()
		g.Go(func() error { t.keepLooking(ctx, i, n); return nil })
		g.Go(func() error { return t.tolerate(ctx, i, t.followStatus(ctx, i, n)) })
	}
	for rank, log := range t.logs {
		node, name := t.nodeOf(rank)
		g.Go(func() error {
			return t.tolerate(ctx, node, t.link.nodes[node].FollowLog(ctx, t.run.ID, name, log.size(),
				func(off int64, p []byte) error { return t.logged(rank, log, off, p) },
				func(from, to int64) error { return t.dropped(rank, log, from, to) }))
		})
	}
	g.Go(func() error {
		defer stop()
		return t.tend(ctx)
	})
	return g.Wait()
}

func (t *watch) followStatus(ctx context.Context, node int, n *remote.Node) error {
	err := n.WatchRunAndLook(ctx, t.run.ID, 0, func(_ int64, s remote.Status) error {
		t.mu.Lock()
		t.status(node, s)
		t.mu.Unlock()
		t.clock(node, s.Time, s.Uptime)
		return nil
	}, func(state remote.RunState) { t.looked(node, state) })
	var lost *remote.LostRunError
	if errors.As(err, &lost) {
		t.unrecorded(node, lost)
		return nil
	}
	return err
}

// unrecorded takes in that the run is over on a node and that nothing there
// says how. What the ranks recorded themselves still counts.
func (t *watch) unrecorded(node int, lost *remote.LostRunError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.nodes[node]
	n.ended, n.code, n.why, n.rebooted = true, 1, lost.State.Why, lost.State.Rebooted
	for rank, e := range lost.State.Ranks {
		if _, known := t.ends[rank]; !known && t.has(node, rank) {
			t.ends[rank] = rankEnd{rank: rank, node: node, code: e.Code, signal: e.Signal, at: e.End.Unix(), order: len(t.ends)}
			t.endSeen[rank] = time.Now()
		}
	}
	if t.failed.IsZero() {
		t.failed = time.Now()
	}
}

// stoppingMost is how often a node is believed that it stops the run: the
// first reasons are those that count.
const stoppingMost = 100

// has reports whether a rank is one of a node's. A node is not believed what it
// says of others.
func (t *watch) has(node, rank int) bool {
	return slices.ContainsFunc(t.data.Ranks, func(r event.RankInfo) bool { return r.Rank == rank && r.Node == node })
}

// status takes in one line of a node's status file.
func (t *watch) status(node int, s remote.Status) {
	n := &t.nodes[node]
	if s.Rank >= 0 && !t.has(node, s.Rank) {
		return
	}
	switch s.Kind {
	case remote.Started:
		n.from = s.Uptime
	case remote.RankStarted:
		t.pids[s.Rank] = s.PID
	case remote.RankStarved:
		t.starved[s.Rank] += s.Code
	case remote.RankEnded:
		if _, known := t.ends[s.Rank]; known {
			return
		}
		byUs := len(n.stopping) > 0
		t.ends[s.Rank] = rankEnd{rank: s.Rank, node: node, code: s.Code, signal: s.Signal, at: s.Time.Unix(), up: s.Uptime,
			starved: t.starved[s.Rank], byUs: byUs, order: len(t.ends)}
		t.endSeen[s.Rank] = time.Now()
		if s.Code != 0 && !byUs && t.failed.IsZero() {
			t.failed = time.Now()
		}
	case remote.Stopping:
		if len(n.stopping) < stoppingMost {
			n.stopping = append(n.stopping, s.Why)
		}
	case remote.Ended:
		n.ended, n.code, n.to = true, s.Code, s.Uptime
		select {
		case t.overNews <- struct{}{}:
		default:
		}
		if s.Code != 0 && t.failed.IsZero() {
			t.failed = time.Now()
		}
	}
}

// logged stores what a rank printed.
func (t *watch) logged(rank int, log *logFile, off int64, p []byte) error {
	if err := log.append(off, p); err != nil {
		return t.unstored(rank, err)
	}
	return t.read(rank, log.stored()-int64(len(p)), p)
}

func (t *watch) unstored(rank int, err error) error {
	return &event.Fault{What: fmt.Sprintf("store the output of rank %d", rank), Node: -1, Why: err.Error(),
		Next: "the run goes on; make room, then dlwb attach " + t.s.cluster}
}

// dropped stores and tells that output is gone for ever: the node keeps only so
// much of a log, and nobody read this part in time.
func (t *watch) dropped(rank int, log *logFile, from, to int64) error {
	text, err := log.drop(from, to)
	if err != nil {
		return t.unstored(rank, err)
	}
	node, name := t.nodeOf(rank)
	if err := t.w.publish(t.s, event.Noticed{Level: "warning", Text: fmt.Sprintf(
		"%d bytes of %s are missing: node%d had dropped them before they were read", to-from, name, node),
		Next: "limits.log in the profile keeps more"}); err != nil {
		return err
	}
	return t.read(rank, log.stored()-int64(len(text)), []byte(text))
}

// read takes in what was added to the stored log of a rank, and where.
func (t *watch) read(rank int, at int64, p []byte) error {
	t.mu.Lock()
	t.printed[rank] = time.Now()
	if rank == t.chartRank() {
		t.points = append(t.points, t.reader.Feed(p, now())...)
		t.feedAdded(at, p)
	}
	flood := len(t.points) >= pointsAtOnce
	t.mu.Unlock()
	t.w.changed()
	if flood { // whoever prints faster than points are stored has to wait
		return t.storePoints()
	}
	return nil
}

// tend looks after the run until it has ended and all logs are here.
func (t *watch) tend(ctx context.Context) error {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	var over time.Time
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
			if over.IsZero() {
				over = time.Now()
			}
			tick.Reset(soon)
			soon = min(2*soon, watchTick)
			t.findLost(ctx, probeAgain) // nothing more comes from a machine that went away after the end
			switch {
			case t.drained(ctx):
				return nil
			case time.Since(over) > drainLimit:
				return t.w.publish(t.s, event.Noticed{Level: "warning", Text: fmt.Sprintf(
					"the run is over, and its logs did not come home within %s: what is stored of them may not be all", drainLimit)})
			}
			continue
		}
		t.intervene(ctx)
		if err := t.superseded(); err != nil {
			return err
		}
	}
}

func (t *watch) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.nodes {
		if !n.ended && !n.lost {
			return false
		}
	}
	return true
}

// errSuperseded ends a watch of which another dlwb has told the end.
var errSuperseded = errors.New("another dlwb took the cluster down")

// superseded looks once a second whether a teardown that could not wait has
// told the end of the run, or removed the cluster.
func (t *watch) superseded() error {
	if time.Since(t.savedAt) < time.Second {
		return nil
	}
	t.savedAt = time.Now()
	if err := t.takeExpressions(); err != nil {
		return err
	}
	c, err := t.w.db.ClusterLife(t.s.life)
	if err != nil {
		return err
	}
	st, err := t.w.storyOf(t.run.ID)
	if err == nil && (st.ended != nil || event.Phase(c.Phase) == event.PhaseGone) {
		return errSuperseded
	}
	return err
}

// drained reports whether all that the nodes hold of the logs is here.
func (t *watch) drained(ctx context.Context) bool {
	lost := t.lost()
	for i, n := range t.link.nodes {
		if lost[i] {
			continue
		}
		state, err := n.RunState(ctx, t.run.ID)
		if err != nil {
			return false
		}
		for rank, log := range t.logs {
			node, name := t.nodeOf(rank)
			if node == i && log.size() < state.LogSize(name) {
				return false
			}
		}
	}
	return true
}

// tellEnds publishes the ends of ranks that became known some time ago: their
// last lines had time to come.
func (t *watch) tellEnds(after time.Duration) error {
	t.mu.Lock()
	var due []rankEnd
	for _, r := range t.data.Ranks {
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
		if err := t.w.publish(t.s, b); err != nil {
			return err
		}
	}
	return nil
}
