package ec2story

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/planned"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/workbench/event"
)

// smi is put in front of PATH, which the machines of the rig inherit: it lists
// as many GPUs as the machine's type has.
func smi(t *testing.T, gpus int) {
	t.Helper()
	if gpus == 0 {
		return
	}
	dir := t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = -L ] || exit 1\ni=0; while [ $i -lt %d ]; do echo \"GPU $i: A10G (UUID: GPU-$i)\"; i=$((i+1)); done\n", gpus)
	if err := testprogram.Write(filepath.Join(dir, "nvidia-smi"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// What a plan says before there is a machine is what is launched on it: for
// types with 0, 1, 4 and 8 GPUs.
func TestWhatThePlanSaysOfMachinesIsWhatIsLaunchedOnThem(t *testing.T) {
	sample.Leave(t)
	long(t)
	for _, c := range []struct {
		instance     string
		count, ranks int
		gpus         int
	}{{"c5.large", 1, 1, 0}, {"g5.xlarge", 2, 2, 1}, {"g5.12xlarge", 2, 8, 4}, {"g5.48xlarge", 1, 8, 8}} {
		t.Run(c.instance, func(t *testing.T) {
			smi(t, c.gpus)
			b := newBench(t, fakeaws.Options{})
			b.profile(c.count, "run: {command: train.py}\nlimits: {lifetime: 1h}\n")
			file := filepath.Join(b.dir, "dlwb.yaml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b.write("dlwb.yaml", strings.Replace(string(text), "g5.xlarge", c.instance, 1))
			b.write("train.py", "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n")
			said := b.run("plan", "--json")
			var plan planned.Plan
			if err := json.Unmarshal([]byte(said.stdout), &plan); err != nil || said.code != 0 {
				t.Fatalf("%v: %s", err, said)
			}
			r := b.run("run", "--down", "--json")
			if r.code != 0 {
				t.Fatal(r)
			}
			var run event.RunStarted
			raw, _ := json.Marshal(r.one(t, "run_started"))
			if err := json.Unmarshal(raw, &run); err != nil {
				t.Fatal(err)
			}
			when, err := plan.Taken(run)
			if err != nil || run.WorldSize != c.ranks || !strings.HasPrefix(when, "PyTorch is") {
				t.Errorf("%s with %d ranks ran, if %q: %v", run.Engine, run.WorldSize, when, err)
			}
		})
	}
}
