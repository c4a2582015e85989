//go:build linux

package slurmrig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// coordinates is a training by parameter servers without TensorFlow: what it is told, who
// leads, and who waits for work for ever are as there. The chief keeps its step, writes the
// number of whoever serves to a file, and asks all of them in each step.
const coordinates = `import json, os, socket, sys, time
config = json.loads(os.environ["TF_CONFIG"])
kind, index = config["task"]["type"], config["task"]["index"]
print(kind, index, "words", sys.argv[1:], flush=True)
at = lambda where: (where.rsplit(":", 1)[0], int(where.rsplit(":", 1)[1]))
if kind != "chief":
    open("pid-of-" + kind, "w").write(str(os.getpid()))
    server = socket.create_server(("", at(config["cluster"][kind][index])[1]))
    while True:
        server.accept()[0].close()
others = [at(where) for kind in ("worker", "ps") for where in config["cluster"][kind]]
first = int(open("step").read()) if os.path.exists("step") else 0
for step in range(first + 1, 41):
    for where in others:
        while True:
            try: socket.create_connection(where, 5).close()
            except OSError: time.sleep(0.1)
            else: break
    print(f"step {step}/40 loss {4 / step:.4f}", flush=True)
    open("step", "w").write(str(step))
    while step == 10 and not os.path.exists(sys.argv[1]): time.sleep(0.1)
if len(sys.argv) > 2 and sys.argv[2].isdigit(): sys.exit(int(sys.argv[2]))
`

const servers = "engine: tensorflow, parameter_servers: 1, command: train.py "

// Those that wait for work for ever are ended when the chief has, well, and that is no
// failure, for Slurm neither.
func servedByOthers(t *testing.T, d *desk) {
	d.write("train.py", coordinates)
	d.profile("slurm", "count: 3, partition: gpu", servers+d.until())
	d.letGo()
	wait := d.started()
	word, cause, _ := verdict(t, wait())
	if word != "succeeded" || !strings.Contains(cause, "or was ended when those of node0 had") {
		t.Errorf("%s: %s", word, cause)
	}
	if state := must(t, "sacct", "--noheader", "--parsable2", "--allocations", "--format=State,ExitCode", "--jobs="+strconv.Itoa(lastJob())); state != "COMPLETED|0:0\n" {
		t.Errorf("Slurm calls it %q", state)
	}
	d.gone()
	d.clean()
}

// Who failed is named where others serve, and no server goes on.
func servedAndFailing(t *testing.T, d *desk) {
	d.write("train.py", coordinates)
	d.profile("slurm", "count: 3, partition: gpu", servers+d.until()+" 7")
	d.letGo()
	if word, cause, code := verdict(t, d.started()()); word != "failed" || !strings.Contains(cause, "rank 0 on node0 exited with code 7") || code != 7 {
		t.Errorf("%s: %s, %d", word, cause, code)
	}
	d.gone()
	again := func() { // from the first step, and no further than the tenth
		_, _ = os.RemoveAll(d.until()), os.RemoveAll(filepath.Join(d.home, "dlwb/jobs/code/step"))
	}
	again()
	wait := d.started()
	pid, _ := strconv.Atoi(d.wrote("pid-of-ps"))
	if err := syscall.Kill(d.outside(pid, `"type":"ps"`), syscall.SIGKILL); err != nil {
		t.Fatalf("the server, %d: %v", pid, err)
	}
	if word, cause, _ := verdict(t, wait()); word != "killed" || !strings.Contains(cause, "rank 2 on node2 was killed by SIGKILL") {
		t.Errorf("a server is killed: %s: %s", word, cause)
	}
	d.gone()
	again()
	wait = d.started()
	d.must("stop", "jobs", "--plain")
	if word, cause, code := verdict(t, wait()); word != "stopped" || !strings.Contains(cause, "stopped by request") || code != 130 {
		t.Errorf("stop: %s, %s, %d", word, cause, code)
	}
	d.gone()
	again()
	wait = d.started()
	must(t, "scancel", jobs("RUNNING")...)
	if word, cause, _ := verdict(t, wait()); word != "stopped" || !strings.Contains(cause, "was cancelled by root with scancel, not by dlwb") {
		t.Errorf("scancel: %s, %s", word, cause)
	}
	d.gone()
	d.clean()
}

