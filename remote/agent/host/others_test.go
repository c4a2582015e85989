//go:build linux

package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/hostclaim"
)

// training starts a process of a run in a home, whose parent is gone, and gives its
// number.
func training(t *testing.T, home, run, agent string) int {
	t.Helper()
	c := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "DLWB_RUN=" + run, "DLWB_RUN_DIR=" + filepath.Join(home, ".dlwb/runs", run), "DLWB_AGENT=" + agent}
	said, err := c.Output()
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(said)))
	must(t, err)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// lives reports whether a process is there and no zombie.
func lives(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestRunsOfOthersOutliveADown(t *testing.T) {
	for _, c := range []struct {
		name, home, run, code string
		files                 []string
		life                  string
	}{
		{"a job of Slurm's", "", "job-1.n0", "dlwb/lab/code", []string{".dlwb/jobs/job-1/script", ".dlwb/jobs/job-1/agent"}, ""},
		{"a job of Slurm's in a cluster of the same name", "", "job-1.n12", "dlwb/demo/code", []string{".dlwb/jobs/job-1/script"}, ""},
		{"a cluster of another provider whose node this is", "", "run-9", "dlwb/mine/code", nil, ""},
		{"a cluster of another provider and of the same name", "", "run-9", "dlwb/demo/code", nil, "bb"},
		{"a node of a local cluster", ".local/state/dlwb/clusters/mine/node0/home", "run-9", "dlwb/demo/code", nil, ""},
		{"a node of a local cluster whose records are in ~/.dlwb", ".dlwb/clusters/mine/node0/home", "run-9", "dlwb/demo/code",
			[]string{".dlwb/dlwb.db", ".dlwb/runs/run-9/rank-0.log", ".dlwb/locks/x"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			h := New(home)
			agents := filepath.Join(home, "shm")
			h.Agents = []string{agents}
			h.Do(request(hostclaim.Take, "aa"))
			work(t, home)
			put(t, home, ".dlwb/runs/run-1/dir", filepath.Join(home, "dlwb/demo/code")+"\n")
			theirs := filepath.Join(home, c.home)
			files := []string{filepath.Join(c.home, c.code, "train.py"), filepath.Join(c.home, ".dlwb/runs", c.run, "launch"), "shm/agent-1", "shm/.agent-1.whole"}
			if c.home == "" {
				files = append(files, ".dlwb/jupyter.bb.0", ".dlwb/tensorboard.bb.1")
			}
			for _, file := range append(files, c.files...) {
				put(t, home, file, "theirs")
			}
			put(t, home, ".dlwb/jupyter.aa.0", "ours")
			put(t, home, ".dlwb/tensorboard.aa.1", "ours")
			put(t, home, "shm/agent-2", "x")
			put(t, theirs, filepath.Join(".dlwb/runs", c.run, "dir"), filepath.Join(theirs, c.code)+"\n")
			if c.life != "" {
				put(t, theirs, filepath.Join(".dlwb/runs", c.run, "life"), c.life+"\n")
				put(t, home, ".dlwb/runs/run-1/life", "aa\n")
			}
			if c.home == "" { // its launcher starts ranks by it
				files = append(files, ".dlwb/bin/agent-1")
			}
			other := training(t, theirs, c.run, filepath.Join(agents, "agent-1"))
			own := training(t, home, "run-1", "")
			must(t, os.Remove(filepath.Join(home, ".dlwb/bin/stop"))) // else it is asked

			a := h.Do(request(hostclaim.Remove, "aa"))
			if a.Failed != "" || a.Left.Processes != 0 {
				t.Errorf("%+v", a)
			}
			if !lives(other) {
				t.Error("the training of another cluster was ended")
			}
			for end := time.Now().Add(time.Minute); lives(own); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the cluster's own run goes on")
				}
			}
			for _, file := range append(files, c.files...) {
				if !exists(h.at(file)) {
					t.Errorf("%s was removed", file)
				}
			}
			for _, file := range []string{hostclaim.File, ".dlwb/runs/run-1", ".dlwb/peers", ".dlwb/peer_key", ".dlwb/jupyter.aa.0", ".dlwb/tensorboard.aa.1", "shm/agent-2"} {
				if exists(h.at(file)) {
					t.Errorf("%s is left", file)
				}
			}
			if lent := c.home == "" && strings.HasPrefix(c.code, "dlwb/demo"); !lent && exists(h.at("dlwb/demo")) {
				t.Error("the cluster's own code is left")
			}
			left := slices.DeleteFunc(a.Left.Places, func(p hostclaim.Place) bool { return p.Path == ".dlwb" && len(a.Left.Others) > 0 })
			if len(left) > 0 {
				t.Errorf("left: %+v", left)
			}
		})
	}
}

// The agent of another home may lie beside ours, where homes execute nothing.
func TestAnAgentThatRunsForAnotherHomeStays(t *testing.T) {
	home, agents := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	must(t, err)
	for i, of := range []string{home, t.TempDir()} {
		agent := filepath.Join(agents, "agent-"+strconv.Itoa(i))
		must(t, exec.Command("cp", self, agent).Run()) // by a process of its own: nobody who forks meanwhile holds it open
		c := exec.Command(agent)
		c.Env = []string{"HOME=" + of, "HOST_TEST_WAIT=yes"}
		_, err = c.StdinPipe()
		must(t, err)
		must(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
	h := New(home)
	h.Agents = []string{agents}
	h.Do(request(hostclaim.Take, "aa"))
	if a := h.Do(request(hostclaim.Remove, "aa")); a.Failed != "" || len(a.Left.Places) > 0 {
		t.Errorf("%+v", a)
	}
	if exists(filepath.Join(agents, "agent-0")) || !exists(filepath.Join(agents, "agent-1")) {
		t.Errorf("of an agent for this home and one for another are there %q", names(agents, 9))
	}
}

func TestWhatNobodyElseHasGoesWithTheClaim(t *testing.T) {
	home := t.TempDir()
	h := New(home)
	h.Do(request(hostclaim.Take, "aa"))
	work(t, home)
	put(t, home, ".dlwb/runs/run-1/dir", filepath.Join(home, "dlwb/demo/code")+"\n")
	put(t, home, ".dlwb/runs/run-2.n0/dir", "/somewhere/else\n") // no job has that name
	if a := h.Do(request(hostclaim.Remove, "aa")); a.Failed != "" || len(a.Left.Places)+len(a.Left.Others) > 0 {
		t.Errorf("%+v", a)
	}
	if left := tree(t, home); left != "" {
		t.Errorf("left:\n%s", left)
	}
}
