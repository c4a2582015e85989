//go:build linux

package slurmrig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// A run goes on while Slurm's own programs are away.
func restarted(t *testing.T, d *desk) {
	d.profile("slurm", "count: 2, partition: gpu", "engine: plain, command: train.py 0.1 "+d.until())
	wait := d.started()
	var id string
	d.await("the job runs", time.Minute, func() bool {
		ids := jobs("RUNNING")
		if len(ids) == 1 {
			id = ids[0]
		}
		return len(ids) == 1
	})
	// The controller writes its disk every few seconds: where this is there, that is too.
	must(t, "scontrol", "update", "jobid="+id, "admincomment=running-"+id)
	d.await("the controller has it on its disk that the job runs", time.Minute, func() bool {
		return strings.Contains(string(d.onDisk()), "running-"+id)
	})
	Do(t, "ctld", "kill")
	Do(t, "node", "n1", "slurmd-kill")
	time.Sleep(3 * time.Second) // what is watched is that they are away
	Do(t, "node", "n1", "slurmd-start")
	Do(t, "ctld", "start")
	d.letGo()
	if word, cause, _ := verdict(t, wait()); word != "succeeded" {
		t.Errorf("%s: %s", word, cause)
	}
	d.clean()
}

// A controller that dies before its disk knows that a job runs finds the job waiting
// when it is back. It ends what its nodes run of it, and begins it again, as if for the
// first time.
func begunTwice(t *testing.T, d *desk) {
	d.profile("slurm", "count: 2, partition: gpu, sbatch: [--hold]", "engine: plain, command: train.py 0.1 "+d.until())
	wait, id, older := d.released()
	d.controllerKnows(older)
	d.await("the controller calls it waiting", time.Minute, func() bool { return slices.Contains(jobs("PENDING"), id) })
	// Its nodes are told to end what runs of it. One on which anything of it is left when
	// it begins again is drained.
	d.await("what runs of it is ended", time.Minute, func() bool {
		runs := Node(t, "n1", "ps -eo args") + Node(t, "n2", "ps -eo args")
		return !strings.Contains(runs, d.home+"/.dlwb/jobs") && !strings.Contains(runs, "slurmstepd: ["+id+".")
	})
	must(t, "scontrol", "release", id)
	d.await("it is begun again", 2*time.Minute, func() bool { return slices.Contains(jobs("RUNNING"), id) })
	d.letGo()
	said := wait()
	if word, cause, _ := verdict(t, said); word != "succeeded" {
		t.Errorf("%s: %s\n%s", word, cause, said)
	}
	if n := strings.Count(d.stored(0), "step 1/40 "); n != 2 {
		t.Errorf("it was begun %d times:\n%s", n, d.stored(0))
	}
	d.clean()
}

// A controller whose disk has nothing of a job ends it, and knows nothing of it.
func forgotten(t *testing.T, d *desk) {
	Do(t, "ctld", "stop") // which writes all that it knows
	before := d.onDisk()
	Do(t, "ctld", "start")
	d.profile("slurm", "count: 2, partition: gpu, sbatch: [--hold]", "engine: plain, command: train.py 0.1 "+d.until())
	wait, id, _ := d.released()
	d.controllerKnows(before)
	if word, cause, _ := verdict(t, wait()); word != "lost" || !strings.Contains(cause, "Slurm has forgotten job "+id) {
		t.Errorf("%s: %s", word, cause)
	}
	d.clean()
}

// released begins a run whose job is held, and lets it go when the controller has it on
// its disk, as older tells.
func (d *desk) released() (wait func() string, id string, older []byte) {
	d.t.Helper()
	let := make(chan string, 1)
	go func() { // the run prints only then
		defer close(let)
		for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			older = d.onDisk()
			if ids := jobs("PENDING"); len(ids) == 1 && strings.Contains(string(older), d.home+"/.dlwb/jobs/") {
				_ = exec.Command("scontrol", "release", ids[0]).Run()
				let <- ids[0]
				return
			}
		}
	}()
	wait = d.started()
	id, ok := <-let
	if !ok {
		d.t.Fatalf("the controller's disk never had the job:\n%s", queue())
	}
	return wait, id, older
}

