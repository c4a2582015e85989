package store

import (
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"
)

// Point is one value of one series of a run.
type Point struct {
	Name string
	// Source is where it was read, Format how; empty means the output of a
	// rank: Stdout and "log".
	Source, Format string
	Ordinal        int64 // counts the points of the series from 0
	Step           *int64
	Epoch          *float64
	Time           time.Time
	Value          float64 // may be NaN or infinite: a loss that diverged is news
}

// Stdout is the source of what a rank printed.
const Stdout = "stdout"

// seriesKey is what tells the series of a run apart.
type seriesKey struct{ name, source string }

func (p Point) key() seriesKey {
	if p.Source == "" {
		return seriesKey{p.Name, Stdout}
	}
	return seriesKey{p.Name, p.Source}
}

// pointsPerInsert is how many points go into one statement; more gains nothing
// and SQLite allows 32,766 variables.
const pointsPerInsert = 200

// AddPoints adds points to the series of a run. Points that are already there
// (by name, source and ordinal) are left as they are, so adding a log's points again
// after a crash is harmless.
func (s *Store) AddPoints(run string, points []Point) error {
	if len(points) == 0 {
		return nil
	}
	return s.write("add points to run "+run, func(tx *sql.Tx) error {
		ids, err := seriesIDs(tx, run, points)
		if err != nil {
			return err
		}
		for len(points) > 0 {
			n := min(len(points), pointsPerInsert)
			if err := insertPoints(tx, ids, points[:n]); err != nil {
				return err
			}
			points = points[n:]
		}
		return nil
	})
}

// seriesIDs finds or makes the series that the points belong to.
func seriesIDs(tx *sql.Tx, run string, points []Point) (map[seriesKey]int64, error) {
	ids := map[seriesKey]int64{}
	for _, p := range points {
		key := p.key()
		if _, ok := ids[key]; ok {
			continue
		}
		format := p.Format
		if format == "" {
			format = "log"
		}
		_, err := tx.Exec("INSERT INTO series (run, name, source, format) VALUES (?,?,?,?) ON CONFLICT DO NOTHING",
			run, key.name, key.source, format)
		if isOrphan(err) {
			return nil, fmt.Errorf("run %q: %w", run, ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		var id int64
		if err := tx.QueryRow("SELECT id FROM series WHERE run=? AND name=? AND source=?", run, key.name, key.source).Scan(&id); err != nil {
			return nil, err
		}
		ids[key] = id
	}
	return ids, nil
}

func insertPoints(tx *sql.Tx, ids map[seriesKey]int64, points []Point) error {
	args := make([]any, 0, 6*len(points))
	for _, p := range points {
		args = append(args, ids[p.key()], p.Ordinal, p.Step, p.Epoch, nanos(p.Time), real(p.Value))
	}
	rows := strings.Repeat(",(?,?,?,?,?,?)", len(points))[1:]
	_, err := tx.Exec("INSERT OR IGNORE INTO points (series, ordinal, step, epoch, time, value) VALUES "+rows, args...)
	return err
}

// real is how a value is stored: SQLite has no NaN, NULL stands for it.
func real(v float64) any {
	if math.IsNaN(v) {
		return nil
	}
	return v
}

// scanPoint reads a point of a series; the series tells the rest.
func scanPoint(r row) (p Point, err error) {
	var value sql.NullFloat64
	err = r.Scan(&p.Ordinal, &p.Step, &p.Epoch, (*stamp)(&p.Time), &value)
	p.Value = unreal(value)
	return p, err
}
