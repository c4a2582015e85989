// Package reading is one reader's place in what is told of a cluster: its events, and
// what its runs print and measure, as the store has them.
package reading

import (
	"context"
	"os"
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

// GatherFor is how long after it was given events a reader gets no more: what comes
// first comes at once, and a flood is read fifty times a second, not with each piece
// that a node sends.
const GatherFor = 20 * time.Millisecond

// samplesBack is how much telemetry a new reader gets: two minutes of four
// nodes at one sample a second, enough to fill the small charts.
const samplesBack = 480

// Subscription is one reader's place in a cluster's stream of events. It holds
// no queue: what the reader has not seen yet waits in the store and in the
// stored logs, so a slow reader costs nothing and loses nothing, and a screen
// opened later, or in another process, gets the same stream.
type Subscription struct {
	of      Source
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
	progress          event.ProgressChanged
	blind             bool      // it wants no samples
	given             time.Time // when events were last returned
	looked            time.Time // when it last noted that it wants some
	gaps              samples.Gaps
}

// Source is where a reader reads.
type Source struct {
	Context context.Context // of whoever lets it read; ends every wait
	Dir     string          // where readers note that they want telemetry
	Store   *store.Store
	History *history.History
	// News gives a channel that is closed when this process writes something.
	News func() <-chan struct{}
	// Log is the file of the log of a rank of a run here.
	Log func(run string, rank int) string
	// Progress is how far a run is.
	Progress func(run string) event.ProgressChanged
}

// WithoutSamples makes a subscription that leaves telemetry out: who does not
// show it need not have the nodes asked for it each second.
func (s *Subscription) WithoutSamples() *Subscription {
	s.blind = true
	return s
}

// Subscribe opens the stream of a cluster: first all that happened in its
// present life, then what happens. The cluster need not exist yet.
func (of Source) Subscribe(cluster string) *Subscription {
	return &Subscription{of: of, cluster: cluster, closed: make(chan struct{}), gaps: samples.Gaps{}}
}

// FromNow leaves out what has happened already in the cluster's present life.
func (s *Subscription) FromNow() *Subscription {
	c, err := s.of.Store.Cluster(s.cluster)
	if err != nil {
		return s // there is nothing to skip
	}
	s.life = c.ID
	if rows, err := s.of.Store.SinceLife(c.ID, 0, 0); err == nil && len(rows) > 0 {
		s.seq = rows[len(rows)-1].Seq
	}
	s.sample, _ = s.of.Store.LastSample(c.ID, 0)
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
	if !s.wait(ctx, GatherFor-time.Since(s.given), nil) {
		return nil
	}
	for {
		news := s.of.News()
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
	case <-s.of.Context.Done():
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
	rows, err := s.of.Store.SinceLife(s.life, s.seq, 0)
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
	c, err := s.of.Store.Cluster(s.cluster)
	if err != nil || c.ID == s.life {
		return
	}
	s.life, s.seq, s.run, s.gaps = c.ID, 0, "", samples.Gaps{}
	s.sample, _ = s.of.Store.LastSample(s.life, samplesBack)
}

func (s *Subscription) enterRun(run string, started event.RunStarted) {
	s.run, s.ranks = run, nil
	for _, r := range started.Ranks {
		s.ranks = append(s.ranks, r.Rank)
	}
	for n := range started.Nodes {
		s.ranks = append(s.ranks, event.LauncherLog(n))
	}
	s.sizes, s.points, s.progress = map[int]int64{}, map[string]history.Shown{}, event.ProgressChanged{}
}

// readRun returns what the present run has printed and measured meanwhile.
func (s *Subscription) readRun() []event.Event {
	if s.run == "" {
		return nil
	}
	var events []event.Event
	add := func(b event.Body) {
		events = append(events, event.Event{Time: time.Now().UTC().Round(0), Cluster: s.cluster, Run: s.run, Body: b})
	}
	for _, rank := range s.ranks {
		info, err := os.Stat(s.of.Log(s.run, rank))
		if err == nil && info.Size() != s.sizes[rank] {
			s.sizes[rank] = info.Size()
			add(event.LogGrew{Rank: rank, Size: info.Size()})
		}
	}
	if points, err := s.of.History.NewPoints(s.run, s.points); err == nil && len(points) > 0 {
		add(event.PointsAdded{Points: points})
	}
	if p := s.of.Progress(s.run); p != s.progress {
		s.progress = p
		add(p)
	}
	return events
}

func (s *Subscription) readSamples() []event.Event {
	if s.blind {
		return nil
	}
	samples.Looking(s.of.Dir, s.life, &s.looked)
	rows, last, err := s.of.Store.SamplesAfter(s.life, s.sample)
	if err != nil {
		return nil
	}
	s.sample = last
	return s.gaps.Events(rows, s.cluster, s.run)
}

// Waiting returns the events that wait now, without waiting for more.
func (s *Subscription) Waiting() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read()
}

// OfRun returns everything of a run of the past, as Subscribe would have given it. nodes
// is how many it had; 0: nobody knows, and there are no samples to show.
func (of Source) OfRun(r store.Run, nodes int) ([]event.Event, error) {
	rows, err := of.Store.RunEvents(r.ID, 0, 0)
	if err != nil {
		return nil, err
	}
	s := &Subscription{of: of, cluster: r.Cluster, life: r.Life, pinned: true, closed: make(chan struct{})}
	var events []event.Event
	for _, e := range told.All(rows) {
		if _, ended := e.Body.(event.RunEnded); ended {
			events = append(append(events, s.readRun()...), samples.OfRun(of.Store, r, nodes)...)
		}
		events = append(events, e)
		if started, ok := e.Body.(event.RunStarted); ok {
			s.enterRun(r.ID, started)
		}
	}
	return append(events, s.readRun()...), nil
}
