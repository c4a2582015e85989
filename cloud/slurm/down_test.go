//go:build unix

package slurm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
)

// here runs lines by the sh of this machine, as the agent of a login node does.
type here struct {
	cloud.Machine
	home string
}

func (h here) Run(ctx context.Context, line string, input []byte) (cloud.Said, error) {
	c := exec.CommandContext(ctx, "sh", "-c", line)
	var out, errs bytes.Buffer
	c.Dir, c.Stdin, c.Stdout, c.Stderr = h.home, bytes.NewReader(input), &out, &errs
	err := c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	return cloud.Said{Code: c.ProcessState.ExitCode(), Out: out.Bytes(), Err: errs.Bytes()}, err
}

// Whoever takes a cluster down while sbatch waits for a controller that does not
// answer is not told that there is no job.
func TestAnSbatchOnItsWayIsNoProofThatThereIsNoJob(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "squeue"), []byte("#!/bin/sh\n"), 0o755); err != nil { // the queue is empty
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dir := jobDir(home, "run")
	trying := filepath.Join(dir, "trying")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(trying, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var told []string
	tell := func(_ int, text string) { told = append(told, text) }
	soon, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if id, err := settled(soon, here{home: home}, home, "run", tell); err == nil || !strings.Contains(err.Error(), "may still bring a job") || len(told) != 1 {
		t.Errorf("%q %v, told %q", id, err, told)
	}
	if err := os.Chtimes(trying, time.Time{}, time.Now().Add(-5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if id, err := settled(t.Context(), here{home: home}, home, "run", tell); err != nil || id != "" {
		t.Errorf("%q %v", id, err)
	}
}

func TestARefusedJobIsNotOnItsWay(t *testing.T) {
	for said, on := range map[string]bool{
		"sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified": false,
		"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation":                    true,
		"sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received":                    true,
	} {
		home, bin := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "sbatch"), []byte("#!/bin/sh\necho '"+said+"' >&2\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		r, err := here{home: home}.Run(t.Context(), sbatchLine(words(home), "life", false), []byte("#!/bin/sh\n"))
		if err != nil || r.Code != 71 || !strings.Contains(string(r.Err), said) {
			t.Errorf("%+v %v", r, err)
		}
		if _, err := os.Stat(filepath.Join(home, "trying")); (err == nil) != on {
			t.Errorf("%s: is it on its way: %v", said, err == nil)
		}
	}
}
