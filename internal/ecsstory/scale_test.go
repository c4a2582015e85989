//go:build linux

package ecsstory

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
)

// A cluster that is there gets more workers, or fewer, with the next run; what else its
// machines are made of can't be changed, and that is said before anything is.
func TestTheNextRunHasAsManyWorkersAsItsProfileAsksFor(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	p := newProject(t)
	of := func(count, more string) string {
		return "machines: {count: " + count + ", instance: m5.xlarge, image: 'rayproject/ray:2.40.0'" + more + "}\n"
	}
	machines := ""
	for _, count := range []string{"2", "6", "1"} {
		p.profile("ecs", "{engine: plain, command: train.py 0.01}", of(count, ""))
		out := p.Must("run", "--plain")
		if !strings.Contains(out, "world size "+count+" on "+count+" node") || !strings.Contains(out, "every rank ended with code 0") {
			t.Errorf("with %s workers: %s", count, out)
		}
		if machines != "" && !strings.Contains(out, "the cluster has "+machines+" workers and is to have "+count) {
			t.Errorf("with %s workers after %s: %s", count, machines, out)
		}
		if strings.Contains(out, "has ended") {
			t.Errorf("containers that are not wanted any more are told as failed: %s", out)
		}
		machines = count
	}
	for more, want := range map[string]string{
		", head_instance: g5.xlarge": `was made with machines.head_instance "m5.xlarge", and the profile has "g5.xlarge" now`,
		", shared_memory: 1":         `machines.shared_memory`,
	} {
		p.profile("ecs", "{engine: plain, command: train.py 0.01}", of("1", more))
		if out, err := p.Try("run", "--plain"); err == nil || !strings.Contains(out, want) || !strings.Contains(out, "dlwb down jobs") {
			t.Errorf("%s: %v\n%s", more, err, out)
		}
	}
	p.profile("ecs", "{engine: plain, command: train.py 0.01}", of("4", "")+"limits: {budget: 10 usd}\n")
	if out, err := p.Try("run", "--plain"); err == nil || !strings.Contains(out, "would spend it before the machines end") {
		t.Errorf("%v\n%s", err, out)
	}
	p.Must("down", "jobs", "--plain")
	p.clean()
}
