package store

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/plainfile"
	_ "modernc.org/sqlite" // the driver; pure Go, so that dlwb stays one static binary
)

//go:embed schema.sql
var schema string

//go:embed schema2.sql
var ledgerDetail string

//go:embed schema3.sql
var recipesAndSources string

//go:embed schema4.sql
var noTickets string

//go:embed schema5.sql
var removedRuns string

//go:embed schema6.sql
var placedPoints string

// migrations lead from one version of the schema to the next: migrations[0]
// makes version 1 out of an empty file.
var migrations = []string{schema, ledgerDetail, recipesAndSources, noTickets, removedRuns, placedPoints}

// busyTimeout is how long a write waits for another process.
const busyTimeout = 5 * time.Second

// Store is an open store. Its methods may be called from several goroutines.
type Store struct {
	path string
	// One connection writes and several read: writers of this process then
	// queue in Go instead of polling SQLite's lock, and a long read (a chart
	// of a million points) holds up no event.
	w, r *sql.DB
	// ready has the statement of each query that was asked (their texts are
	// constants): who follows a run asks the same several times a second.
	ready sync.Map
}

// Open opens the store at path and makes it when it is not there: the file
// 0600, missing directories 0700. An older schema is brought up to date; one
// newer than this dlwb knows is a *VersionError. Where the disk is full it takes the
// room that was kept for that: what costs money can be removed then, too.
func Open(path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	s, err := openFile(path)
	if err != nil && giveReserve(path, err) {
		return openFile(path)
	}
	if err == nil {
		keepReserve(path)
	}
	return s, err
}

func openFile(path string) (s *Store, err error) {
	s = &Store{path: path}
	if err := makeFile(path); err != nil {
		return nil, &Error{What: "open", Path: path, Err: err, Next: cmp.Or(next(err), "make the file and its directory writable for you")}
	}
	// What is taken out is overwritten, where that costs no further writing.
	if s.w, err = connect(path, 1, "_txlock=immediate&_pragma=secure_delete(FAST)"); err != nil {
		return nil, s.fail("open", err)
	}
	if err := s.prepare(); err != nil {
		s.w.Close()
		return nil, s.fail("open", err)
	}
	if s.r, err = connect(path, 4, "_pragma=query_only(1)"); err != nil {
		s.w.Close()
		return nil, s.fail("open", err)
	}
	return s, nil
}

// Path is the absolute path of the file.
func (s *Store) Path() string { return s.path }

// Close closes the store. What was written is already on the disk.
func (s *Store) Close() error {
	return errors.Join(s.r.Close(), s.w.Close())
}

// makeFile makes the file before SQLite does, because SQLite would give it the
// umask's mode; the -wal and -shm files take theirs from it.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

func connect(path string, conns int, options string) (*sql.DB, error) {
	// busy_timeout comes first: the pragmas after it may already have to wait.
	dsn := plainfile.URL(path) + fmt.Sprintf(
		"?_pragma=busy_timeout(%d)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&%s",
		busyTimeout.Milliseconds(), options)
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	return db, nil
}

// prepare sets WAL mode and brings the schema up to date. Two processes that
// open a new file at once can get "busy" from the change to WAL without any
// waiting inside SQLite, so the wait is here.
func (s *Store) prepare() error {
	deadline := time.Now().Add(busyTimeout)
	for {
		_, err := s.w.Exec("PRAGMA journal_mode=WAL")
		if err == nil {
			break
		}
		if !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	var before int
	if err := s.w.QueryRow("PRAGMA user_version").Scan(&before); err != nil {
		return err
	}
	err := s.tx(func(tx *sql.Tx) error { return migrate(tx, migrations) })
	if err != nil || before == len(migrations) {
		return err
	}
	if before < ticketsTaken {
		s.scrub()
	}
	_, err = s.w.Exec("PRAGMA wal_checkpoint(TRUNCATE)") // what a migration took out is still in the log
	return err
}

// ticketsTaken is the schema that keeps no tickets of forwards any more.
const ticketsTaken = 4

// scrub writes the file anew where it held tickets: SQLite leaves copies of rows
// in the unused parts of pages that it splits, which secure_delete does not reach.
// On a disk without room for a second copy the file stays as it is; its tickets
// ended with the dlwb that gave them out.
func (s *Store) scrub() {
	var one int
	if err := s.w.QueryRow("SELECT 1 FROM events WHERE name = 'forward_opened' LIMIT 1").Scan(&one); err != nil {
		return // there were none
	}
	if _, err := s.w.Exec("VACUUM"); err != nil {
		slog.Warn("old tickets may be left in unused parts of the store", "path", s.path, "error", err)
	}
}

// migrate runs inside one transaction that has the write lock, so of two
// processes one migrates and the other finds it done.
func migrate(tx *sql.Tx, steps []string) error {
	var version, tables int
	if err := tx.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(steps) {
		return &VersionError{Have: version, Known: len(steps)}
	}
	if err := tx.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if version == 0 && tables > 0 {
		return errForeign
	}
	for i := version; i < len(steps); i++ {
		if _, err := tx.Exec(steps[i]); err != nil {
			return fmt.Errorf("migration %d: %w", i+1, err)
		}
	}
	if version == len(steps) {
		return nil
	}
	_, err := tx.Exec(fmt.Sprintf("PRAGMA user_version=%d", len(steps)))
	return err
}

// tx runs f in one transaction that has the write lock from its beginning: a
// lock taken half-way can't be waited for.
func (s *Store) tx(f func(*sql.Tx) error) error {
	tx, err := s.w.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// write is tx with the store's error around what goes wrong.
func (s *Store) write(what string, f func(*sql.Tx) error) error {
	return s.fail(what, s.tx(f))
}

// statement is a query that SQLite has parsed once; it ends with the store.
func (s *Store) statement(q string) (*sql.Stmt, error) {
	if st, ok := s.ready.Load(q); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := s.r.Prepare(q)
	if err != nil {
		return nil, err
	}
	if first, twice := s.ready.LoadOrStore(q, st); twice {
		return first.(*sql.Stmt), st.Close()
	}
	return st, nil
}

// query reads all rows of a query.
func query[T any](s *Store, what string, scan func(row) (T, error), q string, args ...any) ([]T, error) {
	st, err := s.statement(q)
	if err != nil {
		return nil, s.fail(what, err)
	}
	rows, err := st.Query(args...)
	if err != nil {
		return nil, s.fail(what, err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, s.fail(what, err)
		}
		all = append(all, v)
	}
	return all, s.fail(what, rows.Err())
}

// one reads the first row of a query; without one the error is ErrNotFound.
func one[T any](s *Store, what string, scan func(row) (T, error), q string, args ...any) (T, error) {
	st, err := s.statement(q)
	if err != nil {
		var none T
		return none, s.fail(what, err)
	}
	v, err := scan(st.QueryRow(args...))
	return v, s.fail(what, err)
}

// row is what *sql.Row and *sql.Rows have in common.
type row interface{ Scan(...any) error }
