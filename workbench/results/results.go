// Package results brings home what a run writes on its nodes: its results at the
// end, its checkpoints while it goes on. It says where they are and what is on
// the machines only, and puts checkpoints back where a run goes on.
package results

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/sharing"
)

// Fetcher brings home what runs write, and keeps beside each run the record of
// what came.
type Fetcher struct {
	db    *store.Store
	owner Owner
}

// Owner is what a Fetcher needs of whoever runs the runs.
type Owner struct {
	// Dir is where the files of a run lie.
	Dir func(run string) string
	// Run is a run on record; its error says which there are.
	Run func(id string) (Run, error)
	// Told is what was told of a run so far.
	Told func(run string) (Told, error)
	// Readable says why files of the nodes of a cluster can't be read; nil when
	// they can.
	Readable func(store.Cluster) error
	// Kept reports whether a service keeps what runs of a cluster write, also when it is
	// gone.
	Kept func(store.Cluster) bool
	// Reach connects to the nodes of a cluster, for a run on it.
	Reach func(c store.Cluster, run string) (Site, error)
}

// New fetches for the runs of a store.
func New(db *store.Store, owner Owner) *Fetcher { return &Fetcher{db, owner} }

// Run is what is on record of a run, as far as its results are concerned.
type Run struct {
	ID, Cluster string
	Life        int64 // of its cluster
	// LifeID is what that life is called outside of the store: no other life has it,
	// whoever made it.
	LifeID string
	Paths  []string // its results, below the code directory of node 0
	// OwnDir is the run's directory on each node that its ranks find in
	// DLWB_RESULTS, below the home; empty for runs of an older dlwb.
	OwnDir string
	// Checkpoints is the directory of its checkpoints, below the code
	// directory; empty: not known.
	Checkpoints string
	// S3 is where its results and checkpoints are kept besides; empty: nowhere.
	S3 string
	// To is where its results go here; empty: into the run's record.
	To string
	// Lost is how long a node may not be heard of before it is given up.
	Lost time.Duration
}

// Told is what the events of a run say of it.
type Told struct {
	Started bool                  // every rank was launched
	Ended   *event.RunEnded       // nil: it goes on
	Fetched bool                  // its results came home after its end
	Got     *event.ResultsFetched // what came last; nil: nothing
	Lost    *event.ResultsLost    // nil: nothing is lost
}

// Site is where a run is: the nodes of one life of its cluster, connected.
type Site struct {
	Cluster string
	Nodes   []*remote.Node
	// Disks say which of them see one disk; nil: none do.
	Disks sharing.Nodes
	// Leased is set where a node that is gone takes its disk with it.
	Leased bool
	// Silent are nodes that are known not to answer; nil: none is.
	Silent []bool
	// Gone says of each node whether it is proven gone.
	Gone func(context.Context) []bool
	// KeepActive begins to tell the nodes that they are in use, until the
	// context ends. It does not wait.
	KeepActive func(context.Context)
	// Kept writes what a service keeps of the run into a directory; left is what did
	// not come. Nil: its nodes are asked.
	Kept func(ctx context.Context, into *os.Root) (left []string, err error)
	// Own is the variable in which the run finds its place there; empty: DLWB_RESULTS.
	Own string
	// Publish tells an event of the run.
	Publish func(event.Body) error
	// Names are what the user calls the nodes.
	Names event.Names
}

// Dir is where the results of a run go when nothing else is said.
func (f *Fetcher) Dir(r Run) string {
	if r.To != "" {
		return r.To
	}
	return filepath.Join(f.owner.Dir(r.ID), "results")
}
