package cli

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

// torchIsThere looks once: importing PyTorch takes a second.
var torchIsThere = sync.OnceValue(func() bool {
	return exec.Command("/usr/bin/python3", "-c", "import torch").Run() == nil
})

// needTorch skips where the system's Python has no PyTorch: the engine is then
// a plain one, which other tests drive.
func needTorch(t *testing.T) {
	t.Helper()
	if !torchIsThere() {
		t.Skip("there is no PyTorch for /usr/bin/python3: apt-get install python3-torch")
	}
}

// torchProfile writes a profile of two local nodes under torchrun.
func (b *bed) torchProfile(script, more string) {
	b.t.Helper()
	b.write("train.py", script)
	b.write("dlwb.yaml", "name: bed\nprovider: local\nenvironment: {python: /usr/bin/python3}\n"+
		"run:\n  engine: torchrun\n  command: train.py\n"+more)
}

// launchers are the bed's torchrun agents and ranks.
func (b *bed) launchers() []string {
	var found []string
	for _, p := range b.processes() {
		if strings.Contains(p, "torch.distributed.run") || strings.Contains(p, "train.py") || strings.Contains(p, "supervise") {
			found = append(found, p)
		}
	}
	return found
}

// ddp is a model of one number that both ranks move together: what every rank
// prints in the end proves that their gradients were averaged.
const ddp = `
import os, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
total = torch.tensor([float(rank + 1)])
dist.all_reduce(total)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
with torch.no_grad():
    model.module.weight.fill_(0.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 21):
    loss = ((model(torch.ones(1, 1)) - (rank + 1.0)) ** 2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(f"step {step}/20 loss: {loss.item():.4f}", flush=True)
print(f"sum {total.item():.0f} world {world} weight {model.module.weight.item():.2f}", flush=True)
dist.destroy_process_group()
`

