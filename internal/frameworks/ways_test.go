//go:build linux

package frameworks

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// resumes is a run that is started again from a checkpoint.
const resumes = "  restarts: 2\n  resume: --from {checkpoint}\nresults: {checkpoints: ckpt}\n"

// ways are what an engine has keys of its own for.
var ways = []struct {
	engine, name, script string
	shape                Shape
	// run is what the profile says of it.
	run string
	// says are what the logs must hold, each so many times.
	says map[string]int
}{
	{"torchrun", "rendezvous: c10d", "torch_sum.py", Shape{2, 2}, "  rendezvous: c10d\n", map[string]int{`rank \d of 4: sum 4 `: 4}},
	{"torchrun", "min_nodes: 1", "torch_sum.py", Shape{2, 1}, "  min_nodes: 1\n", map[string]int{`rank \d of 2: sum 2 `: 2}},
	{"torchrun", "restarts: 2", "torch_restart.py", Shape{2, 2}, "  restarts: 2\n", map[string]int{`rank \d of 4: sum 4 life 1 `: 4}},
	{"torchrun", "rendezvous: c10d, restarts: 2", "torch_restart.py", Shape{2, 1}, "  rendezvous: c10d\n  restarts: 2\n", map[string]int{`rank \d of 2: sum 2 life 1 `: 2}},
	{"torchrun", "restarts: 2, checkpoints: ckpt", "torch_resume.py", Shape{2, 2}, resumes, map[string]int{`rank \d of 4: sum 4 from step-1.pt given step-1.pt `: 4}},
	{"plain", "restarts: 2, checkpoints: ckpt", "torch_resume.py", Shape{2, 1}, resumes, map[string]int{`rank \d of 2: sum 2 from step-1.pt given step-1.pt `: 2}},
	{"tensorflow", "parameter_servers: 1, evaluator: true", "tensorflow_servers.py", Shape{4, 1}, "  parameter_servers: 1\n  evaluator: true\n",
		map[string]int{`total 10 on /job:ps/`: 1, `evaluated 10`: 1, `ps 0 of `: 1, `worker 0 of `: 1, `chief 0 of `: 1}},
}

// TestFrameworksWays runs what engines have keys of their own for.
func TestFrameworksWays(t *testing.T) {
	if *venvs == "" {
		t.Skip("the frameworks are not installed: make test-frameworks does that")
	}
	for i, way := range ways {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), way.engine) {
			continue
		}
		t.Run(fmt.Sprint(way.engine, i), func(t *testing.T) {
			trial := Trials[slices.IndexFunc(Trials, func(t Trial) bool { return t.Engine == way.engine })]
			trial.Script = way.script
			l := newLab(t, trial, way.shape, "")
			l.add("  env: {HOME_AFTER: \"25\", DONE: " + filepath.Join(l.state, "done") + "}\n" + way.run)
			said := "ok"
			if err := l.says(t.Context(), way.says); err != nil {
				said = "failed"
				t.Error(err)
			}
			keep(t, func(r Results) {
				if r.of(way.engine).Ways == nil {
					r.of(way.engine).Ways = map[string]string{}
				}
				r.of(way.engine).Ways[way.name] = fmt.Sprintf("%s on %s", said, way.shape)
			})
		})
	}
}

// says runs an experiment and holds what it says against what it should.
func (l lab) says(parent context.Context, want map[string]int) error {
	ctx, cancel := limited(l.T, parent)
	defer cancel()
	out, err := l.run(ctx).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s\n%s", err, tail(string(out), 10), tail(l.logs(), 100))
	}
	text := l.logs()
	for sign, count := range want {
		if n := len(regexp.MustCompile(sign).FindAllString(text, -1)); n != count {
			return fmt.Errorf("%q is there %d times instead of %d:\n%s", sign, n, count, tail(text, 100))
		}
	}
	return l.nothingLeft(out)
}

// howScript says how Accelerate's launcher told it to work together.
const howScript = `import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(1)
dist.all_reduce(t)
e = os.environ
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: sum {int(t)} fsdp {e.get('ACCELERATE_USE_FSDP')} deepspeed {e.get('ACCELERATE_USE_DEEPSPEED')}", flush=True)
`

// TestFrameworksCommands runs commands as people bring them: the engine is found
// behind what stands before it, and a script that starts its ranks does so itself.
func TestFrameworksCommands(t *testing.T) {
	if *venvs == "" || *only != "" && !slices.Contains(strings.Split(*only, ","), "torchrun") {
		t.Skip("the frameworks are not installed, or torchrun is not asked for: make test-frameworks does that")
	}
	python := filepath.Join(*venvs, "torch", "bin", "python")
	trial := Trial{Engine: "auto", Venv: "torch", Script: "torch_sum.py"}
	for _, c := range []struct {
		name, command string
		nodes         int
		says          map[string]int
	}{
		{"before a launcher", "env DLWB_TRIED=1 uv run torchrun --nproc_per_node 2 --nnodes 2 torch_sum.py", 2, map[string]int{`rank \d of 4: sum 4 `: 4}},
		{"accelerate with FSDP", "accelerate launch --config_file conf/fsdp.yaml how.py", 2, map[string]int{`rank \d of 2: sum 2 fsdp true deepspeed None`: 2}},
		{"accelerate with DeepSpeed", "accelerate launch --config_file=conf/zero.yaml --mixed_precision no how.py", 2, map[string]int{`rank \d of 2: sum 2 fsdp None deepspeed true`: 2}},
		{"makefile", "make train", 1, map[string]int{`rank \d of 2: sum 2 `: 2}},
		{"composer", "composer -n 2 torch_sum.py", 2, map[string]int{`rank \d of 4: sum 4 `: 4}},
		{"in a script", "bash run.sh", 1, map[string]int{`rank \d of 2: sum 2 `: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, trial, Shape{c.nodes, 1}, "")
			l.put("run.sh", "#!/bin/bash\nset -e\nexec "+python+" -m torch.distributed.run \\\n  --nproc_per_node 2 torch_sum.py\n")
			l.put("Makefile", "train:\n\t"+python+" -m torch.distributed.run --nproc_per_node 2 \\\n\t  torch_sum.py\n")
			l.put("how.py", howScript)
			l.put("conf/fsdp.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nmixed_precision: 'no'\nnum_machines: 1\nnum_processes: 8\n")
			l.put("conf/zero.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2}\nnum_machines: 1\nnum_processes: 8\n")
			l.put("dlwb.yaml", fmt.Sprintf("name: brought\nprovider: local\nmachines: {count: %d}\nenvironment: {python: %s}\nrun: {command: %s}\n", c.nodes, python, c.command))
			l.add("")
			if err := l.says(t.Context(), c.says); err != nil {
				t.Error(err)
			}
		})
	}
}
