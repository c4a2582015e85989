package store

import (
	"database/sql"
	"errors"
	"time"
)

// Run is one launch of a training command.
type Run struct {
	ID        string
	Cluster   string
	Life      int64 // the cluster's life; 0 in PutRun means the newest
	Profile   string
	Engine    string
	Command   string
	WorldSize int
	StartedAt time.Time
	EndedAt   *time.Time
	ExitCode  *int
	Verdict   string
	Cause     string
	Dir       string
	Data      []byte
	// Note and Starred are the user's; PutRun leaves them as they are.
	Note    string
	Starred bool
}

const runQuery = `SELECT r.id, c.name, r.life, r.profile, r.engine, r.command, r.world_size, r.started_at,
	r.ended_at, r.exit_code, r.verdict, r.cause, r.dir, r.data, r.note, r.starred FROM runs r JOIN clusters c ON c.id=r.life `

func scanRun(r row) (v Run, err error) {
	err = r.Scan(&v.ID, &v.Cluster, &v.Life, &v.Profile, &v.Engine, &v.Command, &v.WorldSize, (*stamp)(&v.StartedAt),
		maybeStamp{&v.EndedAt}, &v.ExitCode, &v.Verdict, &v.Cause, &v.Dir, &v.Data, &v.Note, &v.Starred)
	return v, err
}

// PutRun writes a run. A run stays with the life of the cluster it was first
// written with, and one that has ended stays ended: a process with an older
// view of it takes nothing back.
func (s *Store) PutRun(r Run) error {
	return s.write("write run "+r.ID, func(tx *sql.Tx) error {
		if r.ID == "" {
			return errors.New("a run needs an id")
		}
		life, err := life(tx, r.Cluster, r.Life)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO runs (id, life, profile, engine, command, world_size, started_at,
			ended_at, exit_code, verdict, cause, dir, data) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)
			ON CONFLICT (id) DO UPDATE SET profile=excluded.profile, engine=excluded.engine,
			command=excluded.command, world_size=excluded.world_size, started_at=excluded.started_at,
			ended_at=excluded.ended_at, exit_code=excluded.exit_code, verdict=excluded.verdict,
			cause=excluded.cause, dir=excluded.dir, data=excluded.data
			WHERE runs.ended_at IS NULL OR excluded.ended_at IS NOT NULL`,
			r.ID, life, r.Profile, r.Engine, r.Command, r.WorldSize, nanos(r.StartedAt),
			maybeNanos(r.EndedAt), r.ExitCode, r.Verdict, r.Cause, r.Dir, r.Data)
		return err
	})
}

// Run returns one run. One that is marked as removed is not found.
func (s *Store) Run(id string) (Run, error) {
	return one(s, "read run "+id, scanRun, runQuery+"WHERE r.id=? AND r.removed_at IS NULL", id)
}

// Runs returns the runs of the newest life of a cluster, newest first; with an
// empty name the runs of all lives of all clusters.
func (s *Store) Runs(cluster string) ([]Run, error) {
	const order = " ORDER BY r.started_at DESC, r.id DESC"
	if cluster == "" {
		return query(s, "list runs", scanRun, runQuery+"WHERE r.removed_at IS NULL"+order)
	}
	return query(s, "list runs of "+cluster, scanRun,
		runQuery+"WHERE r.life=(SELECT max(id) FROM clusters WHERE name=?) AND r.removed_at IS NULL"+order, cluster)
}

// SetNote writes the user's note to a run; an empty one removes it.
func (s *Store) SetNote(run, note string) error {
	return s.write("write a note to run "+run, func(tx *sql.Tx) error {
		return changed(tx.Exec("UPDATE runs SET note=? WHERE id=?", note, run))
	})
}

// SetStar gives a run a star, or takes it away.
func (s *Store) SetStar(run string, starred bool) error {
	return s.write("star run "+run, func(tx *sql.Tx) error {
		return changed(tx.Exec("UPDATE runs SET starred=? WHERE id=?", starred, run))
	})
}

// PutRecipe writes how a run was made; body is JSON that is not looked into.
func (s *Store) PutRecipe(run string, body []byte) error {
	return s.write("write the recipe of run "+run, func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT OR REPLACE INTO recipes (run, body) VALUES (?,?)", run, blob(body))
		if isOrphan(err) {
			return ErrNotFound
		}
		return err
	})
}

// Recipe returns how a run was made; ErrNotFound when that is not known.
func (s *Store) Recipe(run string) ([]byte, error) {
	return one(s, "read the recipe of run "+run, func(r row) (b []byte, err error) {
		err = r.Scan(&b)
		return b, err
	}, "SELECT body FROM recipes WHERE run=?", run)
}
