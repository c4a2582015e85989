package workbench

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/samples"
	"github.com/dlwb/dlwb/workbench/told"
)

// pollInterval is how often a reader looks for what another process wrote;
// what this process writes wakes it at once.
const pollInterval = 250 * time.Millisecond

// gatherFor is how long after it was given events a reader gets no more: what comes
// first comes at once, and a flood is read fifty times a second, not with each piece
// that a node sends.
const gatherFor = 20 * time.Millisecond

// samplesBack is how much telemetry a new reader gets: two minutes of four
// nodes at one sample a second, enough to fill the small charts.
const samplesBack = 480

// Subscription is one reader's place in a cluster's stream of events. It holds
// no queue: what the reader has not seen yet waits in the store and in the
// stored logs, so a slow reader costs nothing and loses nothing, and a screen
// opened later, or in another process, gets the same stream.
type Subscription struct {
	w       *Workbench
	cluster string
	pinned  bool // one run of the past, not a life that goes on

	mu     sync.Mutex
	closed chan struct{}
	once   sync.Once

	life, seq, sample int64
	run               string
	ranks             []int
	sizes             map[int]int64
	points            map[string]history.Shown
	progress          runData
	blind             bool      // it wants no samples
	given             time.Time // when events were last returned
	looked            time.Time // when it last noted that it wants some
	gaps              samples.Gaps
}

// WithoutSamples makes a subscription that leaves telemetry out: who does not
// show it need not have the nodes asked for it each second.
func (s *Subscription) WithoutSamples() *Subscription {
	s.blind = true
	return s
}

// Subscribe opens the stream of a cluster: first all that happened in its
// present life, then what happens. The cluster need not exist yet.
func (w *Workbench) Subscribe(cluster string) *Subscription {
	return &Subscription{w: w, cluster: cluster, closed: make(chan struct{}), gaps: samples.Gaps{}}
}

// FromNow leaves out what has happened already in the cluster's present life.
func (s *Subscription) FromNow() *Subscription {
	c, err := s.w.db.Cluster(s.cluster)
	if err != nil {
		return s // there is nothing to skip
	}
	s.life = c.ID
	if rows, err := s.w.db.SinceLife(c.ID, 0, 0); err == nil && len(rows) > 0 {
		s.seq = rows[len(rows)-1].Seq
	}
	s.sample, _ = s.w.db.LastSample(c.ID, 0)
	return s
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() { s.once.Do(func() { close(s.closed) }) }

// Next waits for events and returns all that wait, oldest first. After Close,
// or when ctx ends, it returns nil. It waits through a store that can't be
// read just now: a reader has no better answer than to look again.
func (s *Subscription) Next(ctx context.Context) []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wait(ctx, gatherFor-time.Since(s.given), nil) {
		return nil
	}
	for {
		news := s.w.newsChannel()
		if events := s.read(); len(events) > 0 {
			s.given = time.Now()
			return events
		}
		if !s.wait(ctx, pollInterval, news) {
			return nil
		}
	}
}

// wait waits for a while, or until something was written; it reports false when
// nobody reads any more.
func (s *Subscription) wait(ctx context.Context, while time.Duration, news <-chan struct{}) bool {
	if while <= 0 {
		return true
	}
	tick := time.NewTimer(while)
	defer tick.Stop()
	select {
	case <-news:
	case <-tick.C:
	case <-s.closed:
		return false
	case <-ctx.Done():
		return false
	case <-s.w.ctx.Done():
		return false
	}
	return true
}

// read returns what is new since the last call.
func (s *Subscription) read() []event.Event {
	select {
	case <-s.closed:
		return nil
	default:
	}
	if !s.pinned {
		s.enterLife()
	}
	if s.life == 0 {
		return nil
	}
	rows, err := s.w.db.SinceLife(s.life, s.seq, 0)
	if err != nil {
		return nil
	}
	var events []event.Event
	for _, row := range rows {
		s.seq = row.Seq
		e, ok := told.Decode(row)
		if !ok {
			continue
		}
		// What a run has printed and measured belongs before its end and
		// after its beginning, whenever it is read.
		if _, ended := e.Body.(event.RunEnded); ended {
			events = append(events, s.readRun()...)
		}
		events = append(events, e)
		if started, ok := e.Body.(event.RunStarted); ok {
			s.enterRun(e.Run, started)
		}
	}
	return append(append(events, s.readRun()...), s.readSamples()...)
}

