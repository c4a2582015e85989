package ec2story

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
)

// ddp is a model of one number that all ranks move together: what it comes to
// proves that their gradients were averaged over the machines.
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
mean = (world + 1) / 2
for step in range(1, 21):
    loss = ((model(torch.ones(1, 1)) - (rank + 1.0)) ** 2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    off = (model.module.weight.item() - mean) ** 2
    print(f"step {step}/20 loss: {off:.6f}", flush=True)
print(f"sum {total.item():.0f} world {world} weight {model.module.weight.item():.2f}", flush=True)
if rank == 0:
    os.makedirs("out", exist_ok=True)
    torch.save(model.module.state_dict(), "out/model.pt")
dist.destroy_process_group()
`

const torchRun = `environment: {python: /usr/bin/python3}
run: {engine: torchrun, command: train.py}
results: {paths: [out/]}
`

// Machines that did not exist train together with PyTorch over the network
// between them, the results come home, and nothing is left.
func TestFourMachinesTrainTogetherAndAreGone(t *testing.T) {
	long(t)
	needTorch(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(4, torchRun)
	b.write("train.py", ddp)
	began := time.Now()
	r := b.run("run", "--down", "--json")
	took := time.Since(began)
	if r.code != 0 {
		t.Fatal(r)
	}
	if n, calls := b.aws.Launched(), b.calls("RunInstances"); n != 4 || calls != 1 {
		t.Errorf("%d instances by %d calls, want 4 by one", n, calls)
	}
	b.trainedTogether(r)
	receipt := r.one(t, "receipt")
	if receipt["proven"] != true {
		t.Errorf("receipt %v", receipt)
	}
	b.nothingLeft("after run --down")
	t.Logf("4 machines, from nothing to the receipt in %.1f s; steps:%s; cost $%.4f by the receipt, $%.4f by the account",
		took.Seconds(), stepTimes(r), receipt["cost"], b.aws.Spent())
}

// trainedTogether holds what the ddp of four has to come to.
func (b *bench) trainedTogether(r result) {
	b.t.Helper()
	if end := r.one(b.t, "run_ended"); end["exit_code"] != 0.0 || end["verdict"] != "succeeded" {
		b.t.Errorf("run_ended %v", end)
	}
	if begun := r.one(b.t, "run_started"); begun["engine"] != "torchrun" || begun["world_size"] != 4.0 || begun["nodes"] != 4.0 {
		b.t.Errorf("run_started %v", begun)
	}
	var loss []float64
	for _, e := range r.events("point") {
		if e["name"] == "loss" {
			loss = append(loss, e["value"].(float64))
		}
	}
	if len(loss) != 20 || loss[19] >= loss[0]/100 {
		b.t.Errorf("the loss does not fall: %v", loss)
	}
	for rank := range 4 {
		log := b.run("logs", "--rank", fmt.Sprint(rank), "--plain")
		if want := "sum 10 world 4 weight 2.4"; !strings.Contains(log.stdout, want) {
			b.t.Errorf("rank %d does not say %q:\n%s", rank, want, log)
		}
	}
	model := filepath.Join(r.one(b.t, "results")["dir"].(string), "out", "model.pt")
	if info, err := os.Stat(model); err != nil || info.Size() == 0 {
		b.t.Errorf("the model did not come home: %v", err)
	}
}

// stepTimes are the steps with their seconds.
func stepTimes(r result) string {
	var s strings.Builder
	for _, e := range r.events("step_ended") {
		fmt.Fprintf(&s, " %s %.1f s", e["step"], e["duration_s"])
	}
	return s.String()
}
