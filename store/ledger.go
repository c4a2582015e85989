package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// LedgerEntry is one paid resource: the intent to make it, what it became, and
// the proof that it is gone.
type LedgerEntry struct {
	ID         int64
	Cluster    string
	Life       int64 // the cluster's life; 0 in Intend means the newest
	Kind       string
	Token      string // our own, unique: sent with the call, so that a crash loses nothing
	Detail     []byte // JSON of the provider's own, see cloud.Ledger
	IntentAt   time.Time
	ResourceID string
	State      string
	Proof      string
	ResolvedAt *time.Time
	ClosedAt   *time.Time // nil: it may still cost money
}

// Intended and Resolved are the states an entry has before it is closed with a
// state of the caller's.
const (
	Intended = "intended"
	Resolved = "resolved"
)

const ledgerQuery = `SELECT l.id, c.name, l.life, l.kind, l.token, l.detail, l.intent_at, l.resource_id,
	l.state, l.proof, l.resolved_at, l.closed_at FROM ledger l JOIN clusters c ON c.id=l.life `

func scanEntry(r row) (e LedgerEntry, err error) {
	err = r.Scan(&e.ID, &e.Cluster, &e.Life, &e.Kind, &e.Token, &e.Detail, (*stamp)(&e.IntentAt), &e.ResourceID,
		&e.State, &e.Proof, maybeStamp{&e.ResolvedAt}, maybeStamp{&e.ClosedAt})
	return e, err
}

// Intend records that a resource is about to be made. The call that makes it
// may be sent only after Intend has returned without an error: the intent is
// then on the disk.
func (s *Store) Intend(e LedgerEntry) (id int64, err error) {
	err = s.write("record the intent to make a "+e.Kind, func(tx *sql.Tx) error {
		if e.Kind == "" || e.Token == "" {
			return errors.New("an intent needs a kind and a token")
		}
		life, err := life(tx, e.Cluster, e.Life)
		if err != nil {
			return err
		}
		res, err := tx.Exec(`INSERT INTO ledger (life, kind, token, detail, intent_at, state) VALUES (?,?,?,?,?,?)`,
			life, e.Kind, e.Token, e.Detail, nanos(e.IntentAt), Intended)
		if isTaken(err) {
			return fmt.Errorf("token %s was already used: %w", e.Token, err)
		}
		if err != nil {
			return err
		}
		id, err = res.LastInsertId()
		return err
	})
	return id, err
}

// Resolve records what the provider made of an intent.
func (s *Store) Resolve(id int64, resourceID string, at time.Time) error {
	return s.write(fmt.Sprintf("record the resource of ledger entry %d", id), func(tx *sql.Tx) error {
		return changed(tx.Exec(`UPDATE ledger SET resource_id=?, state=?, resolved_at=? WHERE id=? AND closed_at IS NULL`,
			resourceID, Resolved, nanos(at), id))
	})
}

// CloseEntry records that a resource is gone, and how that is known. Without a
// proof nothing is closed.
func (s *Store) CloseEntry(id int64, state, proof string, at time.Time) error {
	return s.write(fmt.Sprintf("close ledger entry %d", id), func(tx *sql.Tx) error {
		if proof == "" {
			return errors.New("an entry is closed only with a proof")
		}
		return changed(tx.Exec(`UPDATE ledger SET state=?, proof=?, closed_at=coalesce(closed_at, ?) WHERE id=?`,
			state, proof, nanos(at), id))
	})
}

// Ledger returns the entries of the newest life of a cluster, in order.
func (s *Store) Ledger(cluster string) ([]LedgerEntry, error) {
	return query(s, "read the ledger of "+cluster, scanEntry,
		ledgerQuery+"WHERE l.life=(SELECT max(id) FROM clusters WHERE name=?) ORDER BY l.id", cluster)
}

// LedgerOf returns the entries of one life of a cluster, in order.
func (s *Store) LedgerOf(life int64) ([]LedgerEntry, error) {
	return query(s, "read the ledger", scanEntry, ledgerQuery+"WHERE l.life=? ORDER BY l.id", life)
}

// OpenLedger returns the entries of all lives of all clusters that are not
// closed: all that may still cost money.
func (s *Store) OpenLedger() ([]LedgerEntry, error) {
	return query(s, "read the ledger", scanEntry, ledgerQuery+"WHERE l.closed_at IS NULL ORDER BY l.id")
}
