//go:build linux

package localjob

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

// searching has a sweep over so many rates.
func (p *project) searching(steps int, rates, more string) {
	p.T.Helper()
	p.Search("provider: local-job\nmachines: {count: 2}\nrun: {engine: plain, procs_per_node: 1, command: train.py}\n",
		"parameters: {lr: ["+rates+"]}, "+more, steps, "0.1 if lr < 1 else 0.5") // what is to be ended early gives time for that
}

func TestTheTrialsOfASweepAreJobs(t *testing.T) {
	sample.Leave(t)
	if testing.Short() {
		t.Skip("compiles dlwb")
	}
	program := Build(t)
	for name, part := range map[string]func(*testing.T, *project){"one after the other, and killed": trialsAreJobs, "ended early": trialEndedEarly,
		"down": downEndsTrials, "interrupted": trialsAreInterrupted, "nothing shared": trialsShareNothing} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, newProject(t, program))
		})
	}
}

// The trials of a sweep are jobs, so many at once as the profile says. A dlwb that is
// killed leaves them; the next one goes on with them, and hands none in twice.
func trialsAreJobs(t *testing.T, p *project) {
	p.searching(10, "0.6, 0.5, 0.4, 0.3, 0.2, 0.1", "parallel: 2")
	first := p.Command("sweep", "--json")
	var said bytes.Buffer
	first.Stdout = &said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	p.Await("two trials are through", func() bool { return p.Board().Done >= 2 })
	_ = first.Process.Kill()
	_ = first.Wait()
	most := 0.0
	whole := said.String()[:strings.LastIndex(said.String(), "\n")+1] // it was killed
	for _, e := range jobstory.Said(t, whole) {
		if running, is := e["running"].(float64); is && e["event"] == "sweep" {
			most = max(most, running)
		}
	}
	if most != 2 {
		t.Errorf("%v trials ran at once, not 2", most)
	}
	begun := p.Board()
	events := jobstory.Said(t, p.Must("sweep", "--json", "--down"))
	b := p.Board()
	if b.Trials != 6 || b.Done != 6 || b.Best != 6 {
		t.Fatalf("%+v", b)
	}
	for i, row := range begun.Rows {
		if row.State == "done" && !strings.Contains(fmt.Sprint(b.Rows), row.Run) {
			t.Errorf("trial %d was run as %s, and that is not on the board: %+v", i, row.Run, b.Rows)
		}
	}
	if runs := strings.Count(p.Must("runs", "--json"), `"verdict":"succeeded"`); runs != 6 {
		t.Errorf("six trials have %d runs", runs)
	}
	if proven := jobstory.EventOf(t, events, "receipt")["proven"]; proven != true {
		t.Errorf("the receipt says %v", proven)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Dir, "../state/localjob/*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A trial that is worse than the others is ended early, and its place is the next one's.
func trialEndedEarly(t *testing.T, p *project) {
	p.searching(60, "0.1, 0.2, 0.3, 4, 5, 6", "parallel: 3, stop: median, warmup: 5")
	p.Must("sweep", "--json")
	b := p.Board()
	if b.Trials != 6 || b.Done+b.Early != 6 || b.Early == 0 || b.Best != 1 {
		t.Errorf("%+v", b)
	}
	if out := p.Must("down", "jobs", "--plain"); !strings.Contains(out, "nothing is left") {
		t.Errorf("down says\n%s", out)
	}
}

// down ends all jobs of a sweep that goes on.
func downEndsTrials(t *testing.T, p *project) {
	p.searching(3000, "0.6, 0.5, 0.4, 0.3", "parallel: 3")
	sweep := p.Command("sweep", "--json")
	if err := sweep.Start(); err != nil {
		t.Fatal(err)
	}
	p.Await("three trials run", func() bool { return p.Board().Running == 3 })
	_ = sweep.Process.Kill()
	_ = sweep.Wait()
	if out := p.Must("down", "jobs", "--plain"); !strings.Contains(out, "nothing is left") {
		t.Errorf("down says\n%s", out)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Dir, "../state/localjob/*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if out := p.Must("runs", "--json"); strings.Count(out, `"verdict":"stopped"`) != 3 {
		t.Errorf("the ends of the trials:\n%s", out)
	}
}

// What a job can't share is refused where it stands, and before anything is made.
func trialsShareNothing(t *testing.T, p *project) {
	p.searching(3, "0.6, 0.5", "nodes: 2, gpus: 1")
	out, err := p.Try("sweep", "--plain")
	for _, want := range []string{"sweep.nodes: it shares out the nodes", "sweep.gpus: it shares out the nodes", "dlwb.yaml:5:"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%q is not said: %v: %s", want, err, out)
		}
	}
	if out := p.Must("ls", "--json"); strings.Contains(out, `"jobs"`) {
		t.Errorf("a cluster is there: %s", out)
	}
}

// A dlwb that dies the moment a job was handed in, and one that is interrupted while
// trials run and wait, leave each trial to the next, which hands none in twice.
func trialsAreInterrupted(t *testing.T, p *project) {
	p.searching(60, "0.6, 0.5, 0.4", "parallel: 2")
	dies := p.Command("sweep", "--json")
	dies.Env = append(dies.Env, "DLWB_LOCALJOB_DIE=yes")
	if err := dies.Run(); err == nil {
		t.Fatal("it did not die")
	}
	interrupted := p.Command("sweep", "--plain")
	var said bytes.Buffer
	interrupted.Stdout, interrupted.Stderr = &said, &said
	if err := interrupted.Start(); err != nil {
		t.Fatal(err)
	}
	p.Await("a trial is through, and others are not", func() bool { b := p.Board(); return b.Done >= 1 && b.Running > 0 })
	_ = interrupted.Process.Signal(os.Interrupt)
	if err := interrupted.Wait(); err == nil || !strings.Contains(said.String(), "dlwb sweep goes on with them") {
		t.Errorf("%v:\n%s", err, said.String())
	}
	p.Must("sweep", "--json")
	b := p.Board()
	if b.Trials != 3 || b.Done != 3 || b.Best != 3 {
		t.Errorf("%+v", b)
	}
	jobs, _ := filepath.Glob(filepath.Join(p.Dir, "../state/localjob/*/*/job.json"))
	if runs := strings.Count(p.Must("runs", "--json"), `"verdict":"succeeded"`); runs != 3 || len(jobs) != 3 {
		t.Errorf("three trials have %d runs, and were handed in as %q", runs, jobs)
	}
	p.Must("down", "jobs", "--plain")
}
