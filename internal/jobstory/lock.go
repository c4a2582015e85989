package jobstory

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite" // the driver of the store
)

// LockStore keeps every other process from writing to the store at path.
func LockStore(t testing.TB, path string) (unlock func()) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Error(err)
		return func() {}
	}
	tx, err := db.Begin()
	if err != nil {
		t.Error(err)
		return func() { _ = db.Close() }
	}
	return func() {
		_ = tx.Rollback()
		_ = db.Close()
	}
}
