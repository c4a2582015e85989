//go:build linux

package ecsstory

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

// A rank that fails is named with its code.
func TestARankThatFailsIsNamedWithItsCode(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.Write("train.py", "import os, sys, time\nprint('begun', flush=True)\nif os.environ['RANK'] == '1':\n    print('no such file', flush=True)\n    sys.exit(7)\ntime.sleep(60)\n")
	p.profile("ecs", "{engine: plain, command: train.py}", "")
	out, err := p.Try("run", "--json", "--down")
	if err == nil {
		t.Fatalf("a run that failed exits well:\n%s", out)
	}
	ended := jobstory.EventOf(t, jobstory.Said(t, out), "run_ended")
	if ended["exit_code"] != 7.0 || ended["rank"] != 1.0 {
		t.Errorf("%v", ended)
	}
	if log := p.Logs()["rank-1.log"]; log != "begun\nno such file\n" {
		t.Errorf("the log of rank 1 is %q", log)
	}
	p.clean()
}

// A job whose driver Ray could not start has failed, in Ray's words, also where nobody
// looked before the removal.
func TestAJobThatFailsBeforeItBeginsHasFailed(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	const reason = "runtime_env setup failed: Failed to set up runtime environment. Could not download the package."
	for _, way := range []string{"run", "detach"} {
		t.Run(way, func(t *testing.T) {
			p := newProject(t)
			p.fake.NeverBegins = reason
			p.profile("ecs", "{engine: plain, command: train.py 0.01}", "")
			var out string
			if way == "run" {
				var err error
				if out, err = p.Try("run", "--json", "--down"); err == nil {
					t.Fatalf("a run that failed exits well:\n%s", out)
				}
			} else {
				p.Must("run", "--plain", "--detach")
				out = p.Must("down", "jobs", "--json")
			}
			ended := jobstory.EventOf(t, jobstory.Said(t, out), "run_ended")
			if ended["verdict"] != "failed" || ended["exit_code"] == 0.0 || !strings.Contains(fmt.Sprint(ended["cause"]), reason) {
				t.Errorf("the end is %v", ended)
			}
			if out := p.Must("runs"); strings.Contains(out, "stopped") {
				t.Errorf("runs says\n%s", out)
			}
			p.clean()
		})
	}
}

// A run that another dlwb stops, or somebody by Ray's own means, ends the tail and has
// its verdict.
func TestAStoppedJobEndsTheTail(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	for _, by := range []string{"dlwb", "elsewhere"} {
		t.Run(by, func(t *testing.T) {
			p := newProject(t)
			p.profile("ecs", "{engine: plain, command: train.py 2}", "")
			p.Must("run", "--plain", "--detach")
			watch := p.Command("attach", "jobs", "--plain")
			if err := watch.Start(); err != nil {
				t.Fatal(err)
			}
			p.Await("step 3", func() bool { return strings.Contains(p.Logs()["rank-0.log"], "step 3/40") })
			if by == "dlwb" {
				_ = watch.Process.Kill()
				_ = watch.Wait()
				p.Must("stop", "jobs", "--plain")
			} else {
				p.fake.StopJobs()
				_ = watch.Wait()
			}
			last := 0
			for line := range strings.Lines(p.Logs()["rank-0.log"]) {
				if step, is := strings.CutPrefix(line, "step "); is {
					if last++; !strings.HasPrefix(step, fmt.Sprint(last)+"/40 ") {
						t.Fatalf("step %d is missing or comes twice", last)
					}
				}
			}
			if out := p.Must("runs"); !strings.Contains(out, "stopped") {
				t.Errorf("runs says\n%s", out)
			}
			if out := p.Must("down", "jobs", "--plain"); !strings.Contains(out, "nothing is left") {
				t.Errorf("down says\n%s", out)
			}
			p.clean()
		})
	}
}

// A worker that does not join Ray is named with its log; machines that do not come
// are told in Auto Scaling's words.
func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.fake.Lost[1] = true
	p.profile("ecs", "{engine: plain, command: train.py 0.01}", "")
	run := p.Command("run", "--json")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	run.Stdout = out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	said := func() string { text, _ := os.ReadFile(out.Name()); return string(text) }
	p.Await("the missing one", func() bool { return strings.Contains(said(), "ConnectionError: Ray is trying to start") })
	if !strings.Contains(said(), "has not joined Ray") || !strings.Contains(said(), "; missing: i-") {
		t.Errorf("said is\n%s", said())
	}
	_ = run.Process.Kill()
	_ = run.Wait()
	p.Must("down", "jobs", "--plain")
	p.clean()
}

// Every request to ECS, Auto Scaling and the rest is one that AWS's own model of its
// services takes.
func TestEveryRequestIsOneOfAWSsModel(t *testing.T) {
	t.Parallel()
	python := os.Getenv("DLWB_BOTOCORE")
	if python == "" {
		t.Skip("it needs a python with botocore in DLWB_BOTOCORE: make test-ecs installs it")
	}
	p := newProject(t)
	p.profile("ecs", "{engine: plain, command: train.py 0.01}", "machines: {count: 2, instance: m5.xlarge, image: 'rayproject/ray:2.40.0', spot: true, task_role: 'arn:aws:iam::123456789012:role/r', tags: {a: b}}\n")
	p.Must("run", "--json", "--down")
	dir, names := t.TempDir(), map[string]bool{}
	for i, c := range p.fake.Calls() {
		names[c.Name] = true
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.%s.%s", i, c.Service, c.Name)), c.Body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"CreateCluster", "CreateService", "RegisterTaskDefinition", "CreateAutoScalingGroup", "PutScheduledUpdateGroupAction", "CreateLaunchTemplate", "CreateCapacityProvider"} {
		if !names[name] {
			t.Errorf("%s was not sent", name)
		}
	}
	said, err := exec.Command(python, "../tools/aws_model.py", dir).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	p.clean()
	if order := made(p); !slices.IsSortedFunc(order, func(a, b int) int { return a - b }) {
		t.Errorf("machines were asked for before the action that ends them: %v", order)
	}
}

// made are the places of the calls that end machines by a time, and then of those that
// have them come.
func made(p *project) (order []int) {
	last := map[string]int{}
	for i, c := range p.fake.Calls() {
		if _, is := last[c.Name]; !is {
			last[c.Name] = i
		}
	}
	return []int{last["CreateAutoScalingGroup"], last["PutScheduledUpdateGroupAction"], last["UpdateAutoScalingGroup"]}
}

// A budget that is spent before a machine is ready makes none.
func TestABudgetThatPaysForNothingMakesNoMachines(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.profile("ecs", "{engine: plain, command: train.py 0.01}", "limits: {budget: 0.001 usd}\n")
	for _, command := range []string{"plan", "run"} {
		if out, err := p.Try(command, "--plain"); command == "run" && err == nil || !strings.Contains(out, "pays for less than a minute at") || !strings.Contains(out, "raise limits.budget") {
			t.Errorf("dlwb %s: %v\n%s", command, err, out)
		}
	}
	_, _ = p.Try("down", "jobs", "--plain")
	p.clean()
}
