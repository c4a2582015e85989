//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

func (b *bed) runDirs() []string {
	b.t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.home, "state", "runs"))
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRunsAreRemovedWithASizeAfterAQuestionAndTheStoreIsCompacted(t *testing.T) {
	sample.Leave(t)
	b := newBed(t)
	b.profile(fmt.Sprintf(lossScript, 20, 0.001)+"\nos.makedirs('outputs', exist_ok=True)\nopen('outputs/done', 'w').write('x' * 100_000)\n", "results: {paths: [outputs/]}\n")
	var runs []string
	for range 3 {
		runs = append(runs, b.run("run", "--json").one(t, "run_ended")["run"].(string))
	}
	if r := b.run("star", runs[0]); r.code != 0 {
		t.Fatal(r.stderr)
	}
	x := b.onTerminal(140, 40, "rm", runs[1])
	x.shows("Remove run "+runs[1]+"?", "results 100 kB", "40 points", "[y/N] ")
	x.types("n\r")
	if code := <-x.ended; code != ExitFailed || len(b.runDirs()) != 3 {
		t.Errorf("not agreed to: exit code %d, %v", code, b.runDirs())
	}
	if r := b.run("rm", "--all-ended", "--dry-run"); r.code != 0 || !strings.Contains(r.stdout, "Remove 2 runs?") || !strings.Contains(r.stdout, "it has a star") || len(b.runDirs()) != 3 {
		t.Errorf("--dry-run: %s%s", r.stdout, r.stderr)
	}
	if r := b.run("rm", "bed"); r.code != 1 || !strings.Contains(r.stderr, "that names a cluster or a profile") {
		t.Errorf("a cluster's name: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r := b.run("rm", "--all-ended", "--older-than", "1ms", "--compact")
	if r.code != 0 || !strings.Contains(r.stdout, "removed "+runs[1]) || !strings.Contains(r.stdout, "kept "+runs[0]) || !strings.Contains(r.stdout, " before, ") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if left := b.runDirs(); len(left) != 1 || left[0] != runs[0] {
		t.Errorf("left on the disk: %v", left)
	}
	if r := b.run("runs", "--json"); strings.Contains(r.stdout, runs[1]) || !strings.Contains(r.stdout, runs[0]) {
		t.Errorf("runs: %s", r.stdout)
	}
	if r := b.run("compact"); r.code != 0 || !strings.Contains(r.stdout, "dlwb.sqlite: ") {
		t.Errorf("compact: %s%s", r.stdout, r.stderr)
	}
}

// An rm that is killed anywhere leaves nothing that the next one does not
// finish, and no run half of which is shown.
func TestRmThatIsKilledIsFinishedByTheNext(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 5, 0.001), "")
	for i := range 4 {
		run := b.run("run", "--json").one(t, "run_ended")["run"].(string)
		for n := range 2000 {
			if err := os.WriteFile(filepath.Join(b.home, "state", "runs", run, fmt.Sprint("f", n)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := b.start("rm", run)
		time.Sleep(time.Duration(20+15*i) * time.Millisecond)
		_ = s.cmd.Process.Kill()
		s.end()
		listed := strings.Contains(b.run("runs", "--json").stdout, run)
		if _, err := os.ReadFile(filepath.Join(b.home, "state", "runs", run, "rank-0.log")); listed && err != nil {
			t.Errorf("a run that is listed has lost its log: %v", err)
		}
	}
	if r := b.run("rm", "--all-ended"); r.code != 0 {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if left := b.runDirs(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if r := b.run("runs", "--json"); !strings.Contains(r.stdout, `"runs":[]`) {
		t.Errorf("runs: %s", r.stdout)
	}
}
