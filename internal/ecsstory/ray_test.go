//go:build linux

package ecsstory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// realRay has the containers of the fake run a real Ray. A machine that has other
// work gives it the time that it has no setting for.
func realRay(t *testing.T, p *project) {
	t.Helper()
	venv := os.Getenv("DLWB_RAY")
	if venv == "" {
		t.Skip("it needs the directory of a virtual environment with Ray in DLWB_RAY: make test-ecs installs it")
	}
	patient, err := os.ReadFile("../../remote/engine/raystart.py")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "patient.py"), patient, 0o644); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\nexec '" + filepath.Join(venv, "bin/python3") + "' '" + filepath.Join(dir, "patient.py") + "' 240 \"$@\"\n"
	if err := testprogram.Write(filepath.Join(dir, "ray"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"RAY_gcs_server_port_wait_time_s", "RAY_DASHBOARD_STARTUP_TIMEOUT_S", "RAY_worker_register_timeout_seconds"} {
		t.Setenv(name, "240")
	}
	t.Setenv("RAY_agent_register_timeout_ms", "240000")
	p.fake.Ray = dir + ":" + filepath.Join(venv, "bin")
}

// With a real Ray in the containers: every rank's log and code, bytes that no text has,
// a package of code with a link in it, and torchrun's ranks of two machines, which find
// each other.
func TestTheJobRunsOnARealRay(t *testing.T) {
	p := newProject(t)
	realRay(t, p)
	p.Write("helper.py", "NAME = 'helped'\n")
	if err := os.Symlink("helper.py", filepath.Join(p.Dir, "linked.py")); err != nil {
		t.Fatal(err)
	}
	p.Write("train.py", `import os, sys
from linked import NAME
import torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(1)
dist.all_reduce(t)
rank = dist.get_rank()
print(f"rank {rank} of {dist.get_world_size()}: sum {int(t)} {NAME} {os.environ['WHAT']}", flush=True)
sys.stdout.buffer.write(b"bar 1\rbar 2\r\n" + bytes(range(128, 256)) + "é漢\uf70d\n".encode())
sys.stdout.flush()
for step in range(1, 4):
    print(f"step {step}/3 loss {4 / step:.4f}", flush=True)
dist.destroy_process_group()
sys.exit(0)
`)
	p.profile("ecs", `{engine: torchrun, procs_per_node: 2, command: train.py, env: {WHAT: "a 'b' $c"}}`, "environment: {python: python3}\n")
	out := p.Must("run", "--json", "--down")
	raw := "bar 1\rbar 2\r\n" + string(func() (b []byte) {
		for i := 128; i < 256; i++ {
			b = append(b, byte(i))
		}
		return b
	}()) + "é漢\uf70d\n"
	for rank, log := range []string{"rank-0.log", "rank-1.log", "rank-2.log", "rank-3.log"} {
		want := "rank " + string(rune('0'+rank)) + " of 4: sum 4 helped a 'b' $c\n" + raw + "step 1/3 loss 4.0000\nstep 2/3 loss 2.0000\nstep 3/3 loss 1.3333\n"
		if got := p.Logs()[log]; !strings.HasSuffix(got, want) {
			t.Errorf("%s is %q, want %q at its end", log, got, want)
		}
	}
	if strings.Contains(out, "a 'b'") && strings.Contains(out, "runtime_env") {
		t.Errorf("a variable is in the call")
	}
	p.clean()
}

// Torchrun's agents on two machines start their ranks again, all of them, in the job of
// Ray that they are.
func TestTorchrunStartsItsRanksAgainOnARealRay(t *testing.T) {
	p := newProject(t)
	realRay(t, p)
	p.Write("train.py", jobstory.FallsOnce)
	p.profile("ecs", `{engine: torchrun, procs_per_node: 2, restarts: 2, command: train.py, env: {OMP_NUM_THREADS: "1", FELL: `+filepath.Join(t.TempDir(), "fell")+`}}`, "environment: {python: python3}\n")
	out := p.Must("run", "--json", "--down")
	var all string // the agents deal out the ranks in an order of their own
	for place := range 4 {
		all += p.Logs()[fmt.Sprintf("rank-%d.log", place)]
	}
	for rank := range 4 {
		if !strings.Contains(all, fmt.Sprintf("rank %d sum 4\n", rank)) {
			t.Errorf("rank %d is not through:\n%s\n%s", rank, all, out)
		}
	}
	if strings.Count(all, "the first life ends here") != 1 {
		t.Errorf("one rank failed once:\n%s", all)
	}
	p.clean()
}

// A rank that fails on a real Ray is named with its code.
func TestARankThatFailsOnARealRayIsNamedWithItsCode(t *testing.T) {
	p := newProject(t)
	realRay(t, p)
	p.Write("train.py", "import os, sys, time\nprint('begun', flush=True)\nif os.environ['RANK'] == '1':\n    print('no such file', flush=True)\n    sys.exit(7)\ntime.sleep(60)\n")
	p.profile("ecs", "{engine: plain, command: train.py}", "")
	out, err := p.Try("run", "--json", "--down")
	if err == nil {
		t.Fatalf("a run that failed exits well:\n%s", out)
	}
	ended := jobstory.EventOf(t, jobstory.Said(t, out), "run_ended")
	if ended["exit_code"] != 7.0 || ended["rank"] != 1.0 {
		t.Errorf("%v\n%s", ended, out)
	}
	if log := p.Logs()["rank-1.log"]; log != "begun\nno such file\n" {
		t.Errorf("the log of rank 1 is %q", log)
	}
	p.clean()
}

// A script of Ray is the driver of the job on a real Ray: its tasks run on both workers,
// and none beside the head.
func TestAScriptOfRayRunsItsTasksOnARealRay(t *testing.T) {
	p := newProject(t)
	realRay(t, p)
	p.Write("helper.py", "def work(i):\n    return 2 * i\n")
	p.Write("train.py", `import os, time, ray
ray.init()
@ray.remote(num_cpus=1, resources={"dlwb_worker": 0.01})
def task(i):
    from helper import work
    time.sleep(0.5)
    return work(i), ray.get_runtime_context().get_node_id()
done = ray.get([task.remote(i) for i in range(16)])
print("sum", sum(d[0] for d in done), "on", len({d[1] for d in done}), "nodes; workers", os.environ["DLWB_WORKERS"], flush=True)
for step in range(1, 4):
    print(f"step {step}/3 loss {4 / step:.4f}", flush=True)
`)
	p.profile("ecs", `{engine: ray, command: train.py}`, "environment: {python: python3}\n")
	p.Must("run", "--json", "--down")
	if log := p.Logs()["rank-0.log"]; !strings.Contains(log, "sum 240 on 2 nodes; workers 2\nstep 1/3 loss 4.0000\n") {
		t.Errorf("the log is %q", log)
	}
	p.clean()
}
