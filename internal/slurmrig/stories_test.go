//go:build linux

package slurmrig

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testport"
)

// Only the provider is changed: the same series, the same exit code.
func sameStory(t *testing.T, d *desk) {
	series := map[string]string{}
	for provider, machines := range map[string]string{"local": "count: 2", "slurm": "count: 2, partition: gpu"} {
		d := newDesk(t, d.base, d.program)
		d.profile(provider, machines, "engine: plain, command: train.py 0.02")
		out := d.must("run", "--plain")
		if !strings.Contains(out, "every rank ended with code 0") {
			t.Errorf("%s: %s", provider, out)
		}
		run := regexp.MustCompile(`jobs-[0-9]{4}-[0-9]{6}-[0-9a-f]{4}`).FindString(d.must("runs"))
		series[provider] = regexp.MustCompile(`\d{4}-\d\d-\d\dT[^,\n]*|jobs-[0-9a-f-]*`).ReplaceAllString(d.must("export", run, "--format", "csv"), "")
		if log := d.stored(1); !strings.HasSuffix(log, "rank 1 is through\n") {
			t.Errorf("%s: the log of rank 1 is %q", provider, log)
		}
		d.clean()
	}
	if series["local"] != series["slurm"] || !strings.Contains(series["slurm"], "loss") {
		t.Errorf("the series differ:\n%s\n%s", series["local"], series["slurm"])
	}
}

const reduces = `import torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(1) * dist.get_rank()
dist.all_reduce(x)
for step in range(1, 6):
    if dist.get_rank() == 0:
        print(f"step {step}/5 loss {float(x) / step:.3f}", flush=True)
dist.destroy_process_group()
`

// A real torchrun: the ranks of all nodes meet at the first one.
func torchrun(t *testing.T, d *desk) {
	if exec.Command("/usr/bin/python3", "-c", "import torch").Run() != nil {
		leaveOut(t, "python3-torch is not installed; make test-slurm installs it on Debian and Ubuntu")
	}
	d.write("train.py", reduces)
	d.profile("slurm", "count: 2, partition: gpu, gpus: 2", "engine: torchrun, command: train.py")
	if out := d.must("run", "--plain"); !strings.Contains(out, "world size 4") || !strings.Contains(d.stored(0), "step 5/5 loss 1.200") {
		t.Errorf("%s\n%s", out, d.stored(0))
	}
	d.clean()
}

const fallsOnce = `import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
dist.all_reduce(torch.ones(1))
if rank == dist.get_world_size() - 1 and not os.path.exists("fell"):
    open("fell", "x").close()
    sys.exit("the first life ends here")
sum = torch.ones(1)
dist.all_reduce(sum)
print("rank", rank, "sum", int(sum), "restarts", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
dist.destroy_process_group()
`

// Its agents start the ranks again, all of them, and no job is handed in for that.
func torchrunAgain(t *testing.T, d *desk) {
	if exec.Command("/usr/bin/python3", "-c", "import torch").Run() != nil {
		leaveOut(t, "python3-torch is not installed; make test-slurm installs it on Debian and Ubuntu")
	}
	before := lastJob()
	d.write("train.py", fallsOnce)
	d.profile("slurm", "count: 2, partition: gpu, gpus: 2", "engine: torchrun, restarts: 2, command: train.py")
	out := d.must("run", "--plain")
	var all string // its agents deal out the ranks in an order of their own
	for place := range 4 {
		all += d.stored(place)
	}
	for rank := range 4 {
		if !strings.Contains(all, fmt.Sprintf("rank %d sum 4 restarts ", rank)) {
			t.Errorf("rank %d is not through:\n%s", rank, all)
		}
	}
	// An agent that hears of the other's failure before its own ranks fail by it has them
	// meet again, and counts no restart of its own.
	if !strings.Contains(all, "sum 4 restarts 1\n") {
		t.Errorf("nobody was started again:\n%s", all)
	}
	if strings.Count(all, "the first life ends here") != 1 {
		t.Errorf("one rank failed once:\n%s", all)
	}
	if handed := jobsSince(before); handed != 1 {
		t.Errorf("%d jobs were handed in\n%s", handed, out)
	}
	d.clean()
	// On one node: of two, the agent that gives up first need not be that of the rank that
	// has failed, and the other's end is then told as one by the stop.
	d.profile("slurm", "count: 1, partition: gpu, gpus: 2", "engine: torchrun, restarts: 2, command: train.py")
	d.write("train.py", strings.Replace(fallsOnce, ` and not os.path.exists("fell")`, "", 1))
	if out, err := d.try("run", "--plain"); err == nil || !strings.Contains(out, "the first life ends here") {
		t.Errorf("a rank that fails each time: %v\n%s", err, out)
	}
	d.clean()
}

