package workbench

import (
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/ledger"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/naming"
)

// lifeOf is what a provider must know of the life of a cluster. The directory
// for its keys is made.
func (w *Workbench) lifeOf(c store.Cluster) (cloud.Life, error) {
	d, err := w.clusterData(c)
	if err != nil {
		return cloud.Life{}, err
	}
	a, err := w.books.Of(c.ID)
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

func (w *Workbench) names() naming.Finder { return naming.New(w.db, w.runInfo) }

// FindRun turns what a person typed into a run: see naming.Finder.Run.
func (w *Workbench) FindRun(word string) (event.RunInfo, error) { return w.names().Run(word) }

// FindCluster turns what a person typed into a cluster that exists: see
// naming.Finder.Cluster.
func (w *Workbench) FindCluster(word string) (store.Cluster, error) { return w.names().Cluster(word) }

// Stays reports whether a cluster exists and nobody is removing it.
func (w *Workbench) Stays(cluster string) bool {
	c, err := w.db.Cluster(cluster)
	return err == nil && c.EndedAt == nil && !(event.Phase(c.Phase) == event.PhaseStopping && w.locks.Held(c.Name, locks.Change))
}
