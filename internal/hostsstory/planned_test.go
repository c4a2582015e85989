//go:build unix

package hostsstory

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/planned"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/trusttest"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

// likeTorch stands for PyTorch where there is none: a torch that a search finds,
// and its launcher, which starts the ranks of its node.
const likeTorch = `import os, subprocess, sys
argv = sys.argv[1:]
given = dict(a[2:].split("=", 1) for a in argv if a.startswith("--") and "=" in a)
command, each = argv[argv.index("--no_python") + 1:], int(given["nproc_per_node"])
started = []
for local in range(each):
    env = dict(os.environ, LOCAL_RANK=str(local), RANK=str(int(given["node_rank"]) * each + local),
               WORLD_SIZE=str(int(given["nnodes"]) * each))
    started.append(subprocess.Popen(command, env=env))
sys.exit(max([p.wait() for p in started]))
`

// pythons makes an interpreter that has PyTorch, and one that has not.
func pythons(t *testing.T) (with, without string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"with", "without"} {
		if out, err := exec.Command("python3", "-m", "venv", "--without-pip", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	site, err := filepath.Glob(filepath.Join(dir, "with", "lib", "python3*", "site-packages"))
	if err != nil || len(site) != 1 {
		t.Fatal(site, err)
	}
	write(t, filepath.Join(site[0], "torch", "__init__.py"), "__version__ = '2.4.0'\n")
	write(t, filepath.Join(site[0], "torch", "version.py"), "__version__ = '2.4.0'\n")
	write(t, filepath.Join(site[0], "torch", "distributed", "__init__.py"), "")
	write(t, filepath.Join(site[0], "torch", "distributed", "run.py"), likeTorch)
	return filepath.Join(dir, "with", "bin", "python3"), filepath.Join(dir, "without", "bin", "python3")
}

// smi makes a directory with an nvidia-smi that lists so many GPUs; with none
// there is no nvidia-smi.
func smi(t *testing.T, gpus int) string {
	t.Helper()
	dir := t.TempDir()
	if gpus == 0 {
		return dir
	}
	executable(t, filepath.Join(dir, "nvidia-smi"), fmt.Sprintf("#!/bin/sh\n[ \"$1\" = -L ] || exit 1\ni=0; while [ $i -lt %d ]; do echo \"GPU $i: A10G (UUID: GPU-$i)\"; i=$((i+1)); done\n", gpus))
	return dir
}

// What a plan says of each engine, with and without PyTorch on the hosts, is
// what starts on them: engine, world size, and every word of every command.
func TestWhatThePlanSaysOfHostsIsWhatIsLaunchedThere(t *testing.T) {
	sample.Leave(t)
	with, without := pythons(t)
	gpus := []int{4, 0}
	dir := t.TempDir()
	servers := map[string]*sshdtest.Server{}
	for i, n := range gpus {
		servers[fmt.Sprintf("host%d", i)] = sshdtest.Start(t, sshdtest.PathFirst(smi(t, n)))
	}
	sshFiles(t, dir, servers)
	t.Setenv("DLWB_SSH_CONFIG", filepath.Join(dir, "config"))
	w := openDesk(t, dir)
	for i, c := range []struct {
		hosts, engine, python, more string
		when, want                  string
	}{
		{"[host0]", "auto", with, "", "", "torchrun 4"},
		{"[host0]", "auto", without, "", "", "plain 4"},
		{"[{host: host0, gpus: [1, 3]}, host1]", "auto", without, "", "", "plain 3"},
		{"[host1]", "plain", with, "", "", "plain 1"},
		{"[host1]", "torchrun", with, ", procs_per_node: 2, master_port: 29876", "", "torchrun 2"},
		{"[{host: host0, gpus: [2]}]", "auto", with, "", "", "torchrun 1"},
	} {
		name := fmt.Sprintf("case%d", i)
		file := filepath.Join(dir, name, "dlwb.yaml")
		write(t, filepath.Join(dir, name, "train.py"), train)
		write(t, file, fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: %s}\nenvironment: {python: %s}\nrun: {engine: %s, command: \"train.py --to {run}\"%s}\n",
			name, c.hosts, c.python, c.engine, c.more))
		trusttest.Trust(w.Dir(), filepath.Dir(file))
		plan, err := w.Plans().Plan(t.Context(), file)
		if err != nil || !plan.OK() {
			t.Fatalf("%s: %v %+v", name, err, plan)
		}
		out, err := w.Do(t.Context(), plan, workbench.Goal{})
		if err != nil || out.Ended == nil || out.Ended.Verdict != event.Succeeded {
			t.Fatalf("%s: %v %+v", name, err, out)
		}
		run := started(t, w, name)
		when, err := planned.Of(plan).Taken(run)
		if got := fmt.Sprintf("%s %d", run.Engine, run.WorldSize); err != nil || got != c.want || !strings.HasPrefix(when, c.when) || c.when == "" && when != "" {
			t.Errorf("%s: %s ran, want %s; if %q, want %q; %v\n%s", name, got, c.want, when, c.when, err, plan.Text())
		}
		for rank := range run.WorldSize {
			log := make([]byte, 1000)
			n, _ := w.ReadLog(out.Run, rank, 0, log)
			if want := fmt.Sprintf("rank %d of %d ", rank, run.WorldSize); !strings.Contains(string(log[:n]), want) {
				t.Errorf("%s: the log of rank %d is %q", name, rank, log[:n])
			}
		}
		if _, err := w.TearDown(t.Context(), name, false); err != nil {
			t.Error(err)
		}
	}
}

// started is what was told when every rank of a cluster's newest run was
// launched.
func started(t *testing.T, w *workbench.Workbench, cluster string) (run event.RunStarted) {
	t.Helper()
	sub := w.Subscribe(cluster)
	defer sub.Close()
	for {
		events := sub.Next(t.Context())
		for _, e := range events {
			if b, ok := e.Body.(event.RunStarted); ok {
				return b
			}
		}
		if len(events) == 0 {
			t.Fatalf("no run of %s was told of", cluster)
		}
	}
}
