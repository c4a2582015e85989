//go:build linux

package localjob

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/planned"
	"github.com/dlwb/dlwb/workbench/event"
)

// project is a directory with a state of its own, and a program that knows
// local-job.
type project struct{ *jobstory.Project }

func newProject(t *testing.T, program string) *project {
	t.Helper()
	p := &project{jobstory.New(t, program, "DLWB_KEEPER=off")}
	t.Cleanup(func() { _, _ = p.Try("down", "--all", "--plain") })
	return p
}

// profile writes a trusted profile of that provider.
func (p *project) profile(provider, pause string) {
	p.T.Helper()
	p.Write("dlwb.yaml", "name: jobs\nprovider: "+provider+"\nmachines: {count: 2}\nrun: {engine: plain, command: train.py "+pause+"}\n")
	p.Trust("dlwb.yaml")
}

// story are the names of events, each once where it comes several times in a
// row, without those that are of machines alone.
func story(events []map[string]any) (names []string) {
	for _, e := range events {
		name, _ := e["event"].(string)
		if slices.Contains([]string{"step_progress", "sample", "log_line", "point", "progress", "node", "notice"}, name) {
			continue
		}
		if step, is := e["step"].(string); is {
			if slices.Contains([]string{"cluster", "environment", "sync", "launch", stepUpload, stepQueue}, step) {
				continue // each has steps of its own before training
			}
			name += " " + step
		}
		names = append(names, name)
	}
	return names
}

func TestAJobGoesThroughTheSameLifeAsAClusterOfNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles dlwb")
	}
	program := Build(t)
	t.Run("same story", func(t *testing.T) { sameStory(t, program) })
	t.Run("restart, stop and down", func(t *testing.T) { restart(t, newProject(t, program)) })
	t.Run("killed between submit and record", func(t *testing.T) { killed(t, newProject(t, program)) })
	t.Run("killed in the queue", func(t *testing.T) { killedInQueue(t, newProject(t, program)) })
	t.Run("what it can't", func(t *testing.T) { lacking(t, newProject(t, program)) })
	t.Run("as planned", func(t *testing.T) { asPlanned(t, newProject(t, program)) })
}

// A command that is completed by what the script says of itself runs as the plan has it.
func asPlanned(t *testing.T, p *project) {
	p.Write("told.py", "import argparse\na = argparse.ArgumentParser()\na.add_argument('--num_nodes', type=int)\nprint('of', a.parse_args().num_nodes, 'nodes')\n")
	p.Write("dlwb.yaml", "name: jobs\nprovider: local-job\nmachines: {count: 2}\nrun: {engine: lightning, command: told.py}\n")
	p.Trust("dlwb.yaml")
	var plan planned.Plan
	if err := json.Unmarshal([]byte(p.Must("plan", "--json")), &plan); err != nil {
		t.Fatal(err)
	}
	var run event.RunStarted
	said, err := json.Marshal(jobstory.EventOf(t, jobstory.Said(t, p.Must("run", "--json", "--down")), "run_started"))
	if err == nil {
		err = json.Unmarshal(said, &run)
	}
	if err != nil {
		t.Fatal(err)
	}
	run.Python = "python3" // whichever the machines of the job have
	if _, err := plan.Taken(run); err != nil {
		t.Error(err)
	}
	if out := p.stored(); !strings.Contains(out, "of 2 nodes\n") {
		t.Errorf("the log is\n%s", out)
	}
}

