// Package history answers questions about runs that are on record: how one was
// made, what its series say, in what several differ. It talks to no node, and
// changes nothing but notes and stars.
package history

import (
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// History reads the records of runs.
type History struct {
	db      *store.Store
	records Records
	agreed  sync.Map // sources of a series that tell the same, see curvesOf
}

// Records are what a History needs from the owner of the records.
type Records struct {
	// Runs lists all runs, newest first.
	Runs func() ([]event.RunInfo, error)
	// Run is one of them; its error says which there are.
	Run func(id string) (Run, error)
	// Placed are the files of a run that came home, by the directory here and
	// the path on the node.
	Placed func(id string) map[string]map[string]transfer.Placed
	// ReadLog reads the stored log of a rank from a byte offset.
	ReadLog func(id string, rank int, off int64, p []byte) (int, error)
	// Holder is the process that changes a cluster or watches it; 0 for none.
	Holder func(cluster string) int
	// Changed is told when a note or a star was written.
	Changed func()
}

// Behind reports whether more may have come of a run than is on record: it has no end
// there, and no dlwb brings here what it prints.
func (h *History) Behind(run event.RunInfo) bool {
	return run.EndedAt == nil && h.records.Holder(run.Cluster) == 0
}

// Run is a run with what lists do not show of it.
type Run struct {
	event.RunInfo
	Life         int64 // of its cluster
	Nodes        int
	Python       string
	PricePerHour float64 // of its machines, when it was launched
	Metrics      []metrics.UserMetric
	Progress     metrics.Progress
}

// New reads what lies in a store.
func New(db *store.Store, records Records) *History {
	return &History{db: db, records: records}
}

func now() time.Time { return time.Now().UTC().Round(0) }

// oneOf lists names in place of one that is not there.
func oneOf(what string, names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return what + ": " + strings.Join(names, ", ")
}
