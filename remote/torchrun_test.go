//go:build linux

package remote

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testport"
)

// pythonWithTorch is an interpreter with PyTorch; the test that needs one is skipped
// elsewhere, as the scripts know nothing of PyTorch.
func pythonWithTorch(t *testing.T) string {
	t.Helper()
	const python = "/usr/bin/python3"
	if out, err := exec.Command(python, "-c", "import importlib.util as u; print(u.find_spec('torch') is not None)").Output(); err != nil || strings.TrimSpace(string(out)) != "True" {
		t.Skip("/usr/bin/python3 has no PyTorch here")
	}
	return python
}

func TestARankUnderTorchrunThatFailsEndsTheOthers(t *testing.T) {
	python := pythonWithTorch(t)
	t.Parallel()
	b := newBox(t, "dash")
	program := `import os, sys, time
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], flush=True)
if os.environ["RANK"] == "1":
    sys.exit(3)
time.sleep(100)`
	b.launch([]Proc{{
		Name: "agent", Ranks: []int{0, 1}, Log: "agent.log",
		Env: []string{"OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo"},
		Argv: []string{python, "-m", "torch.distributed.run", "--nnodes=1", "--nproc_per_node=2", "--node_rank=0",
			"--master_addr=127.0.0.1", "--master_port=" + strconv.Itoa(testport.Free(t)), "-r", "9:1", "-t", "9:1", "--no_python",
			"sh", "~/.dlwb/bin/rank", "~/.dlwb/runs/r1", python, "-c", program},
	}})
	within(t, 18*time.Second, "the end", func() bool { return b.has("exit") })
	s := b.ended()
	wantOrder(t, s, "rank-ended 1 3", "stopping rank 1 on node0 exited with code 3", "ended 3")
	if b.read("rank-0.log") != "rank 0 of 2\n" || b.read("rank-1.log") != "rank 1 of 2\n" {
		t.Errorf("logs %q and %q; the agent said %s", b.read("rank-0.log"), b.read("rank-1.log"), b.read("agent.log"))
	}
	if r := s.Ranks[0]; r.Code != 143 {
		t.Errorf("rank 0 ended with %+v", r)
	}
	b.wantNothingLeft()
}