func TestTorchrunAddsUpOverTwoNodes(t *testing.T) {
	needTorch(t)
	b := newBed(t)
	b.torchProfile(ddp, "machines: {count: 2}\n")
	r := b.run("run", "--json")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	begun := r.one(t, "run_started")
	if begun["engine"] != "torchrun" || begun["world_size"] != 2.0 || begun["nodes"] != 2.0 {
		t.Errorf("run_started %v", begun)
	}
	for rank := range 2 {
		log := b.run("logs", "--rank", fmt.Sprint(rank), "--plain")
		if want := fmt.Sprintf("rank %d | sum 3 world 2 weight 1.4", rank); !strings.Contains(log.stdout, want) {
			t.Errorf("%q is not in the log:\n%s", want, log.stdout)
		}
	}
	if left := b.launchers(); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

// A torchFault ends badly on rank 1, in the middle of training together.
type torchFault struct {
	name, fault, more string
	code              int
	verdict           string
	rank              float64 // -1: nobody can tell
	cause             []string
	lastLine          string
	apart             int // seconds that rank 0 goes on by itself
}

var torchFaults = []torchFault{
	{
		name: "exits with a code", code: 3, verdict: "failed", rank: 1, cause: []string{"rank 1 on node1 exited with code 3"},
		fault: "print('no more memory for this', flush=True); os._exit(3)", lastLine: "no more memory for this",
	}, {
		name: "is killed", code: 137, verdict: "killed", rank: 1, cause: []string{"rank 1 on node1 was killed by SIGKILL"},
		fault: "print('goodbye', flush=True); os.kill(os.getpid(), 9)", lastLine: "goodbye",
	}, {
		name: "raises", code: 1, verdict: "failed", rank: 1, cause: []string{"rank 1 on node1 exited with code 1"},
		fault: "raise ValueError('the loss is not a number')", lastLine: "ValueError: the loss is not a number",
	}, {
		// Rank 0 goes on for as long as it does not need rank 1. That both have begun takes
		// seconds, in which nothing is printed.
		name: "hangs", code: 124, verdict: "hung", rank: 1, more: "limits: {stall: 15s}\n",
		cause:    []string{"rank 1 on node1 has printed nothing"},
		fault:    "print('waiting for nothing', flush=True); time.sleep(3600)",
		lastLine: "waiting for nothing", apart: 3,
	}, {
		name: "hangs while the other one waits for it", code: 124, verdict: "hung", rank: 1, more: "limits: {stall: 15s}\n",
		cause:    []string{"rank 1 on node1 has printed nothing", "sleeps"},
		fault:    "print('waiting for nothing', flush=True); time.sleep(3600)",
		lastLine: "waiting for nothing",
	},
}

// together trains on both ranks until rank 1 comes to its fault. Rank 0 then
// waits for it in a collective, as trainings do.
const together = `
import os, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(1, 100000):
    x = torch.ones(1)
    dist.all_reduce(x)
    if rank == 0:
        print(f"step {step} loss: {1 / step:.4f}", flush=True)
    if rank == 1 and step == 20:
        %s
    for i in range(10 * %d if step == 20 else 0):
        print("on my own", flush=True)
        time.sleep(0.1)
    time.sleep(0.02)
`

func TestBadEndsUnderTorchrunAreToldWithRankAndLastLines(t *testing.T) {
	sample.Leave(t)
	needTorch(t)
	// Those that end at once come one after the other on the same nodes; those of which
	// the stall is waited for go beside them.
	t.Run("at once", func(t *testing.T) {
		b := newBed(t)
		for _, f := range torchFaults {
			if f.more == "" {
				t.Run(f.name, func(t *testing.T) { f.holds(t, b) })
			}
		}
	})
	for _, f := range torchFaults {
		if f.more == "" {
			continue
		}
		t.Run(f.name, func(t *testing.T) { f.holds(t, newBed(t)) })
	}
}

// holds plays a fault on a bed and judges what is told of it.
func (f torchFault) holds(t *testing.T, b *bed) {
	t.Helper()
	b.torchProfile(fmt.Sprintf(together, f.fault, f.apart), "machines: {count: 2}\n"+f.more)
	began := time.Now()
	r := b.run("run", "--json")
	if took := time.Since(began); took > 2*time.Minute { // the launcher by itself waits for longer
		t.Errorf("it took %s", took)
	}
	end := r.one(t, "run_ended")
	if r.code != f.code || end["exit_code"] != float64(f.code) || end["verdict"] != f.verdict || end["rank"] != f.rank {
		t.Errorf("exit code %d, want %d; run_ended %v", r.code, f.code, end)
	}
	for _, c := range f.cause {
		if !strings.Contains(fmt.Sprint(end["cause"]), c) {
			t.Errorf("cause %v, want %q", end["cause"], c)
		}
	}
	if !strings.Contains(fmt.Sprint(end["last_lines"]), f.lastLine) {
		t.Errorf("last lines %v, want %q", end["last_lines"], f.lastLine)
	}
	if left := b.launchers(); len(left) > 0 {
		t.Errorf("processes of the run are left: %v", left)
	}
}

// busy keeps a core at work on every rank, as training does.
const busy = `
import os, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
print(f"together {x.item():.0f} local {os.environ['LOCAL_RANK']} of {os.environ['LOCAL_WORLD_SIZE']}", flush=True)
a = torch.rand(200, 200)
while True:
    a = (a @ a) / a.norm()
    print("busy", flush=True)
    time.sleep(0.001)
`

// That they are launched by torchrun, with every word of their commands, is what the
// plan said.
func TestSimulatedGPUsGetARankEachAndFollowTheTraining(t *testing.T) {
	needTorch(t)
	b := newBed(t)
	b.write("train.py", busy)
	b.write("dlwb.yaml", "name: bed\nprovider: local\nmachines: {count: 2, simulate_gpus: 2}\nenvironment: {python: /usr/bin/python3}\n"+
		"run: {engine: auto, command: \"train.py --to {run}\"}\n")
	plan := b.planned()
	s := b.start("run", "--down", "--json")
	begun := s.await("the run", func(e printedEvent) bool { return e["event"] == "run_started" })
	if begun["world_size"] != 4.0 {
		t.Errorf("run_started %v", begun)
	}
	s.await("all four ranks together", func(e printedEvent) bool {
		return e["event"] == "log_line" && strings.Contains(fmt.Sprint(e["line"]), "together 4 local 0 of 2")
	})
	seen := map[float64]bool{}
	s.await("busy GPUs on both nodes", func(e printedEvent) bool {
		if e["event"] != "sample" {
			return false
		}
		if busyGPUs(t, e) {
			seen[e["node"].(float64)] = true
		}
		return len(seen) == 2
	})
	if r := b.run("stop", "--json"); r.code != 0 {
		t.Errorf("stop: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	s.await("the receipt", func(e printedEvent) bool { return e["event"] == "receipt" && e["proven"] == true })
	if code := s.end(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	b.ranAsPlanned(plan, begun, "bed", "torchrun 4")
}

// busyGPUs reports whether a sample shows two simulated GPUs, one at work.
func busyGPUs(t *testing.T, e printedEvent) bool {
	t.Helper()
	sample := e["sample"].(map[string]any)
	gpus, _ := sample["gpus"].([]any)
	if len(gpus) == 0 {
		return false // before the first answer of nvidia-smi
	}
	if len(gpus) != 2 || sample["simulated"] != true {
		t.Fatalf("a sample of a node with two simulated GPUs: %v", e)
	}
	for _, g := range gpus {
		if util, ok := g.(map[string]any)["util"].(float64); ok && util > 0 {
			return true
		}
	}
	return false
}
