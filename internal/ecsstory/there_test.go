//go:build linux

package ecsstory

import (
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeecs"
	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

const driver = `import os, sys, time
print("driver", os.environ["DLWB_WORKERS"], flush=True)
for step in range(1, 4):
    print(f"step {step}/3 loss {4 / step:.4f}", flush=True)
time.sleep(float(sys.argv[1]))
`

const thereMachines = "machines: {count: 2, instance: g5.xlarge, image: 'docker.io/rayproject/ray-ml:2.7.1.artur.c9f4c6-py38-gpu', cluster: " + fakeecs.BlueprintCluster + "}\nenvironment: {python: python3}\n"

// blueprint is a project whose account has what the blueprint's Terraform makes, and a
// look whether all of that is there still, and nothing else.
func blueprint(t *testing.T) (p *project, untouched func()) {
	t.Helper()
	p = newProject(t)
	p.fake.Blueprint(2)
	var before []string
	p.Await("the blueprint's containers", func() bool {
		before = slices.Sorted(slices.Values(p.fake.Left()))
		n := 0
		for _, what := range before {
			if strings.HasPrefix(what, "task arn:") {
				n++
			}
		}
		return n == 3 && len(p.fake.AWS.Running()) == 3
	})
	p.Write("train.py", driver)
	return p, func() {
		t.Helper()
		if after := slices.Sorted(slices.Values(p.fake.Left())); !slices.Equal(before, after) {
			t.Errorf("there was\n%q\nand there is\n%q", before, after)
		}
		if n := p.fake.Unended(); n > 0 {
			t.Errorf("%d jobs have not ended", n)
		}
		for _, c := range p.fake.Calls() {
			if !reads(c.Name) && c.Name != "StartSession" && c.Name != "TerminateSession" {
				t.Errorf("%s was called: a cluster of others was changed", c.Name)
			}
		}
	}
}

// A run goes to the Ray of a cluster that is there: what will be used is said before,
// nothing of AWS is made, changed or removed, and the receipt says what stays and that it
// is not dlwb's money.
func TestARunGoesToTheRayThatTheBlueprintMade(t *testing.T) {
	t.Parallel()
	p, untouched := blueprint(t)
	p.profile("ecs", `{engine: ray, command: train.py 0}`, thereMachines)
	plan := p.Must("plan")
	for _, want := range []string{"service distributed_ml_training_head_service has Ray's head", "its workers are 2 with 1 GPU each", "Ray's head is at 10.0.0.", "the machines are not dlwb's"} {
		if !strings.Contains(plan, want) {
			t.Errorf("%q is not in the plan:\n%s", want, plan)
		}
	}
	for _, never := range []string{"auto scaling group", "m5.xlarge", "stands in the task definitions"} {
		if strings.Contains(plan, never) {
			t.Errorf("the plan speaks of %q:\n%s", never, plan)
		}
	}
	events := jobstory.Said(t, p.Must("run", "--json", "--down"))
	if log := p.Logs()["rank-0.log"]; !strings.HasPrefix(log, "driver 2\nstep 1/3 loss 4.0000\n") {
		t.Errorf("the log is %q", log)
	}
	receipt := jobstory.EventOf(t, events, "receipt")
	if receipt["proven"] != true || receipt["cost"] != 0.0 {
		t.Errorf("%v", receipt)
	}
	all, _ := receipt["resources"].([]any)
	if len(all) != 1 {
		t.Fatalf("the receipt has %v", all)
	}
	if proof, _ := all[0].(map[string]any)["proof"].(string); !strings.Contains(proof, "Ray says that it has ended: SUCCEEDED") || !strings.Contains(proof, "its services and machines stay") {
		t.Errorf("the proof is %q", proof)
	}
	untouched()
}

// A job that goes on is ended by down, and by stop with its reason, and its Ray stays.
func TestDownEndsTheJobAloneInAClusterThatIsThere(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	for _, way := range []string{"down", "stop"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			p, untouched := blueprint(t)
			p.profile("ecs", `{engine: ray, command: train.py 600}`, thereMachines)
			p.Must("run", "--json", "--detach")
			p.Await("the job", func() bool { return p.fake.Unended() == 1 })
			if way == "stop" {
				p.Must("stop", "jobs")
			}
			if out := p.Must("down", "jobs", "--plain"); !strings.Contains(out, "Ray says that it has ended: STOPPED") || !strings.Contains(out, "nothing is left") {
				t.Errorf("down says\n%s", out)
			}
			if out := p.Must("runs"); !strings.Contains(out, "stopped") {
				t.Errorf("runs says\n%s", out)
			}
			untouched()
		})
	}
}

// What does not fit is said before anything is handed in.
func TestWhatAClusterThatIsThereCanNotDoIsSaidBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ run, machines, want string }{
		"another engine": {"{engine: torchrun, command: train.py 0}", thereMachines, "takes run.engine: ray"},
		"too many":       {"{engine: ray, command: train.py 0}", strings.Replace(thereMachines, "count: 2", "count: 3", 1), "the run asks for 3"},
		"no such":        {"{engine: ray, command: train.py 0}", strings.Replace(thereMachines, fakeecs.BlueprintCluster, "none", 1), "there is no active ECS cluster none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, untouched := blueprint(t)
			p.profile("ecs", c.run, c.machines)
			if out, err := p.Try("run", "--plain"); err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%v\n%s", err, out)
			}
			if n := p.fake.Posts(); n > 0 {
				t.Errorf("%d jobs were asked for", n)
			}
			untouched()
		})
	}
}

// dlwb is ended by SIGKILL at each call that changes the Ray that is there: no run has
// two jobs, none goes on in the end, and the cluster is as it was.
func TestADlwbThatIsKilledInAClusterThatIsThereLeavesItAsItWas(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	for _, call := range []string{"UploadPackage", "SubmitJob", "StopJob"} {
		for i, m := range []moment{before, lost, atWrite} {
			c := cell{call, 1, m, follows[i]}
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				p, untouched := blueprint(t)
				pause := "0"
				if call == "StopJob" {
					pause = "600"
				}
				p.profile("ecs", `{engine: ray, command: train.py `+pause+`}`, thereMachines)
				hit, runs := c.killIn(p, call == "StopJob")
				if !hit {
					t.Error("it was not killed")
				}
				if c.afterwards != "down" && call != "StopJob" {
					_, _ = p.Try("attach", "jobs", "--plain") // a run that never began is told as that
				}
				if c.afterwards == "run again" && call != "StopJob" {
					runs++
					if out, err := p.Try("run", "--plain"); err != nil {
						t.Errorf("run again: %v\n%s", err, out)
					}
				}
				if text, err := p.Try("down", "jobs", "--plain"); err != nil && !strings.Contains(text, "no cluster") {
					t.Errorf("down: %v\n%s", err, text)
				}
				if n := p.fake.Posts(); n > runs {
					t.Errorf("%d jobs were asked for by %d runs", n, runs)
				}
				untouched()
			})
		}
	}
}