// Each is a sentence, within ten seconds, and nothing is handed in.
func preflight(t *testing.T, d *desk) {
	before := lastJob()
	for _, c := range []struct{ machines, want, next string }{
		{"partition: gpuu", `there is no partition "gpuu": did you mean "gpu"?`, "gpu, spot"},
		{"account: lbb", `you have no account "lbb" on this cluster: did you mean "lab"?`, "yours: lab"},
		{"qos: tinny", `there is no QOS "tinny": did you mean "tiny"?`, "normal"},
		{"time: 3h", "machines.time is 3h, and partition gpu gives 1h at most", "lower it"},
		{"qos: tiny, time: 10m", "the QOS tiny gives 5m at most", "another QOS"},
		{"partition: gpu}\nlimits: {lifetime: 2h", "limits.lifetime is 2h, and partition gpu gives 1h at most", "another partition"},
		{"time: soon", `machines.time: "soon" is no time limit`, "4h30m"},
		{"gpus: 4", "4 × GPU are asked for on each node, and no node of partition gpu has more than 2", "raise machines.count"},
		{"gpus: 1, gpu_type: a10", `no node of partition gpu has a GPU of type "a10": did you mean "a100"?`, "a100"},
		{"count: 9", "3 nodes of partition gpu have what each node is to have, and 9 are asked for", "lower machines.count"},
		{"mem: 64G", "0 nodes of partition gpu have what each node is to have", "machines.mem"},
	} {
		d.profile("slurm", c.machines, "engine: plain, command: train.py 1")
		inTime(t, c.machines, func() {
			if out, err := d.try("run", "--plain"); err == nil || !strings.Contains(out, c.want) || !strings.Contains(out, c.next) {
				t.Errorf("%s: %v\n%s", c.machines, err, out)
			}
		})
		d.must("down", "--all", "--plain")
	}
	if handed := jobsSince(before); handed != 0 {
		t.Errorf("%d jobs were handed in", handed)
	}
	d.profile("slurm", "partition: gpu", "engine: plain, command: train.py 1")
	refused := func(command func() *exec.Cmd, want string) {
		t.Helper()
		inTime(t, want, func() {
			if out, err := command().CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%v, not %q:\n%s", err, want, out)
			}
		})
		_, _ = d.try("down", "--all", "--plain")
	}
	refused(func() *exec.Cmd {
		c := d.command("run", "--plain")
		c.Env = append(c.Env, "HOME="+d.base+"/rig/local")
		return c
	}, "the home directory is not shared: node n")
	refused(func() *exec.Cmd { return without(t, d, "sbatch") }, "there is no sbatch on the PATH of a login there")
	if out := d.must("plan"); !strings.Contains(out, "#SBATCH --partition=gpu") || !strings.Contains(out, "srun --nodes") || !strings.Contains(out, "expects the job to begin at") {
		t.Errorf("the plan does not show the script:\n%s", out)
	}
}

// inTime holds that something takes ten seconds at most. The machine may be busy with
// something else for a while, but not each time.
func inTime(t *testing.T, what string, do func()) {
	t.Helper()
	took := time.Duration(0)
	for range 5 {
		began := time.Now()
		do()
		if took = time.Since(began); took <= 10*time.Second {
			return
		}
	}
	t.Errorf("%s: it took %v", what, took)
}

