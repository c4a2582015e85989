package examples_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testport"
)

// withoutTorch runs a script as if PyTorch were not installed.
const withoutTorch = `import os, runpy, sys
sys.modules["torch"] = None
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")`

// output is what a process printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// rank is one process of a training.
type rank struct {
	cmd  *exec.Cmd
	out  output
	errs output
	done chan error
}

func start(t *testing.T, env []string, name string, args ...string) *rank {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // a hang: busy machines are slow
	r := &rank{cmd: exec.CommandContext(ctx, name, args...), done: make(chan error, 1)}
	r.cmd.Env = append(os.Environ(), append(env, "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")...)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.errs
	// torchrun's ranks are sessions of their own, and end with its TERM.
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(syscall.SIGTERM) }
	r.cmd.WaitDelay = 10 * time.Second
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	go func() { r.done <- r.cmd.Wait() }()
	return r
}

// exit waits for the end and returns the exit code, 128+n after signal n.
func (r *rank) exit(t *testing.T) int {
	t.Helper()
	err := <-r.done
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &e):
		t.Fatalf("%s: %v", r.cmd, err)
	}
	if s := e.Sys().(syscall.WaitStatus); s.Signaled() {
		return 128 + int(s.Signal())
	}
	return e.ExitCode()
}

// waitFor waits until the rank has printed something.
func (r *rank) waitFor(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(r.out.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in\n%s%s", text, r.out.String(), r.errs.String())
		}
	}
}

func script(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("charlm/train.py")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// plain starts a world of two without PyTorch.
func plain(t *testing.T, args ...string) (ranks [2]*rank) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; on Debian and Ubuntu: apt install python3")
	}
	port := strconv.Itoa(testport.Free(t))
	for i := range ranks {
		env := []string{"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "WORLD_SIZE=2", fmt.Sprint("RANK=", i), "LOCAL_RANK=0"}
		ranks[i] = start(t, env, python, append([]string{"-c", withoutTorch, script(t)}, args...)...)
	}
	return ranks
}

var (
	lossLine = regexp.MustCompile(`(?m)^(?:epoch \d+/\d+ )?step (\d+)\S* loss: (\d+\.\d+)`)
	// Whoever has trained for a second only may begin with an empty line.
	sampled = regexp.MustCompile(`(?m)^a sample of what it writes now:\n(?:    .*\n)*?    .*\S`)
)

// trained checks the whole of what rank 0 printed.
func trained(t *testing.T, out, about, dir string) {
	t.Helper()
	losses := lossLine.FindAllStringSubmatch(out, -1)
	if len(losses) < 3 {
		t.Fatalf("few losses in\n%s", out)
	}
	first, _ := strconv.ParseFloat(losses[0][2], 64)
	last, _ := strconv.ParseFloat(losses[len(losses)-1][2], 64)
	if first < 1.3*last {
		t.Errorf("the loss went from %v to %v only", first, last)
	}
	for i, l := range losses[1:] {
		before, _ := strconv.Atoi(losses[i][1])
		if step, _ := strconv.Atoi(l[1]); step <= before {
			t.Errorf("step %d after step %d", step, before)
		}
	}
	if !strings.Contains(out, about) || !strings.Contains(out, "world size 2\n") || !strings.Contains(out, " val_loss: ") || !sampled.MatchString(out) {
		t.Errorf("no %q, world size, val_loss or sample in\n%s", about, out)
	}
	if lines := strings.Count(out, "\n"); lines > 200 {
		t.Errorf("%d lines", lines)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "sample.txt")); err != nil || len(text) < 100 {
		t.Errorf("the sample is not in its file: %q, %v", text, err)
	}
}

func TestPlainPythonTrainsOnTwoRanks(t *testing.T) {
	sample.Leave(t)
	dir := t.TempDir()
	ranks := plain(t, "--steps", "500", "--out", dir)
	for i, r := range ranks {
		if code := r.exit(t); code != 0 {
			t.Fatalf("rank %d ended with %d:\n%s", i, code, r.errs.String())
		}
	}
	trained(t, ranks[0].out.String(), "charlm: plain Python", dir)
	if out := ranks[1].out.String(); out != "" {
		t.Errorf("rank 1 printed %s", out)
	}
}

// timed trains by a clock of its own: a step takes a second, a validation, which
// comes in the middle between two lines, a hundred.
const timed = `import sys, time
sys.modules["torch"] = None
sys.path.insert(0, sys.argv.pop(1))
import train

now = [0.0]
time.perf_counter = lambda: now[0]

def take(seconds, result):
    now[0] += seconds
    return result

class Trainer:
    rank, world, checkpoint, validation_rows = 0, 1, "none", 1
    step = lambda self, *_: take(1, (1.0, 0.0, 0.0))

train.validate = lambda *_: take(100, 1.0)
run = train.Run(train.arguments(), Trainer(), (b"abc" * 1000, b"abc" * 1000, "abc"), print)
run.save = lambda: None
run.begin()
run.fit()`