// A job that is preempted ends with its servers, and is put back into the queue although
// theirs is a good end. It begins with new ones, and goes by no word of
// its earlier life.
func servedAndRequeued(t *testing.T, d *desk) {
	d.write("train.py", coordinates)
	d.profile("slurm", "count: 3, partition: spot, cpus: 8", servers+d.until()+", resume: --resume two")
	wait := d.started()
	d.preempt()
	said := wait()
	word, cause, _ := verdict(t, said)
	if word != "succeeded" || !strings.Contains(cause, "or was ended when those of node0 had") || !strings.Contains(cause, "began it again 1 time") {
		t.Errorf("%s: %s\n%s", word, cause, said)
	}
	for rank, kind := range []string{"chief", "worker", "ps"} {
		log := d.stored(rank)
		if n := strings.Count(log, kind+" 0 words "); n != 2 || !strings.Contains(log, "'--resume', 'two'") {
			t.Errorf("rank %d was begun %d times:\n%s", rank, n, log)
		}
	}
	if n := strings.Count(d.stored(0), "step "); n != 40 {
		t.Errorf("the chief did not go on where it was:\n%s", d.stored(0))
	}
	d.gone()
	d.clean()
}

// wrote is what a rank wrote to a file of the code's directory.
func (d *desk) wrote(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.home, "dlwb/jobs/code", name))
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// outside is the number here of a process of a node, which has numbers of its own. A sign
// in its environment tells it from those of other nodes.
func (d *desk) outside(pid int, sign string) int {
	d.t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		status, _ := os.ReadFile(dir + "/status")
		environ, _ := os.ReadFile(dir + "/environ")
		if m := regexp.MustCompile(`(?m)^NSpid:.*\s(\d+)$`).FindSubmatch(status); m != nil && string(m[1]) == strconv.Itoa(pid) && strings.Contains(string(environ), "HOME="+d.home+"\x00") && strings.Contains(string(environ), sign) {
			n, _ := strconv.Atoi(filepath.Base(dir))
			return n
		}
	}
	d.t.Fatalf("no process of a node has the number %d", pid)
	return 0
}

// gone holds that nothing runs on any node that has to do with a desk.
func (d *desk) gone() {
	d.t.Helper()
	var left []string
	d.await("nothing of the run is alive", 30*time.Second, func() bool {
		left = nil
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			environ, _ := os.ReadFile(dir + "/environ")
			args, _ := os.ReadFile(dir + "/cmdline")
			if strings.Contains(string(environ), "\x00DLWB_RUN=") && strings.Contains(string(environ), d.home+"/") {
				left = append(left, strings.ReplaceAll(string(args), "\x00", " "))
			}
		}
		return len(left) == 0
	})
}

// framework is the Python of a real one, and the program that sums ones over all its
// ranks. Those are installed by make test-frameworks; without them the rest of these tests
// says what it can.
func (d *desk) framework(venv, script string) (python string) {
	d.t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		d.t.Fatal(err)
	}
	python = filepath.Join(cache, "dlwb/frameworks", venv, "bin/python")
	if _, err := os.Stat(filepath.Join(cache, "dlwb/frameworks", venv, "pins.txt")); err != nil {
		d.t.Skipf("NOT RUN: %v: make test-frameworks installs it", err)
	}
	text, err := os.ReadFile(filepath.Join("..", "frameworks/scripts", script))
	if err != nil {
		d.t.Fatal(err)
	}
	d.write("train.py", string(text))
	d.t.Cleanup(func() { // Ray leaves its logs there
		runs, _ := filepath.Glob(filepath.Join(d.at, "state/runs/*"))
		for _, run := range runs {
			_ = os.RemoveAll("/tmp/ray-" + filepath.Base(run))
		}
	})
	return python
}

// requeued runs a job that is put back into the queue once, and ends well.
func (d *desk) requeued() {
	d.t.Helper()
	wait := d.started()
	d.requeue()
	if word, cause, _ := verdict(d.t, wait()); word != "succeeded" || !strings.Contains(cause, "began it again 1 time") {
		d.t.Errorf("%s: %s", word, cause)
	}
}

