// Package ledger keeps the paid resources of a life in the store: each is written
// down before the call that makes it.
package ledger

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/store"
)

// ledger is the record of one life's paid resources, in the store.
type ledger struct {
	db   *store.Store
	life int64
}

// Of is the ledger of a life of a cluster.
func Of(db *store.Store, life int64) cloud.Ledger { return ledger{db, life} }

// Intend implements cloud.Ledger.
func (l ledger) Intend(kind, token string, detail any) error {
	b, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("record the intent to make a %s: %w", kind, err)
	}
	_, err = l.db.Intend(store.LedgerEntry{Life: l.life, Kind: kind, Token: token, Detail: b, IntentAt: time.Now().UTC().Round(0)})
	return err
}

// Resolve implements cloud.Ledger.
func (l ledger) Resolve(token, id string) error {
	e, err := l.entry(token)
	if err != nil {
		return err
	}
	return l.db.Resolve(e.ID, id, time.Now().UTC().Round(0))
}

// Close implements cloud.Ledger.
func (l ledger) Close(token, proof string) error {
	e, err := l.entry(token)
	if err != nil {
		return err
	}
	return l.db.CloseEntry(e.ID, string(cloud.Gone), proof, time.Now().UTC().Round(0))
}

// Entries implements cloud.Ledger.
func (l ledger) Entries() ([]cloud.Entry, error) {
	rows, err := l.db.LedgerOf(l.life)
	entries := make([]cloud.Entry, len(rows))
	for i, r := range rows {
		entries[i] = cloud.Entry{Kind: r.Kind, Token: r.Token, Detail: r.Detail, ID: r.ResourceID,
			IntentAt: r.IntentAt, ResolvedAt: r.ResolvedAt, ClosedAt: r.ClosedAt, Proof: r.Proof}
	}
	return entries, err
}

func (l ledger) entry(token string) (store.LedgerEntry, error) {
	rows, err := l.db.LedgerOf(l.life)
	if err != nil {
		return store.LedgerEntry{}, err
	}
	for _, r := range rows {
		if r.Token == token {
			return r, nil
		}
	}
	return store.LedgerEntry{}, fmt.Errorf("the ledger has no intent %q: %w", token, store.ErrNotFound)
}
