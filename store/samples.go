package store

import (
	"database/sql"
	"time"
)

// Sample is the telemetry of one node at one moment.
type Sample struct {
	Cluster string
	Life    int64 // the cluster's life; 0 in AddSamples means the newest
	Node    int
	Time    time.Time
	Body    []byte
}

// AddSamples adds samples, all or none.
func (s *Store) AddSamples(samples []Sample) error {
	return s.write("add samples", func(tx *sql.Tx) error {
		for _, v := range samples {
			life, err := life(tx, v.Cluster, v.Life)
			if err != nil {
				return err
			}
			if _, err := tx.Exec("INSERT INTO samples (life, node, time, body) VALUES (?,?,?,?)",
				life, v.Node, nanos(v.Time), blob(v.Body)); err != nil {
				return err
			}
		}
		return nil
	})
}

func scanSample(r row) (v Sample, err error) {
	err = r.Scan(&v.Cluster, &v.Life, &v.Node, (*stamp)(&v.Time), &v.Body)
	return v, err
}

// Samples returns the samples of a node of the newest life of a cluster from
// one moment up to, not including, another.
func (s *Store) Samples(cluster string, node int, from, to time.Time) ([]Sample, error) {
	return query(s, "read the samples of "+cluster, scanSample,
		`SELECT c.name, m.life, m.node, m.time, m.body FROM samples m JOIN clusters c ON c.id=m.life
		WHERE m.life=(SELECT max(id) FROM clusters WHERE name=?) AND m.node=? AND m.time>=? AND m.time<?
		ORDER BY m.time, m.id`, cluster, node, nanos(from), nanos(to))
}

// TrimSamples forgets the samples of all clusters that are older than a
// moment.
func (s *Store) TrimSamples(before time.Time) error {
	return s.write("trim samples", func(tx *sql.Tx) error {
		_, err := tx.Exec("DELETE FROM samples WHERE time<?", nanos(before))
		return err
	})
}

// ThinSamples keeps of the samples of one life of a cluster, from one moment up
// to, not including, another, the first of each node in every so much time: one
// a second is more than anyone reads later.
func (s *Store) ThinSamples(life int64, from, to time.Time, every time.Duration) error {
	return s.write("thin samples", func(tx *sql.Tx) error {
		_, err := tx.Exec(`DELETE FROM samples WHERE life=?1 AND time>=?2 AND time<?3 AND id NOT IN
			(SELECT min(id) FROM samples WHERE life=?1 AND time>=?2 AND time<?3 GROUP BY node, time/?4)`,
			life, nanos(from), nanos(to), int64(every))
		return err
	})
}

// LifeSamples returns the samples of one life of a cluster from one moment up
// to, not including, another, by time.
func (s *Store) LifeSamples(life int64, from, to time.Time) ([]Sample, error) {
	return query(s, "read samples", scanSample,
		`SELECT c.name, m.life, m.node, m.time, m.body FROM samples m JOIN clusters c ON c.id=m.life
		WHERE m.life=? AND m.time>=? AND m.time<? ORDER BY m.time, m.id`, life, nanos(from), nanos(to))
}

// blob keeps an empty body apart from a missing one.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
