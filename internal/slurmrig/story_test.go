//go:build linux

package slurmrig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/overlay"
)

// The life of jobs on a real Slurm, by the real dlwb. No test here looks inside.

// desk is somebody at a login node: a home that the nodes share, a project, and a
// state of dlwb's own.
type desk struct {
	t                   *testing.T
	base, home, dir, at string
	program             string
	env                 []string
	said                func() string       // what the run that was started last has said
	dlwb                int                 // the process that watches it
	user                *syscall.Credential // nil: who runs the test
}

// trains takes the seconds of a step and, where it is not to go beyond its tenth before
// the test lets it go, the path of a file that is there from then on.
const trains = `import os, sys, time
rank = int(os.environ["RANK"])
print("rank", rank, "of", os.environ["WORLD_SIZE"], "on", os.uname().nodename, "GPUs", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
for step in range(1, 41):
    if rank == 0:
        print(f"step {step}/40 loss {4 / step:.4f}", flush=True)
    time.sleep(float(sys.argv[1]))
    while step == 10 and len(sys.argv) > 2 and not os.path.exists(sys.argv[2]): time.sleep(0.1)
print("rank", rank, "is through", flush=True)
`

// until is the file that a training of the desk waits for.
func (d *desk) until() string { return filepath.Join(d.at, "go") }

