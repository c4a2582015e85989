package workbench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
)

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
	defer w.changed()
	return follow.ReadBy(ctx, w.db, run, u, f)
}
