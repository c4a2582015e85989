//go:build unix

package engine

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testport"
)

// torchPython finds an interpreter that has PyTorch, or skips the test.
func torchPython(t *testing.T) string {
	t.Helper()
	for _, python := range []string{os.Getenv("DLWB_TEST_PYTHON"), "python3", "/usr/bin/python3"} {
		if python == "" {
			continue
		}
		out, err := exec.Command(python, "-c", "import sys, torch.distributed; print(sys.executable)").Output()
		if err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	t.Skip("no python3 with PyTorch here: install it with `apt-get install python3-torch`, or name one in DLWB_TEST_PYTHON")
	return ""
}

// oldTorch says whether it is the PyTorch that has to be told what it does by
// itself elsewhere.
func oldTorch(t *testing.T, python string) bool {
	t.Helper()
	out, err := exec.Command(python, "-c", "import sys, torch; print(torch.__version__.startswith('1.') and sys.version_info >= (3, 11))").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)) == "True"
}

// launch runs every process of a plan on this machine, as if each node were
// another, and gives the exit codes in order.
func launch(t *testing.T, plan Plan) []int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	var started []*exec.Cmd
	for _, procs := range plan.Nodes {
		for _, p := range procs {
			cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
			cmd.Env = append(os.Environ(), p.Env...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
			out, err := os.Create(filepath.Join(t.TempDir(), p.Log))
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdout, cmd.Stderr = out, out
			t.Cleanup(func() {
				if said, err := os.ReadFile(out.Name()); err == nil && t.Failed() {
					t.Logf("%s:\n%s", p.Name, said)
				}
				_ = out.Close()
			})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			started = append(started, cmd)
		}
	}
	codes := make([]int, len(started))
	for i, cmd := range started {
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		codes[i] = cmd.ProcessState.ExitCode()
	}
	if ctx.Err() != nil {
		t.Fatalf("the ranks did not end in time; exit codes %v", codes)
	}
	return codes
}

// loopbackJob is the all-reduce script on nodes that are all this machine.
func loopbackJob(t *testing.T, nodes int, args ...string) ([]Node, Job) {
	t.Helper()
	rank, err := filepath.Abs("testdata/rank.sh")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/allreduce.py")
	if err != nil {
		t.Fatal(err)
	}
	loopback := make([]Node, nodes)
	for i := range loopback {
		loopback[i] = Node{Host: "127.0.0.1", Interface: loopbackInterface(t)}
	}
	python := torchPython(t)
	return loopback, Job{
		Command:    append([]string{script}, args...),
		Python:     python,
		OldTorch:   oldTorch(t, python),
		RankScript: rank,
		RunDir:     t.TempDir(),
		MasterPort: testport.Free(t),
		MaxThreads: 2,
	}
}

func loopbackInterface(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	t.Skip("this machine has no loopback interface")
	return ""
}

func readRank(t *testing.T, job Job, name string) string {
	t.Helper()
	said, err := os.ReadFile(filepath.Join(job.RunDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(said))
}

func TestRanksOfTwoNodesReachEachOther(t *testing.T) {
	sample.Leave(t)
	for _, name := range []string{withTorch, withoutTorch} { // the others: make test-frameworks
		t.Run(name, func(t *testing.T) {
			nodes, job := loopbackJob(t, 2)
			plan, err := Make(name, nodes, job)
			if err != nil {
				t.Fatal(err)
			}
			for i, code := range launch(t, plan) {
				if code != 0 {
					t.Errorf("process %d exited with %d", i, code)
				}
			}
			for i, file := range []string{"rank-0.log", "rank-1.log"} {
				want := "rank " + string(rune('0'+i)) + " of world size 2 sum 2 threads 2"
				if got := readRank(t, job, file); !strings.Contains(got, want) {
					t.Errorf("%s says %q, want %q", file, got, want)
				}
			}
		})
	}
}

func TestTwoRanksOfOneNodeShareItsCores(t *testing.T) {
	nodes, job := loopbackJob(t, 1)
	job.ProcsPerNode = 2
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	plan, err := Make("torchrun", nodes, job)
	if err != nil {
		t.Fatal(err)
	}
	if codes := launch(t, plan); codes[0] != 0 {
		t.Errorf("the agent exited with %d", codes[0])
	}
	if got := readRank(t, job, "rank-1.log"); !strings.Contains(got, "rank 1 of world size 2 sum 2 threads 1") {
		t.Errorf("rank 1 says %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "torchelastic_*")); len(left) > 0 {
		t.Errorf("torchrun left %v behind", left)
	}
}

func TestTheExitCodeOfAFailedRankIsKept(t *testing.T) {
	nodes, job := loopbackJob(t, 1, "1")
	job.ProcsPerNode = 2
	plan, err := Make("torchrun", nodes, job)
	if err != nil {
		t.Fatal(err)
	}
	if codes := launch(t, plan); codes[0] == 0 {
		t.Error("the agent exited with 0 although rank 1 failed")
	}
	if got := readRank(t, job, "rank-1.exit"); got != "3" {
		t.Errorf("the record of rank 1 says %q, want 3", got)
	}
}