func TestTheSpeedIsThatOfTheSteps(t *testing.T) {
	r := start(t, nil, "python3", "-c", timed, filepath.Dir(script(t)), "--steps", "1000", "--epochs", "3", "--batch", "64")
	if code := r.exit(t); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &r.out, &r.errs)
	}
	speeds := regexp.MustCompile(`tokens/s: (\S+)`).FindAllStringSubmatch(r.out.String(), -1)
	if len(speeds) < 50 || strings.Count(r.out.String(), "val_loss") != 3 {
		t.Fatalf("%d speeds in\n%s", len(speeds), &r.out)
	}
	for _, s := range speeds {
		if s[1] != "64" {
			t.Errorf("%s tokens/s, and a step of 64 took a second", s[1])
		}
	}
}

func TestATerminatedTrainingSavesAndIsResumed(t *testing.T) {
	dir := t.TempDir()
	ranks := plain(t, "--seconds", "60", "--out", dir)
	ranks[0].waitFor(t, "so ")
	if err := ranks[1].cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for i, r := range ranks {
		if code := r.exit(t); code != 143 {
			t.Errorf("rank %d ended with %d:\n%s", i, code, r.errs.String())
		}
	}
	saved := regexp.MustCompile(`saved .* at step (\d+)`).FindStringSubmatch(ranks[0].out.String())
	if saved == nil {
		t.Fatalf("nothing saved:\n%s", ranks[0].out.String())
	}
	again := plain(t, "--steps", saved[1], "--resume", "--out", dir)
	for i, r := range again {
		if code := r.exit(t); code != 0 {
			t.Errorf("rank %d, resumed, ended with %d:\n%s", i, code, r.errs.String())
		}
	}
	if want := "resumed from " + filepath.Join(dir, "checkpoint.json") + " at step " + saved[1]; !strings.Contains(again[0].out.String(), want) {
		t.Errorf("no %q in\n%s", want, again[0].out.String())
	}
}

func TestALostRankEndsTheOtherWithOneLine(t *testing.T) {
	ranks := plain(t, "--seconds", "60", "--out", t.TempDir())
	ranks[0].waitFor(t, "so ")
	if err := ranks[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if code := ranks[1].exit(t); code != 137 {
		t.Errorf("the killed rank ended with %d", code)
	}
	code := ranks[0].exit(t)
	if text := ranks[0].errs.String(); code != 1 || !strings.HasPrefix(text, "charlm: lost another rank: ") || strings.Count(text, "\n") != 1 {
		t.Errorf("the other ended with %d and %q", code, text)
	}
}

// When the machine gets slower than it was measured, the time still holds.
func TestASlowMachineEndsInTime(t *testing.T) {
	dir := t.TempDir()
	// It is stopped when its speed is known and before it is through: after 0.6 s, and for
	// seconds on a machine that is busy with other tests.
	ranks := plain(t, "--seconds", "3", "--out", dir)
	ranks[0].waitFor(t, "so ")
	if err := ranks[1].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4600 * time.Millisecond) // longer than all of the time that it has
	if err := ranks[1].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for i, r := range ranks {
		if code := r.exit(t); code != 0 {
			t.Fatalf("rank %d ended with %d:\n%s", i, code, r.errs.String())
		}
	}
	out := ranks[0].out.String()
	if _, rest, ok := strings.Cut(out, "slower than expected: 4.5 s are over"); !ok || !strings.Contains(rest, " val_loss: ") || !sampled.MatchString(rest) {
		t.Errorf("it did not end early:\n%s", out)
	}
}

// debianPython is where Debian's python3-torch belongs.
const debianPython = "/usr/bin/python3"

func TestPyTorchTrainsOnOneNodeWithTwoRanks(t *testing.T) { torchrun(t, 1, 2) }

func TestPyTorchTrainsOnTwoNodes(t *testing.T) { torchrun(t, 2, 1) }

// torchrun trains with DistributedDataParallel and checks the whole of it.
func torchrun(t *testing.T, nodes, ranks int) {
	t.Helper()
	if err := exec.Command(debianPython, "-c", "import torch").Run(); err != nil {
		t.Skipf("%s has no PyTorch; on Debian and Ubuntu: apt install python3-torch", debianPython)
	}
	dir, port := t.TempDir(), strconv.Itoa(testport.Free(t))
	var agents []*rank
	for i := range nodes {
		// The flags per rank spare PyTorch 1.13 a fault of its own on Python 3.11.
		agents = append(agents, start(t, []string{"GLOO_SOCKET_IFNAME=lo"}, debianPython, "-m", "torch.distributed.run",
			fmt.Sprint("--nnodes=", nodes), fmt.Sprint("--nproc_per_node=", ranks), fmt.Sprint("--node_rank=", i),
			"--master_addr=127.0.0.1", "--master_port="+port, "--monitor_interval=0.2", "-r", "9:1", "-t", "9:1",
			"--log_dir", t.TempDir(), script(t), "--steps", "300", "--out", dir))
	}
	for i, a := range agents {
		if code := a.exit(t); code != 0 {
			t.Fatalf("node %d ended with %d:\n%s", i, code, a.errs.String())
		}
	}
	trained(t, agents[0].out.String(), "DistributedDataParallel", dir)
}
