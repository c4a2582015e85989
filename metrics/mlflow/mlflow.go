// Package mlflow reads the database that MLflow keeps its runs in by default,
// mlflow.db.
package mlflow

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
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
// each value of theirs, in the order in which they were logged. The columns are those
// of https://github.com/mlflow/mlflow/blob/master/mlflow/store/tracking/dbmodels/models.py.
func Read(ctx context.Context, db *sql.Conn, metric func(run *Run, v Value)) ([]*Run, error) {
	var all []*Run
	byID := map[string]*Run{}
	tables, err := tablesOf(ctx, db)
	if err != nil || !tables["runs"] || !tables["metrics"] {
		return nil, cmp.Or(err, ErrNone)
	}
	experiments := map[int64]string{}
	if tables["experiments"] {
		err = each(ctx, db, fmt.Sprintf("SELECT CAST(experiment_id AS INTEGER), CAST(name AS TEXT) FROM experiments LIMIT %d", mostRuns),
			func(row func(...any) error) error {
				var id sql.NullInt64
				var name sql.NullString
				if err := row(&id, &name); err != nil {
					return err
				}
				experiments[id.Int64] = name.String
				return nil
			})
	}
	if err == nil {
		err = each(ctx, db, fmt.Sprintf(`SELECT CAST(run_uuid AS TEXT), CAST(name AS TEXT), CAST(status AS TEXT), CAST(experiment_id AS INTEGER)
			FROM runs WHERE lifecycle_stage IS NOT 'deleted' ORDER BY start_time, rowid LIMIT %d`, mostRuns),
			func(row func(...any) error) error {
				var id, name, status sql.NullString
				var experiment sql.NullInt64
				if err := row(&id, &name, &status, &experiment); err != nil {
					return err
				}
				run := &Run{ID: id.String, Name: name.String, Status: status.String, Experiment: experiments[experiment.Int64], Params: map[string]string{}}
				all, byID[run.ID] = append(all, run), run
				return nil
			})
	}
	if err == nil && tables["params"] {
		err = each(ctx, db, fmt.Sprintf("SELECT CAST(run_uuid AS TEXT), CAST(key AS TEXT), CAST(value AS TEXT) FROM params WHERE length(key) <= %d", longest),
			func(row func(...any) error) error {
				var id, key, value sql.NullString
				if err := row(&id, &key, &value); err != nil {
					return err
				}
				if run := byID[id.String]; run != nil && len(run.Params) < mostParams {
					run.Params[key.String] = value.String
				}
				return nil
			})
	}
	if err == nil {
		err = each(ctx, db, fmt.Sprintf(`SELECT CAST(run_uuid AS TEXT), CAST(key AS TEXT), CAST(value AS REAL), CAST(step AS INTEGER), CAST(timestamp AS INTEGER), CAST(is_nan AS INTEGER)
			FROM metrics WHERE typeof(value) IN ('real', 'integer') AND length(key) <= %d ORDER BY rowid`, longest),
			func(row func(...any) error) error {
				var id, key sql.NullString
				var value sql.NullFloat64
				var step, at, nan sql.NullInt64
				if err := row(&id, &key, &value, &step, &at, &nan); err != nil {
					return err
				}
				if run := byID[id.String]; run != nil {
					metric(run, Value{Key: key.String, Number: number(value.Float64, nan.Int64 != 0), Step: step.Int64, Time: time.UnixMilli(at.Int64)})
				}
				return nil
			})
	}
	if err != nil {
		return all, fmt.Errorf("read the database of MLflow: %w", err)
	}
	return all, nil
}

// tablesOf are the names of the real tables: a view, or a virtual table, is a query
// that whoever made the file wrote.
func tablesOf(ctx context.Context, db *sql.Conn) (map[string]bool, error) {
	tables := map[string]bool{}
	return tables, each(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name IN ('experiments', 'runs', 'params', 'metrics')",
		func(row func(...any) error) error {
			var name string
			err := row(&name)
			tables[name] = true
			return err
		})
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

// each calls yield with each row of what a query finds.
func each(ctx context.Context, db *sql.Conn, query string, yield func(row func(...any) error) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := yield(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