// enterLife moves on to a newer life of the cluster when there is one.
func (s *Subscription) enterLife() {
	c, err := s.w.db.Cluster(s.cluster)
	if err != nil || c.ID == s.life {
		return
	}
	s.life, s.seq, s.run, s.gaps = c.ID, 0, "", samples.Gaps{}
	s.sample, _ = s.w.db.LastSample(s.life, samplesBack)
}

func (s *Subscription) enterRun(run string, started event.RunStarted) {
	s.run, s.ranks = run, nil
	for _, r := range started.Ranks {
		s.ranks = append(s.ranks, r.Rank)
	}
	for n := range started.Nodes {
		s.ranks = append(s.ranks, event.LauncherLog(n))
	}
	s.sizes, s.points, s.progress = map[int]int64{}, map[string]history.Shown{}, runData{}
}

// readRun returns what the present run has printed and measured meanwhile.
func (s *Subscription) readRun() []event.Event {
	if s.run == "" {
		return nil
	}
	var events []event.Event
	add := func(b event.Body) {
		events = append(events, event.Event{Time: now(), Cluster: s.cluster, Run: s.run, Body: b})
	}
	for _, rank := range s.ranks {
		info, err := os.Stat(s.w.logPath(s.run, rank))
		if err == nil && info.Size() != s.sizes[rank] {
			s.sizes[rank] = info.Size()
			add(event.LogGrew{Rank: rank, Size: info.Size()})
		}
	}
	if points, err := s.w.history.NewPoints(s.run, s.points); err == nil && len(points) > 0 {
		add(event.PointsAdded{Points: points})
	}
	if p := s.w.runProgress(s.run); p != s.progress.Progress {
		s.progress.Progress = p
		add(p)
	}
	return events
}

func (s *Subscription) readSamples() []event.Event {
	if s.blind {
		return nil
	}
	samples.Looking(s.w.dir, s.life, &s.looked)
	rows, last, err := s.w.db.SamplesAfter(s.life, s.sample)
	if err != nil {
		return nil
	}
	s.sample = last
	return s.gaps.Events(rows, s.cluster, s.run)
}

// RunEvents returns everything of a run of the past, as Subscribe would have
// given it, and the receipt of its cluster when that was torn down.
func (w *Workbench) RunEvents(_ context.Context, run string) ([]event.Event, error) {
	r, err := w.db.Run(run)
	if err != nil {
		return nil, w.names().UnknownRun(run, err)
	}
	rows, err := w.db.RunEvents(run, 0, 0)
	if err != nil {
		return nil, err
	}
	nodes := 0 // unknown: there are no samples to show
	if _, data, err := w.runRecord(run); err == nil {
		nodes = data.Nodes
	}
	s := &Subscription{w: w, cluster: r.Cluster, life: r.Life, pinned: true, closed: make(chan struct{})}
	var events []event.Event
	for _, e := range told.All(rows) {
		if _, ended := e.Body.(event.RunEnded); ended {
			events = append(append(events, s.readRun()...), samples.OfRun(w.db, r, nodes)...)
		}
		events = append(events, e)
		if started, ok := e.Body.(event.RunStarted); ok {
			s.enterRun(run, started)
		}
	}
	events = append(events, s.readRun()...)
	receipt, err := w.lastReceipt(r.Life)
	return append(events, receipt...), err
}

// lastReceipt is the event of what the last teardown of a life came to; none
// where there was no teardown.
func (w *Workbench) lastReceipt(life int64) (last []event.Event, err error) {
	rows, err := w.db.SinceLife(life, 0, 0)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(e store.Event) bool { return e.Name != (event.ReceiptMade{}).EventName() })
	return told.All(rows[max(len(rows)-1, 0):]), nil
}

// Waiting returns the events that wait now, without waiting for more.
func (s *Subscription) Waiting() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read()
}