// onDisk is what the controller has on its disk of all jobs.
func (d *desk) onDisk() []byte {
	text, _ := os.ReadFile(filepath.Join(d.base, "rig/state/job_state"))
	return text
}

// controllerKnows has the controller know of jobs what it once had on its disk.
func (d *desk) controllerKnows(state []byte) {
	d.t.Helper()
	Do(d.t, "ctld", "kill")
	if err := os.WriteFile(filepath.Join(d.base, "rig/state/job_state"), state, 0o600); err != nil {
		d.t.Fatal(err)
	}
	Do(d.t, "ctld", "start")
}

// A node that loses its power takes the run with it, where it is not requeued.
func nodeFails(t *testing.T, d *desk) {
	d.profile("slurm", "count: 2, partition: gpu, no_requeue: true", "engine: plain, command: train.py 0.1 "+d.until())
	wait := d.started()
	var node string
	d.await("rank 1 says where it is", time.Minute, func() bool {
		m := regexp.MustCompile(`on (n\d) `).FindStringSubmatch(d.stored(1))
		if m != nil {
			node = m[1]
		}
		return m != nil
	})
	Do(t, "node", node, "off")
	word, cause, _ := verdict(t, wait())
	Do(t, "node", node, "on")
	if word != "lost" || !strings.Contains(cause, "NODE_FAIL") {
		t.Errorf("%s: %s", word, cause)
	}
	d.clean()
	d.await("the node is back", 3*time.Minute, func() bool {
		return strings.Contains(must(t, "sinfo", "-h", "-p", "gpu", "-t", "idle", "-o", "%D"), "3")
	})
}

// A run that is preempted waits again and goes on, with the same log.
func preempted(t *testing.T, d *desk) {
	d.write("train.py", `import os, sys, time
print("words", sys.argv[1:], flush=True)
at = "step-of-" + os.environ["RANK"]
first = int(open(at).read()) if os.path.exists(at) else 0
for step in range(first + 1, 41):
    print(f"step {step}/40 loss {4 / step:.4f}", flush=True)
    open(at, "w").write(str(step))
    time.sleep(0.1)
    while step == 10: time.sleep(1) # until it is preempted: its next life begins behind
`)
	d.profile("slurm", "count: 3, partition: spot, cpus: 8", "engine: plain, command: train.py one, resume: --resume two")
	wait := d.started()
	d.preempt()
	said := wait()
	if word, cause, _ := verdict(t, said); word != "succeeded" || !strings.Contains(cause, "put it back into the queue, and began it again 1 time") {
		t.Errorf("%s: %s", word, cause)
	}
	if log := d.stored(0); !strings.Contains(log, "words ['one']\n") || !strings.Contains(log, "words ['one', '--resume', 'two']\n") {
		t.Errorf("run.resume is not what its next life begins with:\n%s", log)
	}
	if !strings.Contains(said, "back into the queue") || !strings.Contains(said, "run.resume is added") {
		t.Errorf("that it waits again is not told:\n%s", said)
	}
	steps := regexp.MustCompile(`step (\d+)/40`).FindAllStringSubmatch(d.stored(0), -1)
	if len(steps) != 40 || steps[39][1] != "40" {
		t.Errorf("it did not go on where it was:\n%s", d.stored(0))
	}
	d.clean()
}

