package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// Without MPI each rank is told what horovodrun would tell it, and waits for the server
// on node 0; with it mpirun starts them.
func TestHorovodWithoutMPIIsStartedAsHorovodrunDoes(t *testing.T) {
	for name, size := range map[string]struct{ nodes, gpus int }{"1x0": {1, 0}, "2x2": {2, 2}} {
		j := job
		j.NoMPI = true
		plan, err := Make("horovod", cluster(size.nodes, size.gpus), j)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", "horovod-gloo-"+name+".golden"), render(plan))
		if h := plan.Nodes[0][0]; !h.Helper || len(plan.Files[0]) != 1 || plan.Files[0][0].Name != "horovodserver.py" {
			t.Errorf("%+v, %v", h, plan.Files)
		}
		for _, p := range slices.Concat(plan.Nodes...)[1:] {
			if p.After == nil || !slices.Equal(p.After.Argv[3:], []string{"10.0.0.1", "29511"}) {
				t.Errorf("%+v", p.After)
			}
		}
	}
}

func TestWhoeverAsksForGlooGetsIt(t *testing.T) {
	for _, c := range []struct {
		command string
		nodes   []Node
		job     Job
		gloo    bool
	}{
		{"horovodrun -np 2 --gloo python t.py", cluster(2, 0), Job{}, true},
		{"horovodrun -np 2 --mpi python t.py", cluster(2, 0), Job{}, false},
		{"horovodrun -np 2 --mpi python t.py", cluster(2, 0), Job{NoMPI: true}, true},
		{"t.py", cluster(2, 0), Job{}, false},
		{"horovodrun -np 2 --gloo python t.py", cluster(2, 0), Job{Given: true}, false},
		{"t.py", []Node{{Host: "2600:1f18::11"}}, Job{NoMPI: true}, false},
	} {
		c.job.Command, _ = Split(c.command)
		plan, err := Make("horovod", c.nodes, c.job)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Nodes[0][0].Helper; got != c.gloo {
			t.Errorf("%s, %+v: by Gloo is %v", c.command, c.job, got)
		}
	}
}

// Nodes with other numbers of ranks: those with one place on their nodes are counted.
func TestARankOfHorovodIsCountedAmongThoseOfItsPlace(t *testing.T) {
	nodes := cluster(3, 2)
	nodes[1].GPUs = 1
	plan, err := Make("horovod", nodes, Job{Command: []string{"t.py"}, NoMPI: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range slices.Concat(plan.Nodes...)[1:] {
		var of []string
		for _, kv := range p.Env {
			if name, value, _ := strings.Cut(kv, "="); slices.Contains([]string{"HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE"}, name) {
				of = append(of, value)
			}
		}
		got = append(got, strings.Join(of, " "))
	}
	if want := []string{"0 0 0 3", "1 1 0 2", "2 0 1 3", "3 0 2 3", "4 1 1 2"}; !slices.Equal(got, want) {
		t.Errorf("rank, local rank, cross rank and size are %q", got)
	}
}

// What Horovod was built with is read from its libraries: a Horovod without MPI that
// mpirun starts has as many worlds of one rank as there are ranks.
func TestWhatAHorovodWasBuiltWithIsSeen(t *testing.T) {
	// The first python3 may be a script that looks for one on the PATH.
	found, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("NOT RUN: there is no python3")
	}
	python := strings.TrimSpace(string(found))
	for _, c := range []struct {
		library string
		mpirun  bool
		gloo    bool
	}{
		{"libmpi.so.40 N4gloo7Context", true, false}, {"libmpi.so.40 N4gloo7Context", false, true},
		{"N4gloo7Context", true, true}, {"libmpi.so.40", false, false}, {"", false, false}, {"", true, false},
	} {
		dir := t.TempDir()
		if c.library != "" {
			top := filepath.Join(dir, "horovod", "torch")
			if err := os.MkdirAll(top, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"../__init__.py": "raise ImportError('it is slow to import')", "mpi_lib_v2.cpython-311-x86_64-linux-gnu.so": c.library} {
				if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if c.mpirun {
			if err := testprogram.Write(filepath.Join(dir, "mpirun"), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		look := exec.Command(python, "-S", "-c", HorovodLook)
		look.Env = []string{"PATH=" + dir, "PYTHONPATH=" + dir}
		out, err := look.CombinedOutput()
		if got := strings.TrimSpace(string(out)) == "gloo"; err != nil || got != c.gloo {
			t.Errorf("%+v: %v, %s", c, err, out)
		}
	}
}
