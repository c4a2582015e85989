package follow

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// A person may add an expression to a run that goes on, or is over. Whoever
// adds it reads the whole log by it at once; whoever watches the run, in this
// process or another, finds the event and reads on from there. Both read the
// same bytes, so their points have the same numbers, and the store keeps one of
// each. An added expression has a reader of its own: in the run's reader it
// would take numbers away from series that are there already.

// ReadBy stores what an expression finds in a log that is stored already, and
// returns how many values that is.
func ReadBy(ctx context.Context, db *store.Store, run string, u metrics.UserMetric, log io.Reader) (values int, err error) {
	e, buf := newExpression(u), make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := log.Read(buf)
		points := e.feed(e.read, buf[:n], time.Time{})
		values += len(points)
		if stored := db.AddPoints(run, Rows(points)); stored != nil {
			return values, stored
		}
		if err == io.EOF {
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
func (t *Watch) takeExpressions() error {
	events, last, err := t.owner.Events(t.taken)
	if err != nil {
		return err
	}
	t.taken = max(t.taken, last)
	for _, e := range events {
		added, is := e.Body.(event.MetricAdded)
		if !is {
			continue
		}
		e := newExpression(metrics.UserMetric{Name: added.Name, Regex: added.Regex})
		err := t.logs[t.chartRank()].replay(func(p []byte) error {
			return t.owner.Store.AddPoints(t.run.ID, Rows(e.feed(e.read, p, time.Time{})))
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
func (t *Watch) feedAdded(off int64, p []byte) {
	for _, e := range t.added {
		if off > e.read {
			t.catchUp(e, off)
		}
		t.points = append(t.points, e.feed(off, p, now())...)
	}
}

// catchUp reads what was stored between the replay and the moment at which the
// expression was heard of.
func (t *Watch) catchUp(e *expression, to int64) {
	buf := make([]byte, 64<<10)
	for e.read < to {
		n, err := t.logs[t.chartRank()].f.ReadAt(buf[:min(int64(len(buf)), to-e.read)], e.read)
		t.points = append(t.points, e.feed(e.read, buf[:n], now())...)
		if err != nil || n == 0 {
			return
		}
	}
}
