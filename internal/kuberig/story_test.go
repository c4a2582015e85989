//go:build linux

package kuberig_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/kuberig"
	"github.com/dlwb/dlwb/internal/overlay"
	"github.com/dlwb/dlwb/internal/sample"
)

var shared struct {
	sync.Once
	cluster *kuberig.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.cluster != nil {
		_ = shared.cluster.Stop()
	}
	os.Exit(code)
}

func cluster(t *testing.T) *kuberig.Cluster {
	t.Helper()
	if why := kuberig.Missing(); why != "" {
		t.Skip(why)
	}
	shared.Do(func() { shared.cluster, shared.err = kuberig.Start("kubeflow,kuberay") })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// project is a directory with a dlwb and a state of its own.
type project struct {
	*testing.T
	*jobstory.Project
}

func newProject(t *testing.T, program, kubeconfig string) *project {
	t.Helper()
	p := &project{t, jobstory.New(t, program, "DLWB_KEEPER=off", "KUBECONFIG="+kubeconfig)}
	t.Cleanup(func() { _, _ = p.Try("down", "--all", "--plain") })
	return p
}

func (p *project) profile(text string) {
	p.Helper()
	p.Write("dlwb.yaml", text)
	p.Trust("dlwb.yaml")
}

// eventOf is the one event of a name that a command with --json printed.
func (p *project) eventOf(out, name string) map[string]any {
	p.Helper()
	for line := range strings.Lines(out) {
		var e map[string]any
		if json.Unmarshal([]byte(line), &e) == nil && e["event"] == name {
			return e
		}
	}
	p.Fatalf("there is no event %s in\n%s", name, out)
	return nil
}

const script = `import os, sys, time
rank = int(os.environ["RANK"])
for step in range(1, 41):
    if rank == 0:
        print(f"step {step}/40 loss {4 / step:.4f}", flush=True)
    time.sleep(0.02)
print("rank", rank, "is through", flush=True)
`

// One script and one profile, in which the provider alone is another: the same
// series, the same code, a clean receipt.
func TestOnlyTheProviderChanges(t *testing.T) {
	c, program := cluster(t), overlay.Build(t, nil)
	series, ends := map[string]string{}, map[string]any{}
	for _, provider := range []string{"local", "kubernetes"} {
		p := newProject(t, program, c.Kubeconfig)
		p.Write("train.py", script)
		p.profile("name: same\nprovider: " + provider + "\nmachines: {count: 2}\nrun: {engine: plain, command: train.py}\n")
		out := p.Must("run", "--json", "--down")
		run, _ := p.eventOf(out, "run_started")["run"].(string)
		series[provider] = p.Must("export", run, "--format", "csv")
		ends[provider] = p.eventOf(out, "run_ended")["exit_code"]
		if proven := p.eventOf(out, "receipt")["proven"]; proven != true {
			t.Errorf("%s: the receipt says %v", provider, proven)
		}
	}
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT[^,\n]*|same-[0-9a-f-]*`)
	a, b := times.ReplaceAllString(series["local"], ""), times.ReplaceAllString(series["kubernetes"], "")
	if a != b || !strings.Contains(a, "loss") || ends["local"] != ends["kubernetes"] {
		t.Errorf("they differ:\n%s\n%s\n%v", a, b, ends)
	}
}

const serving = `import http.server, os, threading, time
served = http.server.ThreadingHTTPServer(("127.0.0.1", 8123), http.server.SimpleHTTPRequestHandler)
if os.environ["RANK"] == "0":
    threading.Thread(target=served.serve_forever, daemon=True).start()
while not os.path.exists("enough"):
    time.sleep(0.1)
`

// While a job runs, its pods are nodes: commands, files and ports of theirs are
// reached by the commands that the keys of the screen stand for.
func TestPodsOfAJobAreReachedAsNodesAre(t *testing.T) {
	c, program := cluster(t), overlay.Build(t, nil)
	p := newProject(t, program, c.Kubeconfig)
	p.Write("train.py", serving)
	p.profile("name: reached\nprovider: kubernetes\nmachines: {count: 2}\nrun: {engine: plain, command: train.py}\n")
	run := p.Command("run", "--json")
	said := p.started(run, "run_started")
	if out := p.Must("exec", "reached", "--plain", "--", "sh", "-c", "pwd; command -v python3 >/dev/null && echo python"); strings.Count(out, "python") != 2 {
		t.Errorf("the pods say\n%s", out)
	}
	forward := p.Command("forward", "reached", "8123", "--plain")
	told := p.started(forward, "127.0.0.1:")
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(told())
	answer, err := http.Get("http://" + address + "/train.py")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || string(text) != serving {
		t.Errorf("the port of the pod gives %q, %v", text, err)
	}
	_ = forward.Process.Signal(os.Interrupt)
	_ = forward.Wait()
	p.Must("exec", "reached", "--plain", "--", "touch", "/dlwb/work/code/enough")
	if err := run.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said())
	}
	if out, err := p.Try("exec", "reached", "--plain", "--", "true"); err == nil || !strings.Contains(out, "no job of it runs") {
		t.Errorf("without a job: %v\n%s", err, out)
	}
	if proven := p.eventOf(p.Must("down", "reached", "--json"), "receipt")["proven"]; proven != true {
		t.Errorf("the receipt says %v", proven)
	}
}

// started starts a command and waits until it has printed something; said is all that
// it has printed.
func (p *project) started(cmd *exec.Cmd, until string) (said func() string) {
	p.Helper()
	var mu sync.Mutex
	var all strings.Builder
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = cmd.Stdout
		err = cmd.Start()
	}
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			mu.Lock()
			fmt.Fprintln(&all, lines.Text())
			mu.Unlock()
		}
	}()
	said = func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
	for end := time.Now().Add(3 * time.Minute); !strings.Contains(said(), until); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("%q does not come:\n%s", until, said())
		}
	}
	return said
}

const ddp = `import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(30):
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(step * world + rank))
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if rank == 0:
        print(f"step {step + 1} loss {loss.item():.5f}", flush=True)
seen = torch.tensor([float(rank)])
dist.all_reduce(seen)
print(f"rank {rank} of {world} sees {seen.item()}", flush=True)
dist.destroy_process_group()
`

// A PyTorchJob of Kubeflow with a master and two workers trains by torch: each
// rank by itself, and under torchrun with two in each pod.
func TestAPyTorchJobTrains(t *testing.T) {
	c, program := cluster(t), overlay.Build(t, nil)
	for engine, k := range map[string]struct {
		machines, procs string
		sees            []string
	}{
		"plain":    {"count: 3", "1", []string{"rank 0 of 3 sees 3.0", "rank 1 of 3 sees 3.0", "rank 2 of 3 sees 3.0"}},
		"torchrun": {"count: 2", "2", []string{"rank 0 of 4 sees 6.0", "rank 1 of 4 sees 6.0", "rank 2 of 4 sees 6.0", "rank 3 of 4 sees 6.0"}},
	} {
		t.Run(engine, func(t *testing.T) {
			p := newProject(t, program, c.Kubeconfig)
			p.Write("train.py", ddp)
			p.profile("name: ddp\nprovider: kubernetes\nmachines: {" + k.machines + ", kind: pytorchjob, gpus: 1}\nrun: {engine: " + engine + ", procs_per_node: " + k.procs +
				", command: train.py, env: {GLOO_SOCKET_IFNAME: eth0, OMP_NUM_THREADS: \"1\"}}\n")
			out, err := p.Try("run", "--json", "--down")
			if err != nil {
				for rank := range k.sees {
					log, _ := p.Try("logs", "ddp", "--rank", fmt.Sprint(rank))
					t.Logf("rank %d:\n%s", rank, log)
				}
				t.Fatalf("%v\n%s", err, out)
			}
			if end := p.eventOf(out, "run_ended"); end["verdict"] != "succeeded" || end["exit_code"] != 0.0 {
				t.Errorf("%v", end)
			}
			if proven := p.eventOf(out, "receipt")["proven"]; proven != true {
				t.Errorf("the receipt says %v", proven)
			}
			run, _ := p.eventOf(out, "run_started")["run"].(string)
			if n := strings.Count(p.Must("export", run, "--format", "csv"), "loss"); n < 30 {
				t.Errorf("the curve has %d points", n)
			}
			for rank, want := range k.sees {
				if log := p.Must("logs", run, "--rank", fmt.Sprint(rank)); !strings.Contains(log, want) {
					t.Errorf("rank %d:\n%s", rank, log)
				}
			}
		})
	}
}

// jobKinds are the resources of the kinds that a job becomes.
var jobKinds = []string{"pytorchjobs", "tfjobs", "rayjobs", "jobs"}

// killer is an API server that kills dlwb at one of its calls: before the call is
// passed on, or when its answer is there and nobody has seen it.
type killer struct {
	mu     sync.Mutex
	calls  int
	at     int  // 0: at none
	writes bool // only calls that change something count
	after  bool
	victim *exec.Cmd
	made   []string // jobs that were made
	server *httptest.Server
}

func newKiller(t *testing.T, c *kuberig.Cluster) (*killer, string) {
	t.Helper()
	text, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server := regexp.MustCompile(`https://127\.0\.0\.1:\d+`).FindString(string(text))
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	k := &killer{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	proxy.FlushInterval = -1
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method == http.MethodPost && r.StatusCode == http.StatusCreated && slices.Contains(jobKinds, path.Base(r.Request.URL.Path)) && r.Request.URL.Query().Get("dryRun") == "" {
			k.mu.Lock()
			k.made = append(k.made, r.Request.URL.Path)
			k.mu.Unlock()
		}
		if r.Request.Header.Get("X-Kill") != "" {
			_ = k.victim.Process.Kill()
		}
		return nil
	}
	k.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		if !k.writes || r.Method != http.MethodGet {
			k.calls++
		}
		if (!k.writes || r.Method != http.MethodGet) && k.calls == k.at && k.after {
			r.Header.Set("X-Kill", "now")
		} else if (!k.writes || r.Method != http.MethodGet) && k.calls == k.at {
			_ = k.victim.Process.Kill()
		}
		k.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(k.server.CloseClientConnections)
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), server, k.server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	return k, file
}

