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
func TestWhatThePlanSaysOfThisMachineIsWhatIsLaunchedOnIt(t *testing.T) {
	needTorch(t)
	b := newBed(t)
	b.write("train.py", "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n")
	for i, c := range []struct {
		machines, engine, more string
		want                   string
	}{
		{"count: 1", "plain", "", "plain 1"},
		{"count: 1, simulate_gpus: 2", "plain", "", "plain 2"},
		{"count: 2, simulate_gpus: 2", "plain", ", procs_per_node: 1", "plain 2"},
		{"count: 2, simulate_gpus: 2", "auto", "", "torchrun 4"},
	} {
		b.write("dlwb.yaml", fmt.Sprintf("name: case%d\nprovider: local\nmachines: {%s}\nenvironment: {python: /usr/bin/python3}\n"+
			"run: {engine: %s, command: \"train.py --to {run}\"%s}\n", i, c.machines, c.engine, c.more))
		said := b.run("plan", "--json")
		var plan planned.Plan
		if err := json.Unmarshal([]byte(said.stdout), &plan); err != nil || said.code != 0 {
			t.Fatalf("%v: %s%s", err, said.stdout, said.stderr)
		}
		r := b.run("run", "--down", "--json")
		if r.code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", c.want, r.code, r.stdout, r.stderr)
		}
		run := body[event.RunStarted](t, r.one(t, "run_started"))
		when, err := plan.Taken(run)
		if got := fmt.Sprintf("%s %d", run.Engine, run.WorldSize); err != nil || when != "" || got != c.want {
			t.Errorf("%s ran, want %s; if %q; %v", got, c.want, when, err)
		}
		kept := b.run("runbook", fmt.Sprintf("case%d", i), "--json")
		var recipe history.Recipe
		if err := json.Unmarshal([]byte(kept.stdout), &recipe); err != nil || recipe.Engine != run.Engine || !slices.Equal(recipe.Ranks, run.Ranks) {
			t.Errorf("%v: the recipe keeps %s %+v\n%s", err, recipe.Engine, recipe.Ranks, kept.stderr)
		}
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
