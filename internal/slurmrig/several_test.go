//go:build linux

package slurmrig

import (
	"os"
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
// killed leaves them, and none is handed in twice. What each wrote comes home.
func sweeps(t *testing.T, d *desk) {
	d.write("train.py", searches)
	d.profile("slurm", "count: 1, partition: gpu", "engine: plain, command: train.py}\nsweep: {parameters: {lr: [0.4, 0.3, 0.2, 0.1]}, metric: loss, parallel: 2")
	before := lastJob()
	first := d.command("sweep", "--json")
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	first.Stdout, first.Stderr = said, said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text, _ := os.ReadFile(said.Name()); t.Failed() {
			t.Logf("the first sweep said\n%s", text)
		}
	})
	d.await("a trial is through", 4*time.Minute, func() bool {
		out, err := d.try("sweep", "--show") // it may not have begun
		return err == nil && strings.Contains(out, " done ")
	})
	_ = first.Process.Kill()
	_ = first.Wait()
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
