//go:build linux

package slurmrig

import (
	"os"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/overlay"
)

// Everything by keys on a real Slurm: the plan with what the cluster says, the queue, the
// curve, the panels and the log of a job, and its end with the receipt.
func TestAJobOfSlurmByKeys(t *testing.T) {
	if os.Getenv("DLWB_KEYS") == "" || os.Getenv("DLWB_RIGS") == "" {
		t.Skip("NOT RUN: it goes through a whole life in a terminal, on a Slurm: make test-slurm runs it")
	}
	script(t)
	program := overlay.Build(t, nil)
	d := newDesk(t, Up(t, "-n", "2", "-g", "2"), program)
	const soon, late = time.Minute, 3 * time.Minute
	// It stays at its tenth step, whose lines are all on the screen, until it is taken down.
	d.profile("slurm", "count: 2, partition: gpu, gpus: 1", "engine: plain, command: train.py 0.5 "+d.until())
	x := (&jobstory.Project{T: t, Program: program, Dir: d.dir, Env: d.env}).Terminal()
	x.Press(program+" --theme dark; echo code $?", "Enter")
	x.See(soon, "› home", "R")
	x.Press("R")
	x.See(soon, "› plan", "2 nodes of slurm", "✓ partition", "✓ queue", "R run")
	x.Press("R")
	x.See(late, "● training", "━ loss", "world size 2 on 2 nodes")
	x.Press("s")
	x.See(soon, "✓ environment", "✓ submit", "✓ queue")
	x.Press("n")
	x.See(late, "replica0", "replica1", "cpu  ")
	x.Press("l")
	x.See(soon, "step 3/40")
	x.Press("X")
	x.See(soon, "Tear down jobs?", "› Cancel", "type jobs to agree")
	x.Type("jobs")
	x.See(soon, "› Tear down")
	x.Press("Enter")
	x.See(late, "› receipt", "Everything is gone", "Slurm shows it ended")
	x.Press("q")
	d.empty()
}
