package workbench

import (
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/workbench/event"
)

// pointsAtOnce bounds the points that gather before they are stored.
const pointsAtOnce = 20_000

func userMetrics(pairs [][2]string) []metrics.UserMetric {
	var user []metrics.UserMetric
	for _, p := range pairs {
		user = append(user, metrics.UserMetric{Name: p[0], Regex: p[1]})
	}
	return user
}

// flushPoints writes the points that have gathered, and how far the run is.
func (t *watch) flushPoints() error {
	if err := t.storePoints(); err != nil {
		return err
	}
	t.mu.Lock()
	p := t.reader.Progress()
	t.mu.Unlock()
	if p == t.data.Progress.Progress {
		return nil
	}
	t.data.Progress = event.ProgressChanged{Progress: p, ETA: t.left(p, now())}
	if err := t.w.putRun(t.run, t.data); err != nil {
		return err
	}
	t.w.changed()
	return nil
}

// storePoints writes the points that have gathered. One at a time does: readers
// go on behind the last point they have, so none may be stored before an
// earlier one.
func (t *watch) storePoints() error {
	t.storing.Lock()
	defer t.storing.Unlock()
	t.mu.Lock()
	points := t.points
	t.points = nil
	t.mu.Unlock()
	if len(points) == 0 {
		return nil
	}
	if err := t.w.db.AddPoints(t.run.ID, toRows(points)); err != nil {
		return err
	}
	t.w.changed()
	return nil
}

// lastPoints reads a last line that has no end.
func (t *watch) lastPoints() error {
	t.mu.Lock()
	t.points = append(t.points, t.reader.End(now())...)
	for _, e := range t.added {
		t.catchUp(e, t.logs[t.chartRank()].size())
		t.points = append(t.points, e.only(e.reader.End(now()))...)
	}
	t.mu.Unlock()
	return t.flushPoints()
}
