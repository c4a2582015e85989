package store

import (
	"database/sql"
	"time"
)

// Event is one thing that happened to a cluster.
type Event struct {
	Seq     int64 // given by the store; grows over all clusters and processes
	Time    time.Time
	Cluster string
	Life    int64  // the cluster's life; 0 in Append means the newest
	Run     string // empty for what belongs to no run
	Name    string
	Body    []byte
}

// Append adds an event and returns its place in the order of all events. The
// cluster must have been written before.
func (s *Store) Append(e Event) (seq int64, err error) { return s.AppendAll([]Event{e}) }

// AppendAll adds events in order, all or none, and returns the place of the
// last. Their places follow each other without a gap, and cost one write to
// the disk together.
func (s *Store) AppendAll(events []Event) (last int64, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	err = s.write("append events", func(tx *sql.Tx) error {
		for _, e := range events {
			if last, err = insertEvent(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	return last, err
}

func insertEvent(tx *sql.Tx, e Event) (int64, error) {
	life, err := life(tx, e.Cluster, e.Life)
	if err != nil {
		return 0, err
	}
	res, err := tx.Exec("INSERT INTO events (time, life, run, name, body) VALUES (?,?,?,?,?)",
		nanos(e.Time), life, e.Run, e.Name, blob(e.Body))
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

const eventQuery = `SELECT e.seq, e.time, c.name, e.life, e.run, e.name, e.body
	FROM events e JOIN clusters c ON c.id=e.life `

func scanEvent(r row) (e Event, err error) {
	err = r.Scan(&e.Seq, (*stamp)(&e.Time), &e.Cluster, &e.Life, &e.Run, &e.Name, &e.Body)
	return e, err
}

// Since returns the events of the newest life of a cluster that come after
// seq, at most limit of them (0: all).
func (s *Store) Since(cluster string, seq int64, limit int) ([]Event, error) {
	return query(s, "read the events of "+cluster, scanEvent,
		eventQuery+"WHERE e.life=(SELECT max(id) FROM clusters WHERE name=?) AND e.seq>? ORDER BY e.seq LIMIT ?",
		cluster, seq, count(limit))
}

// SinceLife is Since for one life of a cluster.
func (s *Store) SinceLife(life, seq int64, limit int) ([]Event, error) {
	return query(s, "read events", scanEvent,
		eventQuery+"WHERE e.life=? AND e.seq>? ORDER BY e.seq LIMIT ?", life, seq, count(limit))
}

// RunEvents returns the events of a run that come after seq, at most limit of
// them (0: all).
func (s *Store) RunEvents(run string, seq int64, limit int) ([]Event, error) {
	return query(s, "read the events of run "+run, scanEvent,
		eventQuery+"WHERE e.run=? AND e.run<>'' AND e.seq>? ORDER BY e.seq LIMIT ?", run, seq, count(limit))
}

// count turns "no limit" into SQLite's word for it.
func count(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}
