package store

import (
	"database/sql"
	"errors"
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
	By             By      // by what its line placed it
}

// By is by what the line of a point placed it.
type By uint8

// What places a point.
const (
	Untold  By = iota // it was not kept: its step, else its epoch
	Ordinal           // nothing
	ByEpoch
	ByInner // the step of its epoch, counted through the run
	ByStep
)

// place is by what a point is ordered among those of the same kind; Ordinal has
// no place.
func (p Point) place() (float64, By) {
	by := p.By
	if by == Untold {
		switch {
		case p.Step != nil:
			by = ByStep
		case p.Epoch != nil:
			by = ByEpoch
		}
	}
	switch {
	case by >= ByInner && p.Step != nil:
		return float64(*p.Step), by
	case by == ByEpoch && p.Epoch != nil:
		return *p.Epoch, by
	}
	return 0, Ordinal
}

// fallsBehind reports whether a point has a place before that of another.
func (p Point) fallsBehind(last Point) bool {
	x, by := p.place()
	before, of := last.place()
	return by == of && by != Ordinal && x < before
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
		if err := noteFalls(tx, ids, points); err != nil {
			return err
		}
		// A statement of so many values takes longer to parse than to carry out.
		size := min(len(points), pointsPerInsert)
		insert, err := tx.Prepare(insertion(size))
		if err != nil {
			return err
		}
		defer insert.Close()
		for len(points) >= size {
			if _, err := insert.Exec(valuesOf(ids, points[:size])...); err != nil {
				return err
			}
			points = points[size:]
		}
		if len(points) > 0 {
			_, err = tx.Exec(insertion(len(points)), valuesOf(ids, points)...)
		}
		return err
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

// noteFalls marks the series in which a point falls back behind the one before.
func noteFalls(tx *sql.Tx, ids map[seriesKey]int64, points []Point) error {
	last := map[seriesKey]Point{}
	fell := map[seriesKey]bool{}
	for _, p := range points {
		key := p.key()
		was, ok := last[key]
		if !ok {
			var err error
			if was, err = lastOf(tx, ids[key]); err != nil {
				return err
			}
			last[key] = was
		}
		if p.Ordinal <= was.Ordinal {
			continue
		}
		if last[key] = p; p.fallsBehind(was) && !fell[key] {
			fell[key] = true
			if _, err := tx.Exec("UPDATE series SET falls=1 WHERE id=?", ids[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastOf is the last point of a series; one with the ordinal -1 where it has none.
func lastOf(tx *sql.Tx, id int64) (Point, error) {
	p, err := scanPoint(tx.QueryRow("SELECT ordinal, step, epoch, time, value, x FROM points WHERE series=? ORDER BY ordinal DESC LIMIT 1", id))
	if errors.Is(err, sql.ErrNoRows) {
		return Point{Ordinal: -1, By: Ordinal}, nil
	}
	return p, err
}

// insertion is the statement that takes n points.
func insertion(n int) string {
	return "INSERT OR IGNORE INTO points (series, ordinal, step, epoch, time, value, x) VALUES " + strings.Repeat(",(?,?,?,?,?,?,?)", n)[1:]
}

// valuesOf are what it is given.
func valuesOf(ids map[seriesKey]int64, points []Point) []any {
	args := make([]any, 0, 7*len(points))
	for _, p := range points {
		args = append(args, ids[p.key()], p.Ordinal, p.Step, p.Epoch, nanos(p.Time), real(p.Value), told(p.By))
	}
	return args
}

// real is how a value is stored: SQLite has no NaN, NULL stands for it.
func real(v float64) any {
	if math.IsNaN(v) {
		return nil
	}
	return v
}

// told is by what a point was placed, as it is stored: NULL where that is not known.
func told(by By) any {
	if by == Untold {
		return nil
	}
	return int64(by)
}

// scanPoint reads a point of a series; the series tells the rest.
func scanPoint(r row) (p Point, err error) {
	var value sql.NullFloat64
	var by sql.NullInt64
	err = r.Scan(&p.Ordinal, &p.Step, &p.Epoch, (*stamp)(&p.Time), &value, &by)
	p.By = By(by.Int64)
	p.Value = unreal(value)
	return p, err
}
