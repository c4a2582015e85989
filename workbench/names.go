package workbench

import (
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/naming"
)

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
