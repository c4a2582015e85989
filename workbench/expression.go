package workbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/workbench/event"
)

// A person may add an expression to a run that goes on, or is over. Whoever
// adds it reads the whole log by it at once; whoever watches the run, in this
// process or another, finds the event and reads on from there. Both read the
// same bytes, so their points have the same numbers, and the store keeps one of
// each. An added expression has a reader of its own: in the run's reader it
// would take numbers away from series that are there already.

// AddMetric reads the whole output of a run by one more expression, and all
// that it still prints. It returns how many values were found so far.
func (w *Workbench) AddMetric(ctx context.Context, run, name, regex string) (values int, err error) {
	what := fmt.Sprintf("add the metric %s to run %s", name, run)
	u := metrics.UserMetric{Name: name, Regex: regex}
	if err := u.Check(); err != nil {
		return 0, &event.Fault{What: what, Node: -1, Why: err.Error()}
	}
	r, data, err := w.runRecord(run)
	if err != nil {
		return 0, err
	}
	there, err := w.db.Series(run)
	if err != nil {
		return 0, err
	}
	for _, series := range there {
		if series.Name == name {
			return 0, &event.Fault{What: what, Node: -1, Why: "the run has a series of that name already", Next: "give it another name"}
		}
	}
	s := scope{cluster: r.Cluster, life: r.Life, run: run}
	if err := w.publish(s, event.MetricAdded{Name: name, Regex: regex}); err != nil {
		return 0, err
	}
	if len(data.Ranks) == 0 {
		return 0, nil
	}
	f, err := os.Open(w.logPath(run, data.Ranks[0].Rank))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // nothing was printed yet
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return w.readBy(ctx, run, newExpression(u), f)
}

// readBy stores what an expression finds in a log.
func (w *Workbench) readBy(ctx context.Context, run string, e *expression, log io.Reader) (values int, err error) {
	buf := make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := log.Read(buf)
		points := e.feed(e.read, buf[:n], time.Time{})
		values += len(points)
		if stored := w.db.AddPoints(run, toRows(points)); stored != nil {
			return values, stored
		}
		if err == io.EOF {
			w.changed()
			return values, nil
		}
		if err != nil {
			return values, fmt.Errorf("read the stored log: %w", err)
		}
	}
	return values, ctx.Err()
}

// expression is one that was added, and how far the log was read by it.
type expression struct {
	name   string
	reader *metrics.Reader
	read   int64
}

func newExpression(u metrics.UserMetric) *expression {
	return &expression{name: u.Name, reader: metrics.NewReader([]metrics.UserMetric{u})}
}

// feed reads bytes that begin at an offset; those that were read are skipped.
func (e *expression) feed(off int64, p []byte, at time.Time) []metrics.Point {
	if skip := e.read - off; skip > 0 {
		p = p[min(skip, int64(len(p))):]
	}
	e.read += int64(len(p))
	return e.only(e.reader.Feed(p, at))
}

// only leaves the points of the expression itself: what else its reader found
// is there already.
func (e *expression) only(points []metrics.Point) []metrics.Point {
	return slices.DeleteFunc(points, func(p metrics.Point) bool { return p.Name != e.name })
}

// takeExpressions begins to read by the expressions that were added since it
// was last called.
func (t *watch) takeExpressions() error {
	rows, err := t.w.db.RunEvents(t.run.ID, t.taken, 0)
	if err != nil {
		return err
	}
	for _, row := range rows {
		t.taken = row.Seq
		stored, ok := decode(row)
		added, is := stored.Body.(event.MetricAdded)
		if !ok || !is {
			continue
		}
		e := newExpression(metrics.UserMetric{Name: added.Name, Regex: added.Regex})
		err := t.logs[t.chartRank()].replay(func(p []byte) error {
			return t.w.db.AddPoints(t.run.ID, toRows(e.feed(e.read, p, time.Time{})))
		})
		if err != nil {
			return err
		}
		t.mu.Lock()
		// What was stored meanwhile was not fed to it, and comes with the
		// next bytes: none are skipped.
		t.added = append(t.added, e)
		t.mu.Unlock()
	}
	return nil
}

// feedAdded reads bytes of the log by the expressions that were added. The
// caller holds the lock.
func (t *watch) feedAdded(off int64, p []byte) {
	for _, e := range t.added {
		if off > e.read {
			t.catchUp(e, off)
		}
		t.points = append(t.points, e.feed(off, p, now())...)
	}
}

// catchUp reads what was stored between the replay and the moment at which the
// expression was heard of.
func (t *watch) catchUp(e *expression, to int64) {
	buf := make([]byte, 64<<10)
	for e.read < to {
		n, err := t.logs[t.chartRank()].f.ReadAt(buf[:min(int64(len(buf)), to-e.read)], e.read)
		t.points = append(t.points, e.feed(e.read, buf[:n], now())...)
		if err != nil || n == 0 {
			return
		}
	}
}
