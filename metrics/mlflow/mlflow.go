// Package mlflow reads the database that MLflow keeps its runs in by default,
// mlflow.db.
package mlflow

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dlwb/dlwb/metrics/sqlite"
)

// Bounds of what is kept of a database.
const (
	mostRuns   = 1000
	mostParams = 500 // of a run
	longest    = 250 // what MLflow allows for a key
)

// Run is a run of MLflow.
type Run struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Experiment string            `json:"experiment"`
	Status     string            `json:"status"`
	Params     map[string]string `json:"params"`
}

// Value is one value of a metric.
type Value struct {
	Key    string
	Step   int64
	Number float64
	Time   time.Time
}

// ErrNone says that a database is not MLflow's.
var ErrNone = errors.New("it is a database of SQLite, but not MLflow's")

// Read reads the runs that are not deleted, the oldest first, and calls metric with
// each value of theirs.
func Read(db *sqlite.DB, metric func(run *Run, v Value)) ([]*Run, error) {
	if db.Table("runs") == nil || db.Table("metrics") == nil {
		return nil, ErrNone
	}
	experiments := map[int64]string{}
	err := each(db, "experiments", func(v []sqlite.Value) {
		if len(experiments) < mostRuns {
			experiments[v[0].Int] = v[1].Text
		}
	}, "experiment_id", "name")
	var all []*Run
	byID := map[string]*Run{}
	if err == nil {
		err = each(db, "runs", func(v []sqlite.Value) {
			if len(all) < mostRuns && v[3].Text != "deleted" {
				run := &Run{ID: v[0].Text, Name: v[1].Text, Status: v[2].Text, Experiment: experiments[v[4].Int], Params: map[string]string{}}
				all, byID[run.ID] = append(all, run), run
			}
		}, "run_uuid", "name", "status", "lifecycle_stage", "experiment_id")
	}
	if err == nil {
		err = each(db, "params", func(v []sqlite.Value) {
			if run := byID[v[0].Text]; run != nil && len(run.Params) < mostParams && len(v[1].Text) <= longest {
				run.Params[v[1].Text] = v[2].Text
			}
		}, "run_uuid", "key", "value")
	}
	if err == nil {
		err = each(db, "metrics", func(v []sqlite.Value) {
			n, ok := v[2].Number()
			if run := byID[v[0].Text]; run != nil && ok && len(v[1].Text) <= longest {
				metric(run, Value{Key: v[1].Text, Number: number(n, v[5].Int != 0), Step: v[3].Int, Time: time.UnixMilli(v[4].Int)})
			}
		}, "run_uuid", "key", "value", "step", "timestamp", "is_nan")
	}
	return all, err
}

// number is what was logged: the database has no infinity, and zero for what is no
// number.
func number(v float64, nan bool) float64 {
	switch {
	case nan:
		return math.NaN()
	case math.Abs(v) == math.MaxFloat64:
		return math.Copysign(math.Inf(1), v)
	}
	return v
}

// each yields some columns of each row of a table. One that is not there has none.
func each(db *sqlite.DB, table string, yield func([]sqlite.Value), columns ...string) error {
	t := db.Table(table)
	if t == nil {
		return nil
	}
	at, err := t.Index(columns...)
	if err != nil {
		return fmt.Errorf("read the table %s of MLflow: %w", table, err)
	}
	some := make([]sqlite.Value, len(columns))
	err = db.Rows(t, func(row []sqlite.Value) error {
		for i, k := range at {
			some[i] = row[k]
		}
		yield(some)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the table %s of MLflow: %w", table, err)
	}
	return nil
}
