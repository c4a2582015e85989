package workbench

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/store"
)

// newLifeID makes the id under which the resources of one life are known to
// their provider.
func newLifeID() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// lifeOf is what a provider must know of the life of a cluster. The directory
// for its keys is made.
func (w *Workbench) lifeOf(c store.Cluster) (cloud.Life, error) {
	d, err := w.clusterData(c)
	if err != nil {
		return cloud.Life{}, err
	}
	a, err := w.account(c.ID)
	if err != nil {
		return cloud.Life{}, err
	}
	ends := a.LatestEnd()
	life := cloud.Life{Name: c.Name, ID: d.Life, Began: c.CreatedAt, Ends: ends,
		Dir: filepath.Join(w.keysDir(c.Name), d.Life), Ledger: ledger{w.db, c.ID}}
	return life, os.MkdirAll(life.Dir, 0o700)
}

// keysDir holds the keys of a cluster.
func (w *Workbench) keysDir(cluster string) string { return filepath.Join(w.dir, "keys", cluster) }

// ledger is the record of one life's paid resources, in the store.
type ledger struct {
	db   *store.Store
	life int64
}

// Intend implements cloud.Ledger.
func (l ledger) Intend(kind, token string, detail any) error {
	b, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("record the intent to make a %s: %w", kind, err)
	}
	_, err = l.db.Intend(store.LedgerEntry{Life: l.life, Kind: kind, Token: token, Detail: b, IntentAt: now()})
	return err
}

// Resolve implements cloud.Ledger.
func (l ledger) Resolve(token, id string) error {
	e, err := l.entry(token)
	if err != nil {
		return err
	}
	return l.db.Resolve(e.ID, id, now())
}

// Close implements cloud.Ledger.
func (l ledger) Close(token, proof string) error {
	e, err := l.entry(token)
	if err != nil {
		return err
	}
	return l.db.CloseEntry(e.ID, string(cloud.Gone), proof, now())
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