// run runs a command of dlwb and kills it at its call number at.
func (k *killer) run(p *project, at int, after bool, args ...string) (calls int) {
	cmd := p.Command(args...)
	k.mu.Lock()
	k.calls, k.at, k.after, k.victim, k.writes = 0, at, after, cmd, args[0] == "down"
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	k.mu.Unlock()
	_ = cmd.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = 0
	return k.calls
}

// dlwb is killed at each call of a submit and of a down. Whoever comes later knows
// the job or that there is none, makes no second one, and leaves nothing.
func TestNothingIsLeftOrMadeTwiceWhereverDlwbIsKilled(t *testing.T) {
	c, program := cluster(t), overlay.Build(t, nil)
	k, kubeconfig := newKiller(t, c)
	begin := func(t *testing.T, kind, engine string) *project {
		p := newProject(t, program, kubeconfig)
		p.Write("train.py", "import os, time\nopen(os.environ['DLWB_RESULTS'] + '/x', 'w').write('x')\ntime.sleep(300)\n")
		p.profile("name: killed\nprovider: kubernetes\nmachines: {count: 2, kind: " + kind + "}\nrun: {engine: " + engine + ", command: train.py, env: {A: b}}\n")
		k.mu.Lock()
		k.made = nil
		k.mu.Unlock()
		return p
	}
	p := begin(t, "pytorchjob", "plain")
	submits := k.run(p, 0, false, "run", "--plain", "--detach")
	downs := k.run(p, 0, false, "down", "killed", "--plain")
	t.Logf("%d calls to submit, %d to take down", submits, downs)
	type kill struct {
		at    int
		after bool
		down  bool
	}
	var all []kill
	for _, after := range []bool{false, true} {
		for at := range submits {
			all = append(all, kill{at + 1, after, false})
		}
		for at := range downs {
			all = append(all, kill{at + 1, after, true})
		}
	}
	most := sample.Of(t, min(16, len(all)), len(all), "moments at which dlwb is killed")
	for i := range most {
		at := all[i*len(all)/most]
		of := [][2]string{{"pytorchjob", "plain"}, {"rayjob", "ray"}, {"tfjob", "tensorflow"}, {"job", "tensorflow"}}[i%4]
		kind, engine := of[0], of[1]
		t.Run(fmt.Sprintf("%s %+v", kind, at), func(t *testing.T) {
			p := begin(t, kind, engine)
			if at.down {
				k.run(p, 0, false, "run", "--plain", "--detach")
				k.run(p, at.at, at.after, "down", "killed", "--plain")
			} else {
				k.run(p, at.at, at.after, "run", "--plain", "--detach")
				_, _ = p.Try("run", "--plain", "--detach") // the same again, as a person would
			}
			if out, err := p.Try("down", "--all", "--plain"); err != nil {
				t.Errorf("down: %v\n%s", err, out)
			}
			left(t, c)
			k.mu.Lock()
			made := slices.Clone(k.made)
			k.mu.Unlock()
			if len(made) > 2 {
				t.Errorf("%d jobs were made of two runs at most", len(made))
			}
		})
	}
}

// left holds that nothing of dlwb's is in the cluster.
func left(t *testing.T, c *kuberig.Cluster) {
	t.Helper()
	for _, kind := range []string{"pods", "configmaps", "secrets", "services", "jobs.v1.batch", "pytorchjobs.v1.kubeflow.org", "tfjobs.v1.kubeflow.org", "rayjobs.v1.ray.io", "rayclusters.v1.ray.io"} {
		var names []string
		for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
			list, err := c.Resource(kind, "default").List(context.Background(), meta.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			names = nil
			for _, o := range list.Items {
				if strings.HasPrefix(o.GetName(), "killed-") {
					names = append(names, o.GetName())
				}
			}
			if len(names) == 0 {
				break
			}
		}
		if len(names) > 0 {
			t.Errorf("%s are left: %v", kind, names)
		}
	}
}
