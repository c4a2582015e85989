package workbench

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/sweep"
)

// roomy is a provider of jobs whose replicas can be entered.
type roomy struct{ cloud.JobProvider }

func (roomy) Open(cloud.Life, string) []job.Replica { return []job.Replica{room{}} }

type room struct{ job.Replica }

func (room) Start(context.Context, string) (job.Command, error) { return nil, errors.New("closed") }
func (room) Dir() string                                        { return "/" }

// The trials of a sweep are jobs that run at once, each on machines of its own: what is
// asked of one of them is not asked on another's.
func TestOneJobIsNotAskedOnTheMachineOfAnother(t *testing.T) {
	w := newBench(t, t.TempDir())
	w.jobs["local"] = roomy{}
	s := begin(t, w, "c", "first")
	made := cloud.Cluster{Name: "c", Provider: "local", Nodes: []cloud.Node{{Name: "replica0"}}}
	text, err := json.Marshal(clusterData{Cluster: made})
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.updateCluster(s.life, func(c *store.Cluster) { c.Data = text })
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"first", "second"} {
		if err := w.putRun(store.Run{ID: run, Cluster: "c", Life: s.life, StartedAt: now()}, runData{Nodes: 1, Ref: "job of " + run}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := w.runInside(c)
	if err != nil {
		t.Fatal(err)
	}
	on := &jobCarrier{jobs: jobs{roomy{}, w}, c: c, made: made}
	for _, run := range []string{"first", "second"} {
		all, err := on.replicas(run)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if _, can := all[0].(job.Execer); can != (data.Ref == "job of "+run) {
			t.Errorf("run %s: commands run there: %v, and the cluster's machines are those of the %s", run, can, data.Ref)
		}
	}
}

// A trial that is a job has all of the machine on whose disk jobs lie, whichever place
// among the trials it has.
func TestATrialThatIsAJobIsReachedWhateverItsPlace(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "trial")
	if err := w.putRun(store.Run{ID: "trial", Cluster: "c", Life: s.life, StartedAt: now()}, runData{Trial: &sweep.Label{Slot: sweep.Slot{Nodes: []int{2}}}}); err != nil {
		t.Fatal(err)
	}
	l := &link{w: w, cluster: cloud.Cluster{Provider: "local", Nodes: []cloud.Node{{Name: "login"}}}, nodes: []*remote.Node{nil}}
	if of := l.ofRun("trial"); len(of.nodes) != 0 {
		t.Errorf("a cluster of nodes has %d for it", len(of.nodes))
	}
	w.jobs["local"] = roomy{}
	if of := l.ofRun("trial"); len(of.nodes) != 1 || len(of.cluster.Nodes) != 1 {
		t.Errorf("it is reached on %d machines", len(of.nodes))
	}
}