// preempt has another job take the nodes of a run that stays at its tenth step, and lets
// its next life begin.
func (d *desk) preempt() {
	d.t.Helper()
	d.await("it is where it stays", time.Minute, func() bool { return strings.Contains(d.stored(0), "step 10/40") })
	other := strings.TrimSpace(must(d.t, "sbatch", "--parsable", "--partition=gpu", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap=sleep 8"))
	d.await("the other job has the nodes, or had them", 3*time.Minute, func() bool {
		state := must(d.t, "squeue", "-h", "-t", "all", "-o", "%T", "-j", other)
		return strings.Contains(state, "RUNNING") || strings.Contains(state, "COMPLET")
	})
	d.letGo()
	letGo := false
	d.await("its new beginning is let go", 4*time.Minute, func() bool { // else it waits for two minutes
		for _, id := range jobs("PENDING") {
			letGo = letGo || exec.Command("scontrol", "update", "jobid="+id, "StartTime=now").Run() == nil
		}
		return letGo || strings.Contains(d.stored(0), "--resume") // it began by itself
	})
}

func timeUp(t *testing.T, d *desk) {
	if testing.Short() {
		t.Skip("takes Slurm's shortest time limit, a minute")
	}
	d.profile("slurm", "count: 2, partition: gpu, time: 1m", "engine: plain, command: train.py 5")
	if word, cause, code := verdict(t, d.started()()); word != "time-limit" || !strings.Contains(cause, "at its time limit") || code != 124 {
		t.Errorf("%s: %s, %d", word, cause, code)
	}
	d.clean()
}

// A shim stands in front of Slurm's commands and kills dlwb before, or after, the
// call of a number, or at an sbatch of a number, which goes on some seconds later.
const shim = `#!/bin/sh
n=$(( $(cat "$SHIM/count" 2>/dev/null || echo 0) + 1 )); echo $n >"$SHIM/count"
[ "$n" != "$(cat "$SHIM/before" 2>/dev/null)" ] || kill -9 "$(cat "$SHIM/pid")"
PATH=${PATH#*:}
case $(basename "$0"):$* in
*--test-only*) ;;
sbatch:*)
	echo x >>"$SHIM/tried"
	if [ "$(grep -c x "$SHIM/tried")" = "$(cat "$SHIM/at" 2>/dev/null)" ]; then rm -f "$SHIM/at"; kill -9 "$(cat "$SHIM/pid")"; sleep 5; fi ;;
esac
"$(basename "$0")" "$@"; code=$?
[ "$(basename "$0")" != sbatch ] || case "$*" in *--test-only*) ;; *) [ $code != 0 ] || echo x >>"$SHIM/submitted" ;; esac
[ "$n" != "$(cat "$SHIM/after" 2>/dev/null)" ] || kill -9 "$(cat "$SHIM/pid")"
exit $code
`

// shims puts them in front of Slurm's commands for every dlwb from now on.
func (d *desk) shims() (bin string) {
	d.t.Helper()
	bin = filepath.Join(d.at, "shims")
	if err := os.Mkdir(bin, 0o755); err != nil {
		d.t.Fatal(err)
	}
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol", "sacct", "sinfo"} {
		if err := testprogram.Write(filepath.Join(bin, name), []byte(shim), 0o755); err != nil {
			d.t.Fatal(err)
		}
	}
	d.env = append(d.env, "PATH="+bin+":"+os.Getenv("PATH"), "SHIM="+bin)
	return bin
}

// Whenever dlwb is killed, no job is handed in twice and none is left.
func crashes(t *testing.T, d *desk) {
	bin := d.shims()
	d.profile("slurm", "count: 1, partition: gpu", "engine: plain, command: train.py 0.01")
	set := func(name string, n int) { _ = os.WriteFile(filepath.Join(bin, name), []byte(strconv.Itoa(n)), 0o600) }
	forget := func() {
		for _, name := range []string{"count", "before", "after", "submitted", "pid"} {
			_ = os.Remove(filepath.Join(bin, name))
		}
	}
	killed := 0
	const most = 16
	some := sample.Of(t, 5, most, "calls at which dlwb is killed")
	for i := range some {
		n := i * most / some
		for _, when := range []string{"before", "after"} {
			forget()
			set(when, n+1)
			c := d.command("run", "--plain", "--down")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			set("pid", c.Process.Pid)
			if _ = c.Wait(); c.ProcessState.ExitCode() != 0 {
				killed++
			}
			_, _ = os.Remove(filepath.Join(bin, "before")), os.Remove(filepath.Join(bin, "after"))
			attached, _ := d.try("attach", "jobs", "--plain")
			text, _ := os.ReadFile(filepath.Join(bin, "submitted"))
			if handed := strings.Count(string(text), "x"); handed > 1 {
				t.Errorf("%s call %d: %d jobs were handed in\n%s", when, n+1, handed, attached)
			}
			if out, err := d.try("down", "jobs", "--plain"); err != nil && !strings.Contains(out, "there is none of that name") {
				t.Errorf("%s call %d: down: %v\n%s", when, n+1, err, out)
			}
			d.empty()
		}
	}
	if killed == 0 {
		t.Error("dlwb was never killed")
	}
}

// The login node is another machine.
func throughSSH(t *testing.T, d *desk) {
	server := sshdtest.Start(t, sshdtest.Shell("env SLURM_CONF="+os.Getenv("SLURM_CONF")+" "+loginShell()))
	conf := filepath.Join(d.at, "ssh_config")
	host, port, _ := strings.Cut(server.Addr, ":")
	known := filepath.Join(d.at, "known_hosts")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(known, fmt.Sprintf("[%s]:%s %s\n", host, port, strings.TrimSpace(server.HostKey)))
	write(conf, fmt.Sprintf("Host login\n HostName %s\n Port %s\n User %s\n IdentityFile %s\n UserKnownHostsFile %s\n", host, port, server.User, server.KeyFile, known))
	d.env = append(d.env, "DLWB_SSH_CONFIG="+conf)
	d.profile("slurm", "count: 2, partition: gpu, login: login", "engine: plain, command: train.py 0.02")
	out := d.must("run", "--plain", "--down")
	if !strings.Contains(out, "every rank ended with code 0") || !strings.Contains(out, "everything is gone") || !strings.Contains(out, "login:"+server.Home) {
		t.Errorf("%s", out)
	}
}

// loginShell is one that knows no sh, where there is one.
func loginShell() string {
	for _, shell := range []string{"tcsh", "fish"} {
		if path, err := exec.LookPath(shell); err == nil {
			return path
		}
	}
	return "/bin/sh"
}

// What rank 0 prints comes home once, whatever becomes of the way to it.
func cuts(t *testing.T, d *desk) {
	const lines, most = 20000, 10
	d.write("train.py", fmt.Sprintf(`import os, time
for i in range(1, %d):
    print(f"step {i}/40 loss 1 and some more text so that it is long", flush=True)
    if i %% 100 == 0: time.sleep(0.06)
    while i == %d and not os.path.exists("%s"): time.sleep(0.1)
`, lines+1, lines-1000, d.until()))
	d.profile("slurm", "count: 1, partition: gpu", "engine: plain, command: train.py")
	wait := d.started()
	cut := 0
	d.await("its agents are killed", 3*time.Minute, func() bool {
		for _, pid := range agents(d.home) {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				cut++
			}
		}
		time.Sleep(300 * time.Millisecond) // the next ones come to say something
		return cut >= most
	})
	d.letGo()
	if word, cause, _ := verdict(t, wait()); word != "succeeded" {
		t.Errorf("%s: %s", word, cause)
	}
	n := 0
	for line := range strings.Lines(d.stored(0)) {
		if n++; !strings.HasPrefix(line, fmt.Sprintf("step %d/40 ", n)) {
			t.Fatalf("line %d is %q", n, line)
		}
	}
	if n != lines {
		t.Errorf("%d lines came home, after %d cuts", n, cut)
	}
	d.clean()
}

// agents are the agents that serve connections from a home.
func agents(home string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		text, _ := os.ReadFile(dir + "/cmdline")
		if words := strings.Split(string(text), "\x00"); len(words) > 1 && strings.HasPrefix(words[0], home) && words[1] == "serve" {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}
