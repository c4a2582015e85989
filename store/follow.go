package store

import "database/sql"

// SamplesAfter returns the samples of one life of a cluster that were added
// after the sample with the given id, in the order they were added, and the id
// of the last of them. It is how a reader follows telemetry that another
// process writes.
func (s *Store) SamplesAfter(life, id int64) (samples []Sample, last int64, err error) {
	last = id
	samples, err = query(s, "follow samples", func(r row) (v Sample, err error) {
		err = r.Scan(&last, &v.Node, (*stamp)(&v.Time), &v.Body)
		v.Life = life
		return v, err
	}, "SELECT id, node, time, body FROM samples WHERE life=? AND id>? ORDER BY id", life, id)
	return samples, last, err
}

// LastSample returns the id of the newest sample of one life of a cluster that
// is at least n samples old; 0 when there are fewer. A reader that begins
// there sees the n newest.
func (s *Store) LastSample(life int64, n int) (id int64, err error) {
	err = s.r.QueryRow("SELECT id FROM samples WHERE life=? ORDER BY id DESC LIMIT 1 OFFSET ?", life, n).Scan(&id)
	if err == sql.ErrNoRows {
		err = nil
	}
	return id, s.fail("follow samples", err)
}
