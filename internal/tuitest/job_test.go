//go:build unix

package tuitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/localjob"
)

const jobProfile = `name: journey
provider: local-job
machines: {count: 2}
run: {engine: plain, command: train.py}
`

// A provider without ssh goes through its life by the same keys. What its nodes
// can't do is grey, with the reason and what to do about it.
func TestAJobWithoutNodesInARealTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles dlwb and runs a job in a terminal")
	}
	needed(t, "tmux", "python3")
	program := localjob.Build(t)
	e := journey(t)
	project := filepath.Join(filepath.Dir(e.socket), "project")
	if err := os.WriteFile(filepath.Join(project, "dlwb.yaml"), []byte(jobProfile), 0o644); err != nil {
		t.Fatal(err)
	}
	e.press(program+" trust", "Enter") // it asks, as it would a person
	e.see("cluster      journey: 2 × local-job", "type yes to trust it")
	e.press("yes", "Enter")
	e.see("ready>")
	e.press("clear; "+program+" run --theme dark; echo code $?", "Enter")
	e.see("● training", "1 loss", "2 val/loss", "replica1", "rank 0 on replica0", "world size 2 on 2 nodes",
		"local-job tells nothing of its machine")

	e.press("s")
	e.see("✓ upload", "✓ queue", "train")
	e.press("?")
	screen := e.see("Keys on the steps screen", "local-job tells nothing of its machine")
	e.press("PageDown")
	screen += e.see("no port of a local-job can be reached", "local-job runs no command in a job")
	for _, row := range strings.Split(screen, "\n") {
		if strings.Contains(row, "start Jupyter") || strings.Contains(row, "a shell on a node") {
			t.Errorf("a key that can't do anything says %q", row)
		}
	}
	e.press("Escape")
	e.see("› steps", "✓ upload")
	for key, why := range map[string]string{
		"J": "Jupyter, not now: no port of a local-job can be reached; write event files",
		"T": "TensorBoard, not now: no port of a local-job can be reached",
		"S": "shell, not now: local-job runs no command in a job; the job's output is what there is",
		"n": "nodes, not now: local-job tells nothing of its machine; provider: local shows",
	} {
		e.press(key)
		e.see(why)
	}
	e.press("l")
	e.see("▼ following", "/400  loss ")

	e.press("X")
	e.see("Tear down journey?", "› Cancel", "type journey to agree")
	e.press("-l", "journey")
	e.see("› Tear down")
	e.press("Enter")
	e.see("Everything is gone", "0 processes, 0 files", "job")
}
