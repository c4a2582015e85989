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
}
