package follow

import (
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// pointsAtOnce bounds the points that gather before they are stored.
const pointsAtOnce = 20_000

// now is the time that records get: wall clock, UTC, without the monotonic part.
func now() time.Time { return time.Now().UTC().Round(0) }

// flushPoints writes the points that have gathered, and how far the run is.
func (t *Watch) flushPoints() error {
	if err := t.storePoints(); err != nil {
		return err
	}
	t.mu.Lock()
	p := t.reader.Progress()
	t.mu.Unlock()
	if p == t.run.Progress.Progress {
		return nil
	}
	t.run.Progress = event.ProgressChanged{Progress: p, ETA: t.left(p, now())}
	if err := t.owner.Progress(t.run.Progress, t.run.Pace); err != nil {
		return err
	}
	t.owner.Changed()
	return nil
}

// storePoints writes the points that have gathered. One at a time does: readers
// go on behind the last point they have, so none may be stored before an
// earlier one.
func (t *Watch) storePoints() error {
	t.storing.Lock()
	defer t.storing.Unlock()
	t.mu.Lock()
	points := t.points
	t.points = nil
	t.mu.Unlock()
	if len(points) == 0 {
		return nil
	}
	if err := t.owner.Store.AddPoints(t.run.ID, Rows(points)); err != nil {
		return err
	}
	t.owner.Changed()
	return nil
}

// lastPoints reads a last line that has no end.
func (t *Watch) lastPoints() error {
	t.mu.Lock()
	t.points = append(t.points, t.reader.End(now())...)
	for _, e := range t.added {
		t.catchUp(e, t.logs[t.chartRank()].size())
		t.points = append(t.points, e.only(e.reader.End(now()))...)
	}
	t.mu.Unlock()
	return t.flushPoints()
}

// Rows are points as the store keeps them.
func Rows(points []metrics.Point) []store.Point {
	rows := make([]store.Point, len(points))
	for i, p := range points {
		rows[i] = store.Point{Name: p.Name, Ordinal: p.Ordinal, Step: p.Step, Epoch: p.Epoch, Time: p.Time, Value: p.Value, By: store.Ordinal + store.By(p.X)}
	}
	return rows
}
