package store

import (
	"database/sql"
	"errors"
	"os"
	"slices"
	"time"
)

// ErrOngoing is what MarkRemoved returns, wrapped, for a run that has not ended
// on a cluster that has not.
var ErrOngoing = errors.New("the run is going on")

// MarkRemoved takes a run off every list. What there is of it is removed by
// DeleteRun, after its files.
func (s *Store) MarkRemoved(run string, at time.Time) error {
	return s.write("remove run "+run, func(tx *sql.Tx) error {
		var ongoing bool
		err := tx.QueryRow(`SELECT r.ended_at IS NULL AND c.ended_at IS NULL FROM runs r JOIN clusters c ON c.id=r.life
			WHERE r.id=?`, run).Scan(&ongoing)
		if err != nil {
			return err
		}
		if ongoing {
			return ErrOngoing
		}
		_, err = tx.Exec("UPDATE runs SET removed_at=coalesce(removed_at, ?) WHERE id=?", nanos(at), run)
		return err
	})
}

// MarkedRemoved returns the ids of the runs that are marked as removed and not
// deleted yet.
func (s *Store) MarkedRemoved() ([]string, error) {
	return query(s, "list removed runs", func(r row) (id string, err error) {
		err = r.Scan(&id)
		return id, err
	}, "SELECT id FROM runs WHERE removed_at IS NOT NULL ORDER BY removed_at, id")
}

// deletedAtOnce bounds the rows that one transaction deletes: other processes
// write meanwhile, and wait for it.
const deletedAtOnce = 20_000

// DeleteRun deletes all rows of a run that is marked as removed: its points,
// events, recipe, the telemetry of the time in which it ran, and the run itself
// in the end. It may be called again until it succeeds.
func (s *Store) DeleteRun(run string) error {
	marked, err := s.MarkedRemoved()
	if err != nil || !slices.Contains(marked, run) {
		return err
	}
	for _, part := range []string{
		`DELETE FROM points WHERE (series, ordinal) IN (SELECT p.series, p.ordinal FROM points p JOIN series e ON e.id=p.series WHERE e.run=?1 LIMIT ?2)`,
		`DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE run=?1 AND run<>'' LIMIT ?2)`,
		`DELETE FROM samples WHERE id IN (SELECT m.id FROM samples m JOIN runs r ON r.life=m.life
			WHERE r.id=?1 AND m.time>=r.started_at AND m.time<coalesce(r.ended_at, 9223372036854775807) LIMIT ?2)`,
	} {
		for left := true; left; {
			err := s.write("delete run "+run, func(tx *sql.Tx) error {
				res, err := tx.Exec(part, run, deletedAtOnce)
				if err != nil {
					return err
				}
				n, err := res.RowsAffected()
				left = n == deletedAtOnce
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return s.write("delete run "+run, func(tx *sql.Tx) error {
		for _, q := range []string{"DELETE FROM points WHERE series IN (SELECT id FROM series WHERE run=?)", "DELETE FROM series WHERE run=?",
			"DELETE FROM recipes WHERE run=?", "DELETE FROM events WHERE run=? AND run<>''", "DELETE FROM runs WHERE id=? AND removed_at IS NOT NULL"} {
			if _, err := tx.Exec(q, run); err != nil {
				return err
			}
		}
		return nil
	})
}

// CountPoints is how many points a run has in all of its series.
func (s *Store) CountPoints(run string) (int64, error) {
	return one(s, "count the points of run "+run, func(r row) (n int64, err error) {
		err = r.Scan(&n)
		return n, err
	}, "SELECT count(*) FROM points WHERE series IN (SELECT id FROM series WHERE run=?)", run)
}

// Size is what the store takes on the disk, in bytes, with what is written to
// it and not merged yet.
func (s *Store) Size() (int64, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0, s.fail("measure", err)
	}
	size := info.Size()
	if wal, err := os.Stat(s.path + "-wal"); err == nil {
		size += wal.Size()
	}
	return size, nil
}

// Compact gives the room of what was deleted back to the disk. It needs as much
// free room as the store takes, and other processes that write wait for it.
func (s *Store) Compact() error {
	if _, err := s.w.Exec("VACUUM"); err != nil {
		return s.fail("compact", err)
	}
	// Readers of other processes may hold the old pages for now: those go with
	// a later checkpoint.
	_, err := s.w.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return s.fail("compact", err)
}
