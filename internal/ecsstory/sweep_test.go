//go:build linux

package ecsstory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/workbench/event"
)

// searching has a sweep of three trials on two machines.
func (p *project) searching(more string) {
	p.T.Helper()
	p.Search("provider: ecs\n"+executing+"run: {engine: plain, command: train.py}\n", "parameters: {lr: [0.3, 0.2, 0.1]}"+more, 10, "0.05")
}

// through looks whether all trials are done.
func (p *project) through() {
	p.T.Helper()
	if b := p.Board(); b.Done != 3 || b.Failed != 0 || b.Best != 3 {
		p.T.Errorf("%+v", b)
	}
}

// The trials of a sweep are jobs of one Ray cluster, which is paid once: each has all of
// its machines, one after the other.
func TestTheTrialsOfASweepAreJobsOfOneRayCluster(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	p := newProject(t)
	p.searching(", parallel: 2")
	if out, err := p.Try("sweep", "--plain"); err == nil || !strings.Contains(out, "sweep.parallel: each trial has all machines of the one cluster") {
		t.Errorf("%v\n%s", err, out)
	}
	p.searching("")
	events := jobstory.Said(t, p.Must("sweep", "--json"))
	p.through()
	for _, e := range events {
		if running, is := e["running"].(float64); is && e["event"] == "sweep" && running > 1 {
			t.Errorf("%v trials went on at once", running)
		}
	}
	if n := len(p.fake.AWS.Running()); n != 3 {
		t.Errorf("%d machines run, and three were asked for", n)
	}
	if n := p.fake.Posts(); n != 3 {
		t.Errorf("three trials were handed in %d times", n)
	}
	var list struct{ Clusters []event.ClusterInfo }
	if err := json.Unmarshal([]byte(p.Must("ls", "--json")), &list); err != nil || len(list.Clusters) != 1 {
		t.Fatalf("%v, %+v", err, list)
	}
	if c := list.Clusters[0]; c.PricePerHour == 0 || c.Spent == 0 || c.Spent > c.PricePerHour*c.Lived/3600+1e-6 {
		t.Errorf("the machines are paid once, and %+v", c)
	}
	p.Must("down", "jobs", "--plain")
	p.clean()
}

// dlwb is ended by SIGKILL where the machines of a sweep are made, and where a trial is
// handed in; another dlwb goes on, and a third takes all down.
func TestASweepThatIsKilledHandsNoTrialInTwice(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	for _, c := range []cell{{"UpdateAutoScalingGroup", 2, lost, ""}, {"SubmitJob", 1, before, ""}, {"SubmitJob", 2, lost, ""}, {"SubmitJob", 2, atWrite, ""}} {
		t.Run(fmt.Sprintf("%s #%d, %s", c.call, c.nth, c.moment), func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			p.searching("")
			if !c.kill(p, "sweep", "--plain", "--down") {
				t.Error("it was not killed")
			}
			if out, err := p.Try("sweep", "--plain"); err != nil {
				t.Errorf("sweep: %v\n%s", err, out)
			}
			p.through()
			if n := p.fake.Posts(); n > 3 {
				t.Errorf("three trials were handed in %d times", n)
			}
			if n := len(p.fake.AWS.Running()); n != 3 {
				t.Errorf("%d machines run, and three were asked for", n)
			}
			p.Must("down", "jobs", "--plain")
			p.clean()
		})
	}
}