// What can be had is told as the cluster has it now, and as its scheduler expects.
func offered(t *testing.T, d *desk) {
	type row struct {
		Instance string `json:"instance_type"`
		GPU      string
		GPUs     int
		VCPUs    int
		Queue    struct {
			Nodes     int
			Up        int      `json:"nodes_up"`
			FreeNodes int      `json:"nodes_free"`
			FreeGPUs  int      `json:"gpus_free"`
			Limit     float64  `json:"time_limit_s"`
			BeginsIn  *float64 `json:"begins_in_s"`
			Accounts  []string
			QOS       []string
		}
	}
	ask := func() map[string]row {
		var answer struct{ Offers []row }
		out := d.must("offers", "--provider", "slurm", "--json")
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all := map[string]row{}
		for _, r := range answer.Offers {
			all[r.Instance] = r
		}
		return all
	}
	gpu := ask()["gpu"]
	q := gpu.Queue
	if gpu.GPU != "a100" || gpu.GPUs != 2 || q.Nodes != 3 || q.Up != 3 || q.FreeNodes != 3 || q.FreeGPUs != 6 || q.Limit != 3600 || q.BeginsIn == nil || *q.BeginsIn > 60 ||
		!slices.Contains(q.Accounts, "lab") || !slices.Contains(q.QOS, "tiny") {
		t.Errorf("%+v", gpu)
	}
	holds := strings.TrimSpace(must(t, "sbatch", "--parsable", "--partition=gpu", "--nodes=3", "--gres=gpu:2", "--time=30", "--output=/dev/null", "--wrap=sleep 300"))
	t.Cleanup(func() { _ = exec.Command("scancel", holds).Run() })
	d.await("the nodes are taken", time.Minute, func() bool { return strings.Contains(must(t, "squeue", "-h", "-o", "%T", "-j", holds), "RUNNING") })
	q = ask()["gpu"].Queue
	if q.FreeNodes != 0 || q.FreeGPUs != 0 || q.BeginsIn == nil || *q.BeginsIn < 1200 || *q.BeginsIn > 2400 {
		t.Errorf("while its nodes are taken: %+v", q)
	}
	if out := d.must("offers", "--provider", "slurm", "--gpu", "A100", "--gpus", "2"); !strings.Contains(out, "2 × a100") || !strings.Contains(out, "0 of 6") || !regexp.MustCompile(`in (30|2\d)m`).MatchString(out) {
		t.Errorf("%s", out)
	}
	if out := d.must("offers", "--provider", "slurm", "--gpu", "H100"); !strings.Contains(out, "has such nodes") || !strings.Contains(out, "gpu, spot") {
		t.Errorf("%s", out)
	}
}

// without is a run of dlwb on a machine on which one program is not.
func without(t *testing.T, d *desk, missing string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath(missing)
	if err != nil {
		t.Fatal(err)
	}
	c := d.command("-m", "sh", "-c", `mount --bind /dev/null "$0" && exec "$@"`, program, d.program, "run", "--plain")
	c.Path, err = exec.LookPath("unshare")
	if c.Args[0] = "unshare"; err != nil {
		t.Fatal(err)
	}
	return c
}

// A command beside the ranks, telemetry, a port, and what the run has written.
func entered(t *testing.T, d *desk) {
	d.write("train.py", `import http.server, os, sys, threading, time
os.makedirs(os.environ["DLWB_RESULTS"], exist_ok=True)
open(os.environ["DLWB_RESULTS"] + "/from-rank-" + os.environ["RANK"], "w").write("here")
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(os.uname().nodename.encode())
rank = int(os.environ["RANK"])
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1 + rank])), Hello)
threading.Thread(target=server.serve_forever, daemon=True).start()
for step in range(1, 4): print(f"step {step}/40 loss 1", flush=True)
while not os.path.exists(sys.argv[3]): time.sleep(0.1)
`)
	port := testport.Free(t)
	d.profile("slurm", "count: 2, partition: gpu, gpus: 1", fmt.Sprintf("engine: plain, command: train.py %d %d %s", port, testport.Free(t), d.until()))
	wait := d.started()
	if out := d.must("exec", "jobs", "--", "uname", "-n"); !strings.Contains(out, "node0 | n1") || !strings.Contains(out, "node1 | n2") {
		t.Errorf("exec says\n%s", out)
	}
	if out := d.must("exec", "jobs", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES of $SLURM_JOB_ID"); !strings.Contains(out, "node0 | 0 of ") {
		t.Errorf("exec says\n%s", out)
	}
	forward := d.command("forward", "jobs", fmt.Sprint(port), "--plain")
	out, err := forward.StdoutPipe()
	if err == nil {
		err = forward.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(2*time.Minute, func() { _ = forward.Process.Kill() })
	address := ""
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		address = regexp.MustCompile(`http://[^\s]+`).FindString(lines.Text())
	}
	got, err := exec.Command("curl", "-sSL", "--max-time", "60", "--cookie", "", address).CombinedOutput()
	if err != nil || string(got) != "n1" {
		t.Errorf("%s says %q, %v", address, got, err)
	}
	late.Stop()
	_ = forward.Process.Kill()
	_ = forward.Wait()
	for _, node := range []string{"0", "1"} {
		sample := regexp.MustCompile(`"event":"sample".*"node":` + node)
		d.await("node "+node+" tells its telemetry", 2*time.Minute, func() bool { return sample.MatchString(d.said()) })
	}
	d.letGo()
	if word, cause, _ := verdict(t, wait()); word != "succeeded" {
		t.Errorf("%s: %s", word, cause)
	}
	for _, name := range []string{"from-rank-0", "from-rank-1"} {
		if found, _ := filepath.Glob(filepath.Join(d.at, "state/runs/*/results/*/"+name)); len(found) != 1 {
			all, _ := exec.Command("find", filepath.Join(d.at, "state/runs")).Output()
			t.Errorf("%s did not come home:\n%s", name, all)
		}
	}
	d.clean()
}

