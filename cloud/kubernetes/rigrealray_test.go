//go:build linux

package kubernetes

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/job"
)

// realRay is the environment of a real Ray, as internal/tools/ecs.sh finds or makes it.
func realRay(t *testing.T) string {
	t.Helper()
	dirs := []string{os.Getenv("DLWB_RAY")}
	if cache, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(cache, "dlwb", "frameworks", "torch"), filepath.Join(cache, "dlwb", "frameworks", "ray"))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "bin", "ray")); dir != "" && err == nil {
			return dir
		}
	}
	t.Skip("NOT RUN: there is no real Ray here: DLWB_RAY names an environment with one, and make test-ecs makes it")
	return ""
}

// driverOfRay is a training with two workers in a cluster of so many nodes.
func driverOfRay(nodes int) string {
	return strings.ReplaceAll(realDriver, "NODES", strconv.Itoa(nodes))
}

const realDriver = `import os, socket, time
import ray
ray.init(log_to_driver=True)
while sum(n["Alive"] for n in ray.nodes()) < NODES: time.sleep(0.5)
print("nodes", sum(n["Alive"] for n in ray.nodes()), "gpus", ray.cluster_resources().get("GPU"))

@ray.remote(num_gpus=1, num_cpus=0)
class Worker:
    def where(self):
        with open(os.path.join(os.environ["DLWB_RESULTS"], "note"), "w") as f: f.write("by ray")
        import helper
        return socket.gethostname(), os.getcwd(), helper.word, os.environ["TOKEN"]

workers = [Worker.remote() for _ in range(2)]
seen = ray.get([w.where.remote() for w in workers])
print("hosts", len({s[0] for s in seen} | {socket.gethostname()}), "code", {s[1:] for s in seen})
`

// A real Ray in the pods, under the real operator: the driver has the workers' GPUs, they
// have the code, the variables and directories of results, and what they write comes home.
func TestARealRayTrainsInARayJob(t *testing.T) {
	ray := realRay(t)
	realCluster(t)
	life, j := rayJobOf(t, options.Machines{GPUs: 1, CPUs: 1}, 2, `while [ ! -e go ]; do sleep 0.1; done; exec "$RIG_RAY/bin/python" -u driver.py`)
	for name, text := range map[string]string{"helper.py": "word = 'found'\n", "driver.py": driverOfRay(3)} {
		if err := os.WriteFile(filepath.Join(j.Code.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		j.Code.Paths = append(j.Code.Paths, name)
	}
	j.Env = append(j.Env, "RIG_RAY="+ray, "RAY_agent_register_timeout_ms=240000", "RAY_DASHBOARD_STARTUP_TIMEOUT_S=240", "RAY_worker_register_timeout_seconds=240",
		"RAY_gcs_server_port_wait_time_s=240", "RAY_DEDUP_LOGS=0", "RAY_USAGE_STATS_ENABLED=0")
	r := handIn(t, life, j)
	if err := r.p.Await(r.within(8*time.Minute), r.life, r.ref, r.step, r.say); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	heard := make(chan error, 1)
	ctx := r.within(8 * time.Minute)
	go func() {
		heard <- r.replicas[0].FollowLog(ctx, "rank-0.log", "", func(c job.Chunk) error { log.Write(c.Data); return nil })
	}()
	r.inPod(0, "touch "+dirWork+"/code/go")
	var all []job.Status
	if err := r.replicas[0].WatchStatus(ctx, func(s job.Status) error { all = append(all, s); return nil }, func(job.State) {}); err != nil {
		t.Error(err)
	}
	if err := <-heard; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"nodes 3 gpus 2.0", "hosts 3 code {('/dlwb/work/code', 'found', \"hush $(HOME) 'quoted'\")}"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, log.String())
		}
	}
	if got := told(all); got != "started rank-ended(0) ended(0)" {
		t.Error(got)
	}
	files, left := r.brought()
	if files["node1/note"] != "by ray" || files["node2/note"] != "by ray" {
		t.Errorf("%v, left %q", files, left)
	}
}
