//go:build linux

package kuberig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/kuberig"
	"github.com/dlwb/dlwb/internal/overlay"
)

const rayTask = `import os, ray
ray.init(log_to_driver=False)
@ray.remote(num_cpus=0, num_gpus=1)
class One:
    def node(self): return ray.get_runtime_context().get_node_id()
ones = [One.remote() for _ in range(int(os.environ["DLWB_WORKERS"]))]
print("workers on", len(set(ray.get([o.node.remote() for o in ones]))), "nodes", flush=True)
os.makedirs("outputs", exist_ok=True)
with open("outputs/model.bin", "wb") as f: f.write(b"m" * 1000)
`

// rayLoses has one of its workers kill the pod in which it runs.
const rayLoses = `import os, time, ray
ray.init(log_to_driver=False)
@ray.remote(num_cpus=0, num_gpus=1)
class One:
    def node(self): return os.environ["DLWB_NODE"]
    def die(self):
        for p in filter(str.isdigit, os.listdir("/proc")):
            with open("/proc/%s/cmdline" % p, "rb") as f:
                if b"serve.py" in f.read(): os.kill(int(p), 9)
ones = [One.remote() for _ in range(2)]
for one in ones:
    if ray.get(one.node.remote()) == "1": one.die.remote()
time.sleep(600)
`

// A profile with the engine ray trains in a cluster that has no operator at all: the plan
// says what it becomes there, and nothing of it is left.
func TestRayTrainsInAClusterWithoutKubeRay(t *testing.T) {
	if why := kuberig.Missing(); why != "" {
		t.Skip(why)
	}
	ray := os.Getenv("DLWB_RAY")
	if cache, err := os.UserCacheDir(); err == nil && ray == "" {
		ray = filepath.Join(cache, "dlwb", "frameworks", "torch")
	}
	if _, err := os.Stat(filepath.Join(ray, "bin", "ray")); err != nil {
		t.Skip("NOT RUN: there is no real Ray here: DLWB_RAY names an environment with one, and make test-ecs makes it")
	}
	c, err := kuberig.Start("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	p := newProject(t, overlay.Build(t, nil), c.Kubeconfig)
	p.Write("train.py", rayTask)
	p.profile("name: bare\nprovider: kubernetes\nmachines: {count: 2, gpus: 1}\nresults: {paths: [outputs/]}\nrun: {engine: ray, command: train.py, env: {PATH: \"" + ray + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"}}\n")
	if plan := p.Must("plan", "--plain"); !strings.Contains(plan, "the job becomes a Job: ") || !strings.Contains(plan, "Ray's head and its workers run in its pods, without KubeRay") || strings.Contains(plan, "node0 is one more") {
		t.Errorf("the plan is\n%s", plan)
	}
	out := p.Must("run", "--json", "--down")
	run, _ := p.eventOf(out, "run_started")["run"].(string)
	if log := p.Must("logs", run, "--rank", "0"); !strings.Contains(log, "workers on 2 nodes") {
		t.Errorf("the driver says\n%s", log)
	}
	if end := p.eventOf(out, "run_ended"); end["verdict"] != "succeeded" || end["exit_code"] != 0.0 {
		t.Errorf("%v", end)
	}
	if files := p.homeOf(out); files["outputs/model.bin"] != 1000 {
		t.Errorf("home is %v", files)
	}
	if proven := p.eventOf(out, "receipt")["proven"]; proven != true {
		t.Errorf("the receipt says %v", proven)
	}
	p.Write("train.py", rayLoses)
	out, err = p.Try("run", "--json", "--down")
	if err == nil {
		t.Fatalf("a run that has lost a worker ends well:\n%s", out)
	}
	if cause, _ := p.eventOf(out, "run_ended")["cause"].(string); !strings.Contains(cause, "which serves the ranks of others, ended with code 137") {
		run, _ := p.eventOf(out, "run_started")["run"].(string)
		for _, log := range []string{"launcher-0", "launcher-1", "0"} {
			said, _ := p.Try("logs", run, "--rank", log)
			t.Logf("%s:\n%s", log, said)
		}
		t.Errorf("the cause is %q", cause)
	}
}

const fallsOnce = `import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
dist.all_reduce(torch.ones(1))
if rank == 3 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": sys.exit("this life ends here")
sum = torch.ones(1)
dist.all_reduce(sum)
print("rank", rank, "sum", int(sum), flush=True)
dist.destroy_process_group()
`

// A profile with run.restarts goes on in one and the same job when a rank has failed.
func TestARunWithRestartsGoesOnInItsJob(t *testing.T) {
	c := cluster(t)
	p := newProject(t, overlay.Build(t, nil), c.Kubeconfig)
	p.Write("train.py", fallsOnce)
	p.profile("name: again\nprovider: kubernetes\nmachines: {count: 2, kind: pytorchjob}\nrun: {engine: torchrun, procs_per_node: 2, restarts: 2, command: train.py, env: {GLOO_SOCKET_IFNAME: eth0, OMP_NUM_THREADS: \"1\"}}\n")
	out := p.Must("run", "--json", "--down")
	run, _ := p.eventOf(out, "run_started")["run"].(string)
	all := "" // the agents deal out the ranks in an order of their own
	for _, place := range []string{"0", "1", "2", "3"} {
		all += p.Must("logs", run, "--rank", place)
	}
	for _, want := range []string{"this life ends here", "rank 0 sum 4\n", "rank 1 sum 4\n", "rank 2 sum 4\n", "rank 3 sum 4\n"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if end := p.eventOf(out, "run_ended"); end["verdict"] != "succeeded" || end["exit_code"] != 0.0 {
		t.Errorf("%v", end)
	}
}