// The rank that failed is named with its code, and the others end.
func failing(t *testing.T, d *desk) {
	for _, c := range []struct{ end, word, cause string }{
		{"sys.exit(7)", "failed", "rank 1 on node1 exited with code 7"},
		{"sys.exit(66)", "failed", "rank 1 on node1 exited with code 66"}, // a code that the script has too
		{"os.kill(os.getpid(), 9)", "killed", "rank 1 on node1 was killed by SIGKILL"},
	} {
		died := filepath.Join(d.at, "died")
		c.end = fmt.Sprintf("open(%q, 'w').write(str(time.time())); %s", died, c.end)
		// Rank 0 would go on for as long as the job may.
		d.write("train.py", strings.Replace(trains, "    time.sleep", "    if rank == 1 and step == 5: "+c.end+"\n    if step == 5: time.sleep(1000)\n    time.sleep", 1))
		d.profile("slurm", "count: 2, partition: gpu", "engine: plain, command: train.py 0.2")
		out, _ := d.try("run", "--json")
		if word, cause, _ := verdict(t, out); word != c.word || !strings.Contains(cause, c.cause) {
			t.Errorf("%s: %s, %s", c.end, word, cause)
		}
		text, _ := os.ReadFile(died)
		at, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			t.Fatal(err)
		}
		ended := regexp.MustCompile(`"event":"run_ended",[^}]*"time":"([^"]+)"`).FindStringSubmatch(out)
		if ended == nil {
			t.Fatalf("%s: no end is told:\n%s", c.end, out)
		}
		over, err := time.Parse(time.RFC3339Nano, ended[1])
		if took := over.Sub(time.UnixMilli(int64(at * 1000))); err != nil || took > 30*time.Second {
			t.Errorf("%s: the others went on for %v, %v", c.end, took, err)
		}
	}
	d.clean()
}

func cancelled(t *testing.T, d *desk) {
	d.profile("slurm", "count: 2, partition: gpu", "engine: plain, command: train.py 0.1 "+d.until())
	wait := d.started()
	d.must("stop", "jobs", "--plain")
	if word, cause, code := verdict(t, wait()); word != "stopped" || !strings.Contains(cause, "stopped by request") || code != 130 {
		t.Errorf("stop: %s, %s, %d", word, cause, code)
	}
	wait = d.started()
	if out, err := exec.Command("scancel", append([]string{"--user=root", "--partition=gpu"}, jobs("RUNNING")...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if word, cause, _ := verdict(t, wait()); word != "stopped" || !strings.Contains(cause, "was cancelled by root with scancel, not by dlwb") {
		t.Errorf("scancel: %s, %s", word, cause)
	}
	d.clean()
}

// What waits says where it stands and why, and can be left and taken up again.
func queueing(t *testing.T, d *desk) {
	holds := strings.TrimSpace(must(t, "sbatch", "--parsable", "--partition=gpu", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap=sleep 300"))
	cancel := func() { _ = exec.Command("scancel", holds).Run() }
	t.Cleanup(cancel)
	d.await("the nodes are taken", time.Minute, func() bool { return strings.Contains(must(t, "squeue", "-h", "-o", "%T", "-j", holds), "RUNNING") })
	d.profile("slurm", "count: 2, partition: gpu", "engine: plain, command: train.py 0.05")
	d.must("run", "--plain", "--detach")
	said, wait := d.attached()
	d.await("why it waits is told", 90*time.Second, func() bool {
		return strings.Contains(said(), "place 1 of 1; the nodes that it needs are busy (Resources")
	})
	cancel()
	if err := wait(); err != nil || !strings.Contains(said(), "every rank ended with code 0") {
		t.Errorf("%v\n%s", err, said())
	}
	d.clean()
}

// attached is a dlwb that watches a run which somebody began, what it has said so far, and
// its end.
func (d *desk) attached() (said func() string, wait func() error) {
	d.t.Helper()
	out, err := os.CreateTemp(d.t.TempDir(), "said")
	if err != nil {
		d.t.Fatal(err)
	}
	c := d.command("attach", "jobs", "--plain")
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	d.t.Cleanup(func() { _ = c.Process.Kill(); _ = out.Close() })
	said = func() string { text, _ := os.ReadFile(out.Name()); return string(text) }
	wait = func() error {
		defer time.AfterFunc(8*time.Minute, func() { _ = c.Process.Kill() }).Stop()
		return <-ended
	}
	return said, wait
}
