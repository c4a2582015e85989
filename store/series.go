package store

import (
	"database/sql"
	"errors"
	"math"
)

// Series is one series of a run from one source, without its points.
type Series struct {
	ID             int64
	Run, Name      string
	Source, Format string
	// Edition grows when points were taken back: who has read some begins
	// anew.
	Edition int64
	// Falls is true when a point fell back behind the one before it: what is
	// shown is then told by all of its points, and not by its ends.
	Falls bool
	Count int64 // of its points; their ordinals are 0 … Count-1
	// First and Last are its ends; without points they say nothing.
	First, Last Point
}

const seriesQuery = `SELECT s.id, s.run, s.name, s.source, s.format, s.edition, s.falls,
	a.step, a.epoch, a.time, a.value, b.ordinal, b.step, b.epoch, b.time, b.value, a.x, b.x
	FROM series s
	LEFT JOIN points a ON a.series=s.id AND a.ordinal=0
	LEFT JOIN points b ON b.series=s.id AND b.ordinal=(SELECT max(ordinal) FROM points WHERE series=s.id) `

func scanSeries(r row) (v Series, err error) {
	var firstAt, lastAt, last sql.NullInt64
	var first, final sql.NullFloat64
	var firstBy, lastBy sql.NullInt64
	err = r.Scan(&v.ID, &v.Run, &v.Name, &v.Source, &v.Format, &v.Edition, &v.Falls,
		&v.First.Step, &v.First.Epoch, &firstAt, &first, &last, &v.Last.Step, &v.Last.Epoch, &lastAt, &final, &firstBy, &lastBy)
	if err != nil || !last.Valid {
		return v, err
	}
	v.Count = last.Int64 + 1
	v.Last.Ordinal = last.Int64
	v.First.By, v.Last.By = By(firstBy.Int64), By(lastBy.Int64)
	v.First.Time, v.Last.Time = fromNanos(firstAt.Int64), fromNanos(lastAt.Int64)
	v.First.Value, v.Last.Value = unreal(first), unreal(final)
	v.own(&v.First)
	v.own(&v.Last)
	return v, nil
}

func (v Series) own(p *Point) { p.Name, p.Source, p.Format = v.Name, v.Source, v.Format }

// Series lists the series of a run with at least one point, from every source,
// in the order in which they first appeared.
func (s *Store) Series(run string) ([]Series, error) {
	all, err := query(s, "list the series of run "+run, scanSeries, seriesQuery+"WHERE s.run=? ORDER BY s.id", run)
	kept := all[:0]
	for _, v := range all {
		if v.Count > 0 {
			kept = append(kept, v)
		}
	}
	return kept, err
}

// SeriesPoints returns the points of a series from an ordinal on, at most limit
// of them (0: all).
func (s *Store) SeriesPoints(v Series, from int64, limit int) ([]Point, error) {
	points, err := query(s, "read series "+v.Name+" of run "+v.Run, scanPoint,
		"SELECT ordinal, step, epoch, time, value, x FROM points WHERE series=? AND ordinal>=? ORDER BY ordinal LIMIT ?",
		v.ID, from, count(limit))
	for i := range points {
		v.own(&points[i])
	}
	return points, err
}

// Extremes are the least and the greatest value of a series, infinities and
// what is no number aside; false when it has no other.
func (s *Store) Extremes(v Series) (least, greatest Point, ok bool, err error) {
	return s.ExtremesFrom(v, 0)
}

// ExtremesFrom is Extremes of the points from an ordinal on.
func (s *Store) ExtremesFrom(v Series, from int64) (least, greatest Point, ok bool, err error) {
	find := func(order string) (Point, error) {
		return one(s, "read series "+v.Name+" of run "+v.Run, scanPoint,
			"SELECT ordinal, step, epoch, time, value, x FROM points WHERE series=? AND ordinal>=? AND value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 ORDER BY value "+order+", ordinal LIMIT 1", v.ID, from)
	}
	if least, err = find("ASC"); err == nil {
		greatest, err = find("DESC")
	}
	if errors.Is(err, ErrNotFound) {
		return least, greatest, false, nil
	}
	v.own(&least)
	v.own(&greatest)
	return least, greatest, err == nil, err
}

// Points returns the points of a run, series by series in the order in which
// they first appeared, each by ordinal; those of every source.
func (s *Store) Points(run string) ([]Point, error) {
	series, err := s.Series(run)
	var all []Point
	for _, v := range series {
		points, err := s.SeriesPoints(v, 0, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, points...)
	}
	return all, err
}

// TakeBack removes the points of one series from an ordinal on, because their
// source says something else now. A series that is not there has none.
func (s *Store) TakeBack(run, name, source string, from int64) error {
	return s.write("take back points of run "+run, func(tx *sql.Tx) error {
		var id int64
		err := tx.QueryRow("SELECT id FROM series WHERE run=? AND name=? AND source=?", run, name, source).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		res, err := tx.Exec("DELETE FROM points WHERE series=? AND ordinal>=?", id, from)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		_, err = tx.Exec("UPDATE series SET edition=edition+1 WHERE id=?", id)
		return err
	})
}

// unreal is the value that real stored.
func unreal(v sql.NullFloat64) float64 {
	if !v.Valid {
		return math.NaN()
	}
	return v.Float64
}