// The same script as a job and on nodes of this machine: the same events, the
// same series, the same form of the receipt.
func sameStory(t *testing.T, program string) {
	stories, series, receipts := map[string][]string{}, map[string]string{}, map[string][]string{}
	for _, provider := range []string{"local", "local-job"} {
		p := newProject(t, program)
		p.profile(provider, "0.02")
		if out := p.Must("plan"); provider == "local-job" && !strings.Contains(out, "upload → queue → train → fetch → down") {
			t.Errorf("the plan has other steps:\n%s", out)
		}
		events := jobstory.Said(t, p.Must("run", "--json", "--down"))
		stories[provider] = story(events)
		run, _ := jobstory.EventOf(t, events, "run_started")["run"].(string)
		series[provider] = p.Must("export", run, "--format", "csv")
		for key := range jobstory.EventOf(t, events, "receipt") {
			receipts[provider] = append(receipts[provider], key)
		}
		slices.Sort(receipts[provider])
		if proven := jobstory.EventOf(t, events, "receipt")["proven"]; proven != true {
			t.Errorf("%s: the receipt says %v", provider, proven)
		}
		if out := p.stored(); !strings.HasSuffix(out, "step 40/40 loss 0.1000\nrank 0 is through\n") {
			t.Errorf("%s: the log is\n%s", provider, out)
		}
	}
	if a, b := stories["local"], stories["local-job"]; !slices.Equal(a, b) {
		t.Errorf("the stories differ:\n%q\n%q", a, b)
	}
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT[^,\n]*|jobs-[0-9a-f-]*`)
	if a, b := times.ReplaceAllString(series["local"], ""), times.ReplaceAllString(series["local-job"], ""); a != b || !strings.Contains(a, "loss") {
		t.Errorf("the series differ:\n%s\n%s", a, b)
	}
	if a, b := receipts["local"], receipts["local-job"]; !slices.Equal(a, b) {
		t.Errorf("the receipts differ: %q, %q", a, b)
	}
}

// A detached run is found again by another process, read from where its log was,
// stopped and taken down.
func restart(t *testing.T, p *project) {
	p.profile("local-job", "2") // it goes on until it is stopped, however long that takes
	p.Must("run", "--plain", "--detach")
	watch := p.Command("attach", "jobs", "--plain")
	var out bytes.Buffer
	watch.Stdout = &out
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	p.awaitLog("step 3/40")
	_ = watch.Process.Kill() // with what it had not noted
	_ = watch.Wait()
	p.Must("stop", "jobs", "--plain")
	log := p.stored()
	last := 0
	for line := range strings.Lines(log) {
		if step, is := strings.CutPrefix(line, "step "); is {
			if last++; !strings.HasPrefix(step, jsonOf(last)+"/40 ") {
				t.Fatalf("step %d is missing or comes twice:\n%s", last, log)
			}
		}
	}
	if last < 3 || last == 40 {
		t.Errorf("%d steps are in the log of a run that was stopped", last)
	}
	if out := p.Must("runs"); !strings.Contains(out, "stopped") {
		t.Errorf("the run was not stopped:\n%s", out)
	}
	if out := p.Must("down", "jobs", "--plain"); !strings.Contains(out, "nothing is left") {
		t.Errorf("down says\n%s", out)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Dir, "../state/localjob/*")); len(left) > 0 {
		t.Errorf("down left %q", left)
	}
}

func jsonOf(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// stored is the log of rank 0 of the one run.
func (p *project) stored() string {
	logs, _ := filepath.Glob(filepath.Join(p.Dir, "../state/runs/*/rank-0.log"))
	if len(logs) != 1 {
		return ""
	}
	text, _ := os.ReadFile(logs[0])
	return string(text)
}

// awaitLog waits until a text is in the stored log.
func (p *project) awaitLog(text string) {
	p.T.Helper()
	for limit := time.Now().Add(90 * time.Second); !strings.Contains(p.stored(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			p.T.Fatalf("%q is not in the log:\n%s", text, p.stored())
		}
	}
}

// Killed when the job was handed in and nothing of that was on record, dlwb finds
// the job by its run, and there is one.
func killed(t *testing.T, p *project) {
	p.profile("local-job", "0.05")
	cmd := p.Command("run", "--plain")
	cmd.Env = append(cmd.Env, "DLWB_LOCALJOB_DIE=1")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("dlwb was not killed: %v\n%s", err, out)
	}
	out := p.Must("attach", "jobs", "--plain")
	if !strings.Contains(out, "every rank ended with code 0") {
		t.Errorf("attach says\n%s", out)
	}
	if jobs, _ := filepath.Glob(filepath.Join(p.Dir, "../state/localjob/*/*/job.json")); len(jobs) != 1 {
		t.Errorf("there are %d jobs: %q", len(jobs), jobs)
	}
	if log := p.stored(); strings.Count(log, "step 1/40") != 1 {
		t.Errorf("the job ran twice:\n%s", log)
	}
}

// Killed while its job waits in the queue, dlwb waits there again: a job has not
// started before its service says so.
func killedInQueue(t *testing.T, p *project) {
	held := filepath.Join(t.TempDir(), "held")
	if err := os.WriteFile(held, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = append(p.Env, "DLWB_LOCALJOB_QUEUE="+held)
	p.profile("local-job", "0.02")
	first, said := p.said("run", "--json")
	awaitText(t, said, `"step":"`+stepQueue+`"`)
	_ = first.Process.Kill()
	_ = first.Wait()
	again, said := p.said("attach", "jobs", "--json")
	awaitText(t, said, `"step":"`+stepQueue+`"`)
	if out := said(); strings.Contains(out, `"run_started"`) {
		t.Errorf("a job that waits counts as started:\n%s", out)
	}
	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}
	if err := again.Wait(); err != nil {
		t.Errorf("attach: %v", err)
	}
	if out := p.Must("runs"); !strings.Contains(out, "succeeded") {
		t.Errorf("the run is\n%s", out)
	}
}

// said starts a command, and gives what it has printed so far.
func (p *project) said(args ...string) (*exec.Cmd, func() string) {
	p.T.Helper()
	out, err := os.CreateTemp(p.T.TempDir(), "said")
	if err != nil {
		p.T.Fatal(err)
	}
	p.T.Cleanup(func() { _ = out.Close() })
	cmd := p.Command(args...)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		p.T.Fatal(err)
	}
	return cmd, func() string {
		text, _ := os.ReadFile(out.Name())
		return string(text)
	}
}

func awaitText(t *testing.T, said func() string, text string) {
	t.Helper()
	for limit := time.Now().Add(90 * time.Second); !strings.Contains(said(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s is not said:\n%s", text, said())
		}
	}
}

// What needs a machine to log in to says why it can't, and what to do.
func lacking(t *testing.T, p *project) {
	p.Write("dlwb.yaml", "name: jobs\nprovider: local-job\nmachines: {count: 2}\nrun: {engine: plain, command: train.py 10}\nforward: [8080]\n")
	p.Trust("dlwb.yaml")
	p.Must("run", "--plain", "--detach")
	for _, c := range []struct {
		args []string
		lack int
	}{
		{[]string{"exec", "jobs", "--", "true"}, 0}, {[]string{"ssh", "jobs"}, 0}, {[]string{"forward", "jobs", "jupyter"}, 1},
		{[]string{"forward", "jobs", "8080"}, 1}, {[]string{"pull", "jobs"}, 3}, {[]string{"ssh", "--config", "jobs"}, 0},
	} {
		out, err := p.Try(c.args...)
		if err == nil || !strings.Contains(out, lacks[c.lack].Why) || !strings.Contains(out, lacks[c.lack].Next) {
			t.Errorf("dlwb %s: %v\n%s", strings.Join(c.args, " "), err, out)
		}
	}
	p.Write("up.yaml", "name: other\nprovider: local-job\nrun: {engine: plain, command: train.py 1}\n")
	p.Trust("up.yaml")
	if out, err := p.Try("up", "up.yaml"); err == nil || !strings.Contains(out, "takes whole jobs") {
		t.Errorf("up: %v\n%s", err, out)
	}
	// Teardown finishes the run, and begins nothing for it.
	for _, e := range jobstory.Said(t, p.Must("down", "jobs", "--json")) {
		if text, _ := e["text"].(string); strings.Contains(text, "forward 8080") {
			t.Errorf("teardown opened what the profile lists: %v", e)
		}
	}
}

// Twice with one run, there is one job.
func TestASecondSubmitMakesNoSecondJob(t *testing.T) {
	dir := t.TempDir()
	p := New(dir, "/bin/true")
	life := cloud.Life{Name: "c", ID: "l", Began: time.Now()}
	for _, command := range []string{"first", "second"} {
		if err := p.handIn(filepath.Join(p.life(life), "r"), cloud.Job{Run: "r", Replicas: 1, Command: []string{command}}); err != nil {
			t.Fatal(err)
		}
	}
	j, err := readJob(filepath.Join(dir, "l", "r"))
	if err != nil || j.Command[0] != "first" {
		t.Errorf("%+v, %v", j, err)
	}
	if found, err := p.Find(t.Context(), life, "other", cloud.Untold); err != nil || found.Ref != "" {
		t.Errorf("found %+v, %v", found, err)
	}
}
