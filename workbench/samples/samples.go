// Package samples keeps the telemetry of nodes in bounds and reads it back: it
// thins what has become old, shows what is missing as gaps, and notes that
// somebody looks.
package samples

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// How long samples are kept, and how many: those of the last minutes for the
// screen, fewer for the record of the run.
const (
	// ThinEvery is how often a Thinner is to be called.
	ThinEvery = time.Minute
	// SlowPace is the pace of samples while nobody looks; the record of a run
	// needs no more.
	SlowPace = 10 * time.Second

	fineFor      = 10 * time.Minute // as they came
	finer        = 10 * time.Second // then one in so much
	coarseAfter  = 2 * time.Hour
	coarser      = time.Minute
	samplesFor   = 90 * 24 * time.Hour
	thinBack     = 24 * time.Hour // what earlier dlwb may have left
	historyParts = 480            // samples of a node in the record of a run
)

// Thinner thins the samples of one life of a cluster.
type Thinner struct {
	db      *store.Store
	life    int64
	thinned time.Time
}

// NewThinner thins in a store.
func NewThinner(db *store.Store, life int64) *Thinner { return &Thinner{db: db, life: life} }

// Thin thins what has become older since the last time; the first time, also what
// an earlier process may have left. It is harmless to do again.
func (t *Thinner) Thin(at time.Time) {
	back := 2 * ThinEvery
	if t.thinned.IsZero() {
		back = thinBack
		if err := t.db.TrimSamples(at.Add(-samplesFor)); err != nil {
			slog.Debug("samples not trimmed", "error", err)
		}
	}
	t.thinned = at
	for _, step := range []struct{ after, every time.Duration }{{coarseAfter, coarser}, {fineFor, finer}} {
		// Whole parts, lest two be left of one that is thinned in halves.
		to := at.Add(-step.after).Truncate(step.every)
		if err := t.db.ThinSamples(t.life, to.Add(-back).Truncate(step.every), to, step.every); err != nil {
			slog.Debug("samples not thinned", "error", err)
		}
	}
}

// lookEvery bounds how often a reader notes that it looks at samples.
const lookEvery = 2 * time.Second

func looksPath(dir string, life int64) string {
	return filepath.Join(dir, "locks", fmt.Sprintf("life-%d.looks", life))
}

// Looking notes in the state directory that somebody reads the samples of a life
// of a cluster: whoever stores them, in this process or another, asks the nodes
// for more. Last is when the reader noted that before.
func Looking(dir string, life int64, last *time.Time) {
	if time.Since(*last) < lookEvery {
		return
	}
	*last = time.Now()
	at := last.UTC().Round(0)
	path := looksPath(dir, life)
	if os.Chtimes(path, at, at) != nil {
		_ = os.WriteFile(path, nil, 0o600)
	}
}

// Looks changes with each look at samples that is noted. It is compared and
// never subtracted, so that no clock has to be right.
func Looks(dir string, life int64) int64 {
	info, err := os.Stat(looksPath(dir, life))
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// gapOf is the sample that stands for those that are missing behind another:
// it says nothing, of as many GPUs.
func gapOf(s metrics.Sample) metrics.Sample {
	gap := metrics.Sample{Uptime: s.Uptime, Every: s.Every, Cores: s.Cores, Simulated: s.Simulated, GPUError: s.GPUError}
	for _, g := range s.GPUs {
		gap.GPUs = append(gap.GPUs, metrics.GPU{Index: g.Index, Name: g.Name})
	}
	return gap
}

// Gaps finds where samples of a live stream are missing.
type Gaps map[int]struct {
	at     time.Time
	sample metrics.Sample
}

// Before gives the sample of a gap in front of one that has come; false when
// there is none.
func (g Gaps) Before(node int, at time.Time, s metrics.Sample) (gap metrics.Sample, when time.Time, found bool) {
	last, ok := g[node]
	g[node] = struct {
		at     time.Time
		sample metrics.Sample
	}{at, s}
	every := time.Duration(max(s.Every, last.sample.Every, 1) * float64(time.Second))
	if !ok || at.Sub(last.at) <= every*5/2+time.Second {
		return gap, when, false
	}
	return gapOf(last.sample), last.at.Add(every), true
}

// Events are the samples that have come, each behind the gap in front of it.
func (g Gaps) Events(rows []store.Sample, cluster, run string) (events []event.Event) {
	for _, r := range rows {
		b := event.Sampled{Node: r.Node}
		if json.Unmarshal(r.Body, &b.Sample) != nil {
			continue
		}
		if gap, at, found := g.Before(r.Node, r.Time, b.Sample); found {
			events = append(events, event.Event{Time: at, Cluster: cluster, Run: run, Body: event.Sampled{Node: r.Node, Sample: gap}})
		}
		events = append(events, event.Event{Time: r.Time, Cluster: cluster, Run: run, Body: b})
	}
	return events
}

// record makes the record of a run's telemetry out of the samples that are
// left of it: for each node one in each of equal parts of the time, and one that
// says nothing where there is none. They are in the order of time.
func record(samples []store.Sample, nodes int, from, to time.Time) []event.Event {
	part := max(to.Sub(from)/historyParts, coarsest(samples))
	parts := max(1, int(to.Sub(from)/part))
	if len(samples) == 0 || to.Before(from) {
		return nil
	}
	table := make([]*event.Sampled, parts*nodes)
	times := make([]time.Time, parts*nodes)
	last := make([]*event.Sampled, nodes)
	for _, s := range samples {
		i := min(int(s.Time.Sub(from)/part), parts-1)
		b := &event.Sampled{Node: s.Node}
		if i < 0 || s.Node < 0 || s.Node >= nodes || json.Unmarshal(s.Body, &b.Sample) != nil {
			continue
		}
		table[i*nodes+s.Node], times[i*nodes+s.Node] = b, s.Time
	}
	var events []event.Event
	for i, b := range table {
		node := i % nodes
		switch {
		case b != nil:
			last[node] = b
		case last[node] != nil:
			b = &event.Sampled{Node: node, Sample: gapOf(last[node].Sample)}
			times[i] = from.Add(time.Duration(i/nodes) * part)
		default:
			continue
		}
		events = append(events, event.Event{Time: times[i], Body: *b})
	}
	return events
}

// coarsest is how far apart samples may be with none missing.
func coarsest(samples []store.Sample) time.Duration {
	if len(samples) == 0 {
		return coarser
	}
	switch age := time.Since(samples[0].Time); {
	case age > coarseAfter:
		return coarser
	case age > fineFor:
		return finer
	}
	most := time.Second
	for _, s := range samples {
		var pace struct {
			Every float64 `json:"every_s"`
		}
		if json.Unmarshal(s.Body, &pace) == nil && pace.Every > 0 && pace.Every <= SlowPace.Seconds() {
			most = max(most, time.Duration(pace.Every*float64(time.Second)))
		}
	}
	return most + most/2 // they do not come like clockwork
}

// OfRun is the telemetry of a run that has ended, on so many nodes.
func OfRun(db *store.Store, r store.Run, nodes int) []event.Event {
	if r.EndedAt == nil || nodes <= 0 {
		return nil
	}
	samples, err := db.LifeSamples(r.Life, r.StartedAt, *r.EndedAt)
	if err != nil {
		return nil
	}
	events := record(samples, nodes, r.StartedAt, *r.EndedAt)
	for i := range events {
		events[i].Cluster, events[i].Run = r.Cluster, r.ID
	}
	return events
}
