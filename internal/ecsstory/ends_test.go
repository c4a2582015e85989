//go:build linux

package ecsstory

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

var machineGone = regexp.MustCompile(`(?m)^ *instance +gone +i-[0-9a-f]+: EC2 shows it terminated`)

// Down ends each machine itself and has its proof on the receipt, also where EC2 does
// not say yet of which group a machine is.
func TestEachMachineIsEndedAndProven(t *testing.T) {
	t.Parallel()
	for _, unnamed := range []bool{false, true} {
		t.Run(fmt.Sprint("unnamed ", unnamed), func(t *testing.T) {
			p := newProject(t)
			p.fake.Unnamed = unnamed
			p.profile("ecs", "{engine: plain, command: train.py 0.01}", "")
			p.Must("run", "--plain")
			out := p.Must("down", "jobs", "--plain")
			if n := len(machineGone.FindAllString(out, -1)); n != 3 {
				t.Errorf("%d machines are proven gone, want 3:\n%s", n, out)
			}
			p.clean()
		})
	}
}

// With no dlwb there the scheduled action of the groups ends the machines at the end of
// the lease, and a down afterwards proves that.
func TestTheLeaseEndsTheMachinesWithoutDlwb(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	p := newProject(t)
	p.profile("ecs", "{engine: plain, command: train.py 600}", "limits: {lifetime: 1h}\n")
	run := p.Command("run", "--plain")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	p.Await("the first step", func() bool { return strings.Contains(p.Logs()["rank-0.log"], "step 1/40") })
	_ = run.Process.Kill()
	_ = run.Wait()
	p.Await("the end of its connections", p.fake.Alone)
	if n := len(p.fake.AWS.Running()); n != 3 {
		t.Fatalf("%d machines run, want 3", n)
	}
	before := p.fake.Counts()
	p.fake.Ahead(55 * time.Minute)
	time.Sleep(500 * time.Millisecond)
	if n := len(p.fake.AWS.Running()); n != 3 {
		t.Errorf("%d machines run within their lease, want 3", n)
	}
	p.fake.Ahead(time.Hour)
	p.Await("the end of the lease", func() bool { return len(p.fake.AWS.Running()) == 0 })
	for call, n := range p.fake.Counts() {
		if n != before[call] {
			t.Errorf("%s came in while no dlwb was there", call)
		}
	}
	if out := p.Must("down", "jobs", "--plain"); !strings.Contains(out, "nothing is left") {
		t.Errorf("down says\n%s", out)
	}
	if n := p.fake.Posts(); n != 1 {
		t.Errorf("%d jobs were asked for", n)
	}
	p.clean()
}
