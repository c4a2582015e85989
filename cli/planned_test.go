package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/dlwb/dlwb/internal/planned"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// What a plan says of this machine's own nodes is what is launched on them and
// what the run's recipe keeps: engine, world size, and every word of every
// command. There the plan leaves nothing to a condition.
// TestSimulatedGPUsGetARankEachAndFollowTheTraining holds it of torchrun.
func TestWhatThePlanSaysOfThisMachineIsWhatIsLaunchedOnIt(t *testing.T) {
	b := newBed(t)
	b.write("train.py", "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n")
	for i, c := range []struct {
		machines, engine, more string
		want                   string
	}{
		{"count: 1", "plain", "", "plain 1"},
		{"count: 1, simulate_gpus: 2", "plain", "", "plain 2"},
		{"count: 2, simulate_gpus: 2", "plain", ", procs_per_node: 1", "plain 2"},
	} {
		b.write("dlwb.yaml", fmt.Sprintf("name: case%d\nprovider: local\nmachines: {%s}\nenvironment: {python: /usr/bin/python3}\n"+
			"run: {engine: %s, command: \"train.py --to {run}\"%s}\n", i, c.machines, c.engine, c.more))
		plan := b.planned()
		r := b.run("run", "--down", "--json")
		if r.code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", c.want, r.code, r.stdout, r.stderr)
		}
		b.ranAsPlanned(plan, r.one(t, "run_started"), fmt.Sprintf("case%d", i), c.want)
	}
}

// planned is what the plan of the bed's profile says of the launch.
func (b *bed) planned() (plan planned.Plan) {
	b.t.Helper()
	said := b.run("plan", "--json")
	if err := json.Unmarshal([]byte(said.stdout), &plan); err != nil || said.code != 0 {
		b.t.Fatalf("%v: %s%s", err, said.stdout, said.stderr)
	}
	return plan
}

// ranAsPlanned holds a run of a cluster against its plan, which has left nothing open,
// and its recipe against the run.
func (b *bed) ranAsPlanned(plan planned.Plan, begun printedEvent, cluster, want string) {
	b.t.Helper()
	run := body[event.RunStarted](b.t, begun)
	when, err := plan.Taken(run)
	if got := fmt.Sprintf("%s %d", run.Engine, run.WorldSize); err != nil || when != "" || got != want {
		b.t.Errorf("%s ran, want %s; if %q; %v", got, want, when, err)
	}
	kept := b.run("runbook", cluster, "--json")
	var recipe history.Recipe
	if err := json.Unmarshal([]byte(kept.stdout), &recipe); err != nil || recipe.Engine != run.Engine || !slices.Equal(recipe.Ranks, run.Ranks) {
		b.t.Errorf("%v: the recipe keeps %s %+v\n%s", err, recipe.Engine, recipe.Ranks, kept.stderr)
	}
}

// body is the body of an event that was printed.
func body[T event.Body](t *testing.T, e printedEvent) (b T) {
	t.Helper()
	raw, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}
