package workbench

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/ledger"
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
		Dir: filepath.Join(w.keysDir(c.Name), d.Life), Ledger: ledger.Of(w.db, c.ID)}
	return life, os.MkdirAll(life.Dir, 0o700)
}

// keysDir holds the keys of a cluster.
func (w *Workbench) keysDir(cluster string) string { return filepath.Join(w.dir, "keys", cluster) }