func (d *desk) letGo() {
	d.t.Helper()
	if err := os.WriteFile(d.until(), nil, 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func newDesk(t *testing.T, base, program string) *desk {
	t.Helper()
	at, err := os.MkdirTemp(base, "desk")
	if err == nil {
		err = os.Chmod(at, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, base: base, at: at, home: filepath.Join(at, "home"), dir: filepath.Join(at, "p"), program: program}
	d.env = []string{"HOME=" + d.home, "DLWB_HOME=" + filepath.Join(at, "state"), "DLWB_KEEPER=off", "XDG_STATE_HOME=",
		// What a user may have set for Slurm's commands changes nothing.
		"SQUEUE_FORMAT=%i", "SBATCH_PARTITION=spot", "SBATCH_TIMELIMIT=2", "SINFO_FORMAT=%n", "SLURM_TIME_FORMAT=relative", "SQUEUE_STATES=RUNNING"}
	for _, made := range []string{d.home, d.dir} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.write("train.py", trains)
	t.Cleanup(func() { _, _ = d.try("down", "--all", "--plain") })
	return d
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

var shownHash = regexp.MustCompile(`--hash ([0-9a-f]+)`)

// profile writes a trusted profile with these machines and this run.
func (d *desk) profile(provider, machines, run string) {
	d.t.Helper()
	d.write("dlwb.yaml", "name: jobs\nprovider: "+provider+"\nmachines: {"+machines+"}\nrun: {"+run+"}\n")
	out, _ := d.try("plan")
	if !strings.Contains(out, "not trusted") {
		return // it was trusted before
	}
	hash := shownHash.FindStringSubmatch(out)
	if hash == nil {
		d.t.Fatalf("no hash is shown in\n%s", out)
	}
	d.must("trust", "--hash", hash[1], "dlwb.yaml")
}

func (d *desk) command(args ...string) *exec.Cmd {
	c := exec.Command(d.program, args...)
	c.Dir, c.Env = d.dir, append(os.Environ(), d.env...)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: d.user}
	return c
}

func (d *desk) try(args ...string) (string, error) {
	out, err := d.command(args...).CombinedOutput()
	return string(out), err
}

func (d *desk) must(args ...string) string {
	d.t.Helper()
	out, err := d.try(args...)
	if err != nil {
		d.t.Fatalf("dlwb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// logs are those of a rank in the records of all runs, the oldest first.
func (d *desk) logs(rank int) []string {
	logs, _ := filepath.Glob(filepath.Join(d.at, "state/runs", "*", fmt.Sprintf("rank-%d.log", rank)))
	slices.SortFunc(logs, func(a, b string) int {
		one, errOne := os.Stat(a)
		two, errTwo := os.Stat(b)
		if errOne != nil || errTwo != nil {
			return 0
		}
		return one.ModTime().Compare(two.ModTime())
	})
	return logs
}

// stored is the log of a rank in the record of the latest run.
func (d *desk) stored(rank int) string {
	logs := d.logs(rank)
	if len(logs) == 0 {
		return ""
	}
	text, _ := os.ReadFile(logs[len(logs)-1])
	return string(text)
}

// await waits for a condition.
func (d *desk) await(what string, limit time.Duration, is func() bool) {
	d.t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("%s: not within %v\n%s", what, limit, queue())
		}
	}
}

func queue() string {
	c := exec.Command("squeue", "--states=all", "--format=%i|%j|%T|%r|%N")
	out, _ := c.CombinedOutput()
	return string(out)
}

// jobs are the lines of the queue about jobs of dlwb in some state; empty: any. A
// controller that does not answer is asked again: no answer is no empty queue.
func jobs(state string) (all []string) {
	var out []byte
	err := errors.New("not asked")
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); {
		out, err = exec.Command("squeue", "--states=all", "--noheader", "--format=%i|%T|%j").Output()
	}
	if err != nil {
		return []string{"no answer: " + err.Error()}
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Split(strings.TrimSpace(line), "|"); len(f) == 3 && strings.HasPrefix(f[2], "dlwb-jobs") && (state == "" || f[1] == state) {
			all = append(all, f[0])
		}
	}
	return all
}

// started begins a run and waits until rank 0 has printed a few steps.
func (d *desk) started() (wait func() string) {
	d.t.Helper()
	before := len(d.logs(0))
	out, err := os.CreateTemp(d.t.TempDir(), "said")
	if err != nil {
		d.t.Fatal(err)
	}
	c := d.command("run", "--json")
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.dlwb = c.Process.Pid
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Wait() }()
	d.t.Cleanup(func() { _ = c.Process.Kill(); <-ended; _ = out.Close() })
	said := func() string { text, _ := os.ReadFile(out.Name()); return string(text) }
	d.said = said
	d.await("the run prints", 3*time.Minute, func() bool {
		printed := len(d.logs(0)) > before && strings.Contains(d.stored(0), "step 3/40")
		select {
		case <-ended:
			if !printed {
				d.t.Fatalf("dlwb ended:\n%s", said())
			}
		default:
		}
		return printed
	})
	return func() string {
		defer time.AfterFunc(8*time.Minute, func() { _ = c.Process.Kill() }).Stop()
		<-ended
		return said()
	}
}

// verdict is how the run ended, as was told.
func verdict(t *testing.T, said string) (word, cause string, code int) {
	t.Helper()
	for line := range strings.Lines(said) {
		var e struct {
			Event, Verdict, Cause string
			Code                  int `json:"exit_code"`
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Event == "run_ended" {
			return e.Verdict, e.Cause, e.Code
		}
	}
	t.Fatalf("no end is told:\n%s", said)
	return "", "", 0
}

// clean holds that nothing is left of a desk.
func (d *desk) clean() {
	d.t.Helper()
	out := d.must("down", "jobs", "--plain")
	if !strings.Contains(out, "everything is gone") {
		d.t.Errorf("down says\n%s", out)
	}
	if left, _ := filepath.Glob(d.home + "/.dlwb"); len(left) > 0 {
		d.t.Errorf("left in the home: %q", left)
	}
	d.empty()
}

// empty holds that no job is left of a desk, and nothing of one in its home.
func (d *desk) empty() {
	d.t.Helper()
	for _, dir := range []string{"jobs", "runs"} {
		if left, _ := filepath.Glob(d.home + "/.dlwb/" + dir); len(left) > 0 {
			d.t.Errorf("left in the home: %q", left)
		}
	}
	if left, _ := filepath.Glob(d.home + "/dlwb"); len(left) > 0 {
		d.t.Errorf("left in the home: %q", left)
	}
	for _, state := range []string{"PENDING", "RUNNING", "COMPLETING"} {
		if left := jobs(state); len(left) > 0 {
			d.t.Errorf("left in the queue, %s: %q", state, left)
		}
	}
}

func TestJobsOfARealSlurm(t *testing.T) {
	if os.Getenv("DLWB_RIGS") == "" {
		t.Skip("NOT RUN: it takes minutes, and needs a Slurm with accounting: make test-slurm installs and runs it")
	}
	program := func() string {
		script(t) // first: it says what is missing
		return overlay.Build(t, nil)
	}()
	base := Up(t, "-n", "3", "-g", "2", "-a")
	for _, story := range []struct {
		name string
		play func(t *testing.T, d *desk)
	}{
		{"the same as on nodes", sameStory},
		{"torchrun trains over all nodes", torchrun},
		{"torchrun starts its ranks again", torchrunAgain},
		{"what stands in the way is said before", preflight},
		{"what can be had", offered},
		{"its nodes are entered, and its results come home", entered},
		{"a rank that fails or is killed", failing},
		{"those that serve end with the run", servedByOthers},
		{"one fails where others serve", servedAndFailing},
		{"those that serve begin again with the job", servedAndRequeued},
		{"real frameworks that need more than ranks", realFrameworks},
		{"real parameter servers", realServers},
		{"a real Ray begins again, and loses a part", rayAgain},
		{"a real MPI begins again, and loses a rank", mpiAgain},
		{"stopped, and cancelled by somebody else", cancelled},
		{"the queue", queueing},
		{"the controller and a slurmd are started again", restarted},
		{"the controller forgets that it has begun a job", begunTwice},
		{"the controller forgets a job", forgotten},
		{"a node fails", nodeFails},
		{"preempted, and back", preempted},
		{"killed at each call", crashes},
		{"through ssh", throughSSH},
		{"its logs are whole however often they are cut", cuts},
		{"the trials of a sweep are jobs", sweeps},
		{"a step of a chain that is done is skipped", chains},
		{"the time is up", timeUp},
	} {
		t.Run(story.name, func(t *testing.T) { story.play(t, newDesk(t, base, program)) })
	}
}