// anew starts it once more, up to where it waits, when nothing of the last time goes on.
func (d *desk) anew() (wait func() string) {
	d.t.Helper()
	d.gone()
	if err := os.Remove(d.until()); err != nil {
		d.t.Fatal(err)
	}
	return d.started()
}

const rayTrains = `import os, sys, time, ray
ray.init()
print("words", sys.argv[1:], "nodes", len([n for n in ray.nodes() if n["Alive"]]), flush=True)
@ray.remote
def four(): return 4
for step in range(1, 41):
    print(f"step {step}/40 loss {ray.get(four.remote()) / step:.4f}", flush=True)
    while step == 10 and not os.path.exists(sys.argv[1]): time.sleep(0.1)
`

// A real Ray begins anew, whole, with a job that is put back into the queue; one that
// loses a raylet ends the run, and nothing of it goes on.
func rayAgain(t *testing.T, d *desk) {
	python := d.framework("torch", "ray_sum.py")
	d.write("train.py", rayTrains)
	d.profile("slurm", "count: 2, partition: gpu", "engine: ray, command: train.py "+d.until()+", resume: --resume two}\nenvironment: {python: "+python)
	d.requeued()
	if log := d.stored(0); strings.Count(log, "nodes 2\n") != 2 || !strings.Contains(log, "'--resume', 'two'] nodes 2\n") {
		t.Errorf("the driver says\n%s", log)
	}
	wait := d.anew()
	if err := syscall.Kill(d.raylet("node1"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if word, cause, _ := verdict(t, wait()); word != "failed" || !strings.Contains(cause, "node1") {
		t.Errorf("a raylet is killed: %s: %s", word, cause)
	}
	d.gone()
	d.clean()
}

const mpiTrains = `import os, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
print("words", sys.argv[1:], "of", comm.size, flush=True)
open(f"pid-of-{comm.rank}", "w").write(str(os.getpid()))
for step in range(1, 41):
    comm.allreduce(1)
    if comm.rank == 0: print(f"step {step}/40 loss {4 / step:.4f}", flush=True)
    while step == 10 and not os.path.exists(sys.argv[1]): time.sleep(0.1)
`

// MPI's daemons are started anew with a job that is put back into the queue. A rank that
// is killed is named, and no daemon goes on.
func mpiAgain(t *testing.T, d *desk) {
	python := d.framework("jax", "mpi_sum.py")
	d.write("train.py", mpiTrains)
	d.profile("slurm", "count: 2, partition: gpu", "engine: mpi, procs_per_node: 2, command: train.py "+d.until()+", resume: --resume two}\nenvironment: {python: "+python)
	d.requeued()
	for rank := range 4 {
		if log := d.stored(rank); strings.Count(log, "of 4\n") != 2 || !strings.Contains(log, "'--resume', 'two'] of 4\n") {
			t.Errorf("rank %d says\n%s", rank, log)
		}
	}
	wait := d.anew()
	pid, _ := strconv.Atoi(d.wrote("pid-of-3"))
	if err := syscall.Kill(d.outside(pid, "OMPI_COMM_WORLD_RANK=3\x00"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if word, cause, _ := verdict(t, wait()); word != "killed" || !strings.Contains(cause, "rank 3 on node1 was killed by SIGKILL") {
		t.Errorf("a rank is killed: %s: %s", word, cause)
	}
	d.gone()
	d.clean()
}

// raylet is that of a node of the desk's run.
func (d *desk) raylet(node string) int {
	d.t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(dir + "/cmdline")
		environ, _ := os.ReadFile(dir + "/environ")
		program, _, _ := strings.Cut(string(args), "\x00")
		if filepath.Base(program) == "raylet" && strings.Contains(string(args), "--node-name="+node+"\x00") && strings.Contains(string(environ), d.home+"/") {
			n, _ := strconv.Atoi(filepath.Base(dir))
			return n
		}
	}
	d.t.Fatalf("%s has no raylet", node)
	return 0
}

// requeue has a run put back into the queue that stays at its tenth step, and lets its
// next life go on.
func (d *desk) requeue() {
	d.t.Helper()
	d.await("it is where it stays", time.Minute, func() bool { return strings.Contains(d.stored(0), "step 10/40") })
	id := strconv.Itoa(lastJob())
	must(d.t, "scontrol", "requeue", id)
	d.await("it waits again", time.Minute, func() bool { return len(jobs("PENDING")) == 1 })
	d.letGo()
	d.beginsAgain(id)
}

// beginsAgain lets a job that was put back into the queue begin, which Slurm does after
// two minutes. Two seconds go by first: in the second in which a node was told to end a
// job, it takes the job's next credential for a revoked one, and the job fails.
func (d *desk) beginsAgain(id string) {
	d.t.Helper()
	d.await("its new beginning is let go", 4*time.Minute, func() bool {
		return exec.Command("scontrol", "update", "jobid="+id, "StartTime=now+2").Run() == nil || len(jobs("PENDING")) == 0
	})
}

var sums = regexp.MustCompile(`rank (\d+) of (\d+): sum (\d+)`)

// summed holds that each rank has told its sum, by whichever log it came.
func (d *desk) summed(world int) {
	d.t.Helper()
	var all strings.Builder
	logs, _ := filepath.Glob(filepath.Join(d.at, "state/runs/*/*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(&all, "%s\n%s\n", filepath.Base(path), text)
	}
	told := map[string]bool{}
	for _, m := range sums.FindAllStringSubmatch(all.String(), -1) {
		if m[2] != strconv.Itoa(world) || m[3] != m[2] {
			d.t.Errorf("%s, of %d ranks", m[0], world)
		}
		told[m[1]] = true
	}
	if len(told) != world {
		d.t.Errorf("%d of %d ranks have told their sum:\n%s", len(told), world, all.String())
	}
}

// The real frameworks whose engines need more than ranks: each sums ones over all ranks of
// two nodes, and leaves nothing.
func realFrameworks(t *testing.T, d *desk) {
	for _, c := range []struct{ name, engine, venv, script, command, more string }{
		{"ray", "ray", "torch", "ray_sum.py", "train.py", ""},
		{"mpi", "mpi", "jax", "mpi_sum.py", "train.py", "procs_per_node: 2"},
		{"horovod by MPI", "horovod", "horovod", "horovod_sum.py", "train.py", "procs_per_node: 2"},
		{"horovod by Gloo", "horovod", "horovod", "horovod_sum.py", "horovodrun --gloo python train.py", "procs_per_node: 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, d.base, d.program)
			python := d.framework(c.venv, c.script)
			world := 2
			if c.more != "" {
				c.more, world = ", "+c.more, 4
			}
			d.profile("slurm", "count: 2, partition: gpu", "engine: "+c.engine+", command: "+c.command+c.more+"}\nenvironment: {python: "+python)
			out, err := d.try("run", "--json")
			if word, cause, _ := verdict(t, out); err != nil || word != "succeeded" {
				t.Errorf("%v, %s: %s\n%s", err, word, cause, out)
			}
			if c.engine == "mpi" && !strings.Contains(out, "-m mpi4py") { // as the plan has it, by what the script imports
				t.Errorf("the command is not completed:\n%s", out)
			}
			d.summed(world)
			d.gone()
			d.clean()
		})
	}
}

// TensorFlow's own servers wait for work for ever, and are ended when the chief has.
func realServers(t *testing.T, d *desk) {
	python := d.framework("tensorflow", "tensorflow_servers.py")
	d.profile("slurm", "count: 3, partition: gpu", "engine: tensorflow, parameter_servers: 1, env: {DONE: "+d.home+"/done}, command: train.py}\nenvironment: {python: "+python)
	out, err := d.try("run", "--json")
	if word, cause, _ := verdict(t, out); err != nil || word != "succeeded" {
		t.Errorf("%v, %s: %s\n%s", err, word, cause, out)
	}
	for rank, want := range []string{"total 10 on /job:ps/", "worker 0 of ", "ps 0 of "} {
		if log := d.stored(rank); !strings.Contains(log, want) {
			t.Errorf("rank %d says\n%s", rank, log)
		}
	}
	d.gone()
	d.clean()
}
