//go:build linux

package slurmrig

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// lastJob is the number of the newest job of dlwb. Slurm soon forgets those that have ended.
func lastJob() (last int) {
	for _, id := range jobs("") {
		n, _ := strconv.Atoi(id)
		last = max(last, n)
	}
	return last
}

// jobsSince is how many jobs of dlwb are newer than one.
func jobsSince(last int) (n int) {
	for _, id := range jobs("") {
		if number, _ := strconv.Atoi(id); number > last {
			n++
		}
	}
	return n
}

const searches = `import os, sys, time
lr = float(sys.argv[1].partition("=")[2])
open(os.path.join(os.environ["DLWB_RESULTS"], "lr.txt"), "w").write(f"{lr}\n")
for step in range(1, 11):
    print(f"step {step}/10 loss {lr + 1 / step:.4f}", flush=True)
    time.sleep(0.2)
`

// The trials of a sweep are jobs, two at once, on one copy of the code; a dlwb that is
// killed, in the middle of handing one in or after some are through, leaves them, and
// none is handed in twice. What each wrote comes home.
func sweeps(t *testing.T, d *desk) {
	d.write("train.py", searches)
	d.profile("slurm", "count: 1, partition: gpu", "engine: plain, command: train.py}\nsweep: {parameters: {lr: [0.4, 0.3, 0.2, 0.1]}, metric: loss, parallel: 2")
	before := lastJob()
	bin := d.shims()
	if err := os.WriteFile(filepath.Join(bin, "at"), []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := d.sweeping()
	if err := os.WriteFile(filepath.Join(bin, "pid"), []byte(strconv.Itoa(first.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Fatal("the first sweep was not killed")
	}
	second := d.sweeping()
	d.await("a trial is through", 4*time.Minute, func() bool {
		out, err := d.try("sweep", "--show")
		return err == nil && strings.Contains(out, " done ")
	})
	_ = second.Process.Kill()
	_ = second.Wait()
	d.must("sweep", "--plain")
	board := d.must("sweep", "--show", "--json")
	if !strings.Contains(board, `"done":4`) || !strings.Contains(board, `"best":4`) {
		t.Errorf("the board is %s", board)
	}
	if n := jobsSince(before); n != 4 {
		t.Errorf("4 trials were %d jobs\n%s", n, queue())
	}
	if out := d.must("runs", "--json"); strings.Count(out, `"verdict":"succeeded"`) != 4 {
		t.Errorf("the runs are %s", out)
	}
	if got, _ := filepath.Glob(filepath.Join(d.at, "state/runs/*/results/*/lr.txt")); len(got) != 4 {
		t.Errorf("the results of %d trials are home: %q", len(got), got)
	}
	d.clean()
}

// sweeping is a sweep that has begun. What it said is told where the test fails.
func (d *desk) sweeping() *exec.Cmd {
	d.t.Helper()
	c := d.command("sweep", "--json")
	said, err := os.Create(filepath.Join(d.t.TempDir(), "said"))
	if err != nil {
		d.t.Fatal(err)
	}
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = said.Close()
		if text, _ := os.ReadFile(said.Name()); d.t.Failed() {
			d.t.Logf("a sweep that was killed said\n%s", text)
		}
	})
	return c
}

// A task that is done and unchanged is not handed in again.
func chains(t *testing.T, d *desk) {
	d.profile("slurm", "count: 1, partition: gpu", "engine: plain, command: train.py 0.01}\nresults: {paths: [out.txt]")
	d.write("train.py", trains+"open('out.txt', 'w').write('done')\n")
	if out := d.must("chain", "--json"); strings.Contains(out, `"state":"skipped"`) {
		t.Errorf("the first time:\n%s", out)
	}
	before := lastJob()
	if out := d.must("chain", "--json"); !strings.Contains(out, `"state":"skipped"`) || jobsSince(before) != 0 {
		t.Errorf("what is done and unchanged:\n%s", out)
	}
	d.write("train.py", trains+"open('out.txt', 'w').write('changed')\n")
	if out := d.must("chain", "--json"); strings.Contains(out, `"state":"skipped"`) || jobsSince(before) != 1 {
		t.Errorf("what has changed:\n%s", out)
	}
	d.clean()
}
