//go:build linux

package sagemakerstory

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/fakesagemaker"
	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

func TestMain(m *testing.M) { jobstory.Main(m) }

// project is a directory with a state of its own, and an account.
type project struct {
	*jobstory.Project
	fake *fakesagemaker.Fake
}

func newProject(t *testing.T) *project {
	t.Helper()
	fake := fakesagemaker.New(filepath.Join(t.TempDir(), "containers"))
	t.Cleanup(fake.Close)
	return &project{jobstory.New(t, jobstory.Program(t), fake.Env()...), fake}
}

const machines = "machines: {count: 2, instance: ml.m5.large, execution_role: Training}\n"

// profile writes a trusted profile.
func (p *project) profile(provider, run, more string) {
	p.T.Helper()
	where := "machines: {count: 2}\n"
	if provider == "sagemaker" {
		where = machines
	}
	if strings.Contains(more, "machines:") {
		where = ""
	}
	p.Write("dlwb.yaml", "name: jobs\nprovider: "+provider+"\n"+where+"run: "+run+"\n"+more)
	p.Trust("dlwb.yaml")
}

// clean looks whether anything is left that costs or was the run's own, and whether the
// documents name the right to each call that was made.
func (p *project) clean() {
	p.T.Helper()
	docs, err := os.ReadFile("../../docs/sagemaker.md")
	if err != nil {
		p.T.Fatal(err)
	}
	for _, c := range p.fake.Calls("") {
		right := map[string]string{"HeadBucket": "ListBucket", "ListObjectsV2": "ListBucket", "HeadObject": "GetObject"}[c.Name]
		if right == "" {
			right = c.Name
		}
		if right != "GetCallerIdentity" && !regexp.MustCompile("[`:]"+right+"`").Match(docs) { // everybody may ask who he is
			p.T.Errorf("docs/sagemaker.md does not name the right to %s", right)
		}
	}
	if left := p.fake.Running(); len(left) > 0 {
		p.T.Errorf("jobs are left: %q", left)
	}
	if left := p.fake.Objects("sagemaker-us-west-2-"+fakesagemaker.Account, "dlwb/"); len(slices.DeleteFunc(left, func(k string) bool { return strings.HasPrefix(k, "dlwb/output/") })) > 0 {
		p.T.Errorf("objects are left: %q", left)
	}
}

// The same script as a training job and on nodes of this machine: the same events,
// the same series, the same form of the receipt.
func TestATrainingJobHasTheSameStoryAsNodesOfThisMachine(t *testing.T) {
	stories, series, receipts := map[string][]string{}, map[string]string{}, map[string][]string{}
	for _, provider := range []string{"local", "sagemaker"} {
		p := newProject(t)
		p.profile(provider, `{engine: plain, command: train.py 0.02, env: {GREETING: "a b'c"}}`, "limits: {lifetime: 1h}\n")
		events := jobstory.Said(t, p.Must("run", "--json", "--down"))
		stories[provider] = jobstory.Story(events)
		run, _ := jobstory.EventOf(t, events, "run_started")["run"].(string)
		if provider == "sagemaker" {
			billed(t, p, events)
			stories[provider] = slices.DeleteFunc(stories[provider], func(name string) bool { return name == "run_billed" })
		}
		series[provider] = p.Must("export", run, "--format", "csv")
		for key := range jobstory.EventOf(t, events, "receipt") {
			receipts[provider] = append(receipts[provider], key)
		}
		slices.Sort(receipts[provider])
		if proven := jobstory.EventOf(t, events, "receipt")["proven"]; proven != true {
			t.Errorf("%s: the receipt says %v", provider, proven)
		}
		if out := p.Logs()["rank-0.log"]; !strings.HasSuffix(out, "step 40/40 loss 0.1000\nrank 0 is through\n") || strings.Contains(out, "[dlwb]") {
			t.Errorf("%s: the log is\n%s", provider, out)
		}
		if out := p.Logs()["rank-1.log"]; !strings.HasSuffix(out, "rank 1 is through\n") {
			t.Errorf("%s: the log of rank 1 is\n%s", provider, out)
		}
		p.clean()
	}
	if a, b := stories["local"], stories["sagemaker"]; !slices.Equal(a, b) {
		t.Errorf("the stories differ:\n%q\n%q", a, b)
	}
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT[^,\n]*|jobs-[0-9a-f-]*`)
	if a, b := times.ReplaceAllString(series["local"], ""), times.ReplaceAllString(series["sagemaker"], ""); a != b || !strings.Contains(a, "loss") {
		t.Errorf("the series differ:\n%s\n%s", a, b)
	}
	if a, b := receipts["local"], receipts["sagemaker"]; !slices.Equal(a, b) {
		t.Errorf("the receipts differ: %q, %q", a, b)
	}
}

// A rank that fails is named with its code, and SageMaker's word for it is kept.
func TestARankThatFailsIsNamedWithItsCode(t *testing.T) {
	p := newProject(t)
	p.Write("train.py", "import os, sys, time\nprint('begun', flush=True)\nif os.environ['RANK'] == '1':\n    print('no such file', flush=True)\n    sys.exit(7)\ntime.sleep(60)\n")
	p.profile("sagemaker", "{engine: plain, command: train.py}", "")
	out, err := p.Try("run", "--json", "--down")
	if err == nil {
		t.Fatalf("a run that failed exits well:\n%s", out)
	}
	ended := jobstory.EventOf(t, jobstory.Said(t, out), "run_ended")
	if ended["exit_code"] != 7.0 || ended["rank"] != 1.0 || ended["verdict"] != "exited" && !strings.Contains(fmt.Sprint(ended["cause"]), "rank 1 on node1 exited with code 7") {
		t.Errorf("%v", ended)
	}
	if log := p.Logs()["rank-1.log"]; log != "begun\nno such file\n" {
		t.Errorf("the log of rank 1 is %q", log)
	}
	p.clean()
}

// A job that fails before its containers begin has failed, with SageMaker's reason,
// whoever looks: also where the cluster is removed next.
func TestAJobThatFailsBeforeItBeginsHasFailed(t *testing.T) {
	sample.Leave(t)
	const reason = "CapacityError: Unable to provision requested ML compute capacity. Please retry using a different ML instance type."
	for _, way := range []string{"run", "detach"} {
		t.Run(way, func(t *testing.T) {
			p := newProject(t)
			p.fake.NeverBegins = reason
			p.profile("sagemaker", "{engine: plain, command: train.py}", "")
			var out string
			if way == "run" {
				var err error
				if out, err = p.Try("run", "--json", "--down"); err == nil {
					t.Fatalf("a run that failed exits well:\n%s", out)
				}
			} else { // nobody looks before the removal
				p.Must("run", "--plain", "--detach")
				p.Await("the failure", func() bool { jobs := p.fake.Jobs(); return len(jobs) == 1 && p.fake.Status(jobs[0]) == "Failed" })
				out = p.Must("down", "jobs", "--json")
			}
			events := jobstory.Said(t, out)
			ended := jobstory.EventOf(t, events, "run_ended")
			if ended["verdict"] != "failed" || ended["exit_code"] == 0.0 || !strings.Contains(fmt.Sprint(ended["cause"]), "CapacityError") {
				t.Errorf("the end is %v", ended)
			}
			if way == "run" && !strings.Contains(out, "another type or region") {
				t.Errorf("what to do is not told:\n%s", out)
			}
			if out := p.Must("runs"); strings.Contains(out, "stopped") {
				t.Errorf("runs says\n%s", out)
			}
			p.clean()
		})
	}
}

// Several ranks of a host have a log each, and a code each.
func TestSeveralRanksOfAHostHaveLogsOfTheirOwn(t *testing.T) {
	sample.Leave(t)
	p := newProject(t)
	p.Write("train.py", "import os, sys\nprint('I am', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], os.environ['SM_CURRENT_HOST'], os.environ['WHAT'])\nsys.exit(0)\n")
	p.profile("sagemaker", `{engine: plain, procs_per_node: 2, command: train.py, env: {WHAT: "a 'b' $c"}}`, "")
	p.Must("run", "--json", "--down")
	for rank, host := range []string{"algo-1", "algo-1", "algo-2", "algo-2"} {
		if log, want := p.Logs()[fmt.Sprintf("rank-%d.log", rank)], fmt.Sprintf("I am %d of 4 %s a 'b' $c\n", rank, host); log != want {
			t.Errorf("rank %d: %q, want %q", rank, log, want)
		}
	}
	for _, c := range p.fake.Calls("CreateTrainingJob") {
		if strings.Contains(string(c.Body), "a 'b'") {
			t.Errorf("a variable is in the call: %s", c.Body)
		}
	}
	p.clean()
}

// A run that another dlwb stops, or somebody in SageMaker, ends the tail and has its
// verdict; the log has each line once.
func TestAStoppedJobEndsTheTail(t *testing.T) {
	sample.Leave(t)
	for _, by := range []string{"dlwb", "elsewhere"} {
		t.Run(by, func(t *testing.T) {
			p := newProject(t)
			p.profile("sagemaker", "{engine: plain, command: train.py 2}", "")
			p.Must("run", "--plain", "--detach")
			watch := p.Command("attach", "jobs", "--plain")
			if err := watch.Start(); err != nil {
				t.Fatal(err)
			}
			p.Await("step 3", func() bool { return strings.Contains(p.Logs()["rank-0.log"], "step 3/40") })
			if by == "dlwb" {
				_ = watch.Process.Kill() // with what it had not noted
				_ = watch.Wait()
				p.Must("stop", "jobs", "--plain")
			} else {
				p.fake.StopElsewhere(p.fake.Jobs()[0])
				_ = watch.Wait()
			}
			p.steps(3)
			out := p.Must("runs")
			if !strings.Contains(out, "stopped") {
				t.Errorf("runs says\n%s", out)
			}
			if out := p.Must("down", "jobs", "--plain"); !strings.Contains(out, "nothing is left") {
				t.Errorf("down says\n%s", out)
			}
			p.clean()
		})
	}
}

// steps looks whether the log of rank 0 has the steps from 1 on, each once.
func (p *project) steps(least int) {
	p.T.Helper()
	last, log := 0, p.Logs()["rank-0.log"]
	for line := range strings.Lines(log) {
		if step, is := strings.CutPrefix(line, "step "); is {
			if last++; !strings.HasPrefix(step, fmt.Sprint(last)+"/40 ") {
				p.T.Fatalf("step %d is missing or comes twice:\n%s", last, log)
			}
		}
	}
	if last < least {
		p.T.Errorf("%d steps are in the log", last)
	}
}

// billed holds that what SageMaker bills for a job is told when it has ended, and once.
func billed(t *testing.T, p *project, events []map[string]any) {
	t.Helper()
	at := jobstory.EventOf(t, events, "cluster_up")["price_per_hour"].(float64)
	want := p.fake.Billed(p.fake.Jobs()[0]) / 3600 * at
	if n := strings.Count(strings.Join(jobstory.Story(events), "\n"), "run_billed"); n != 1 {
		t.Fatalf("it is told %d times what the job has cost", n)
	}
	if cost := jobstory.EventOf(t, events, "run_billed")["cost"].(float64); cost <= 0 || math.Abs(cost-want) > 1e-9 {
		t.Errorf("it has cost %v, and is told as %v", want, cost)
	}
}

// Spot machines that are taken back put the job into the queue again; it goes on from
// its checkpoint, with streams of its own, and what it saved is told.
func TestASpotJobGoesOnFromItsCheckpointAndTellsWhatItSaved(t *testing.T) {
	p := newProject(t)
	p.fake.AddBucket("ml-lab", p.fake.Region)
	p.Write("train.py", `import os, time
where = os.path.join(os.environ["SAGEMAKER_BASE_DIR"], "checkpoints", "step")
first = int(open(where).read()) + 1 if os.path.exists(where) else 1
for step in range(first, 41):
    print(f"step {step}/40", flush=True)
    with open(where, "w") as f:
        f.write(str(step))
    time.sleep(600 if first == 1 and step == 10 else 0.1) # the machines are taken then
`)
	p.profile("sagemaker", "{engine: plain, command: train.py}", "machines: {instance: ml.m5.large, execution_role: Training, spot: true, max_wait: 2h, checkpoints: 's3://ml-lab/ckpt'}\nlimits: {lifetime: 1h}\n")
	p.Must("run", "--plain", "--detach")
	watch := p.Command("attach", "jobs", "--plain")
	out := &strings.Builder{}
	watch.Stdout, watch.Stderr = out, out
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	p.Await("step 5", func() bool { return strings.Contains(p.Logs()["rank-0.log"], "step 5/40") })
	p.Await("the checkpoint in S3", func() bool { return len(p.fake.Objects("ml-lab", "ckpt/step")) == 1 })
	p.Await("its age", func() bool { return strings.Contains(p.Must("ls", "--json"), `"checkpoint":{"run":`) })
	p.fake.Interrupt(p.fake.Jobs()[0])
	if err := watch.Wait(); err != nil {
		t.Errorf("attach: %v\n%s", err, out)
	}
	if !strings.Contains(out.String(), "checkpoint step is kept: s3://ml-lab/ckpt/step, 1 file") {
		t.Errorf("the checkpoint is not told of:\n%s", out)
	}
	if log := p.Logs()["rank-0.log"]; strings.Count(log, "step 1/40\n") != 1 || strings.Count(log, "step 40/40\n") != 1 {
		t.Errorf("the log is\n%s", log)
	}
	if !strings.Contains(out.String(), "taken back") {
		t.Errorf("that its machines were taken is not told:\n%s", out)
	}
	if down := p.Must("down", "jobs", "--plain"); !strings.Contains(down, "% saved") {
		t.Errorf("what spot saved is not told:\n%s", down)
	}
	p.clean()
}

// A job has its time from the service itself; a warm pool is given back.
func TestATimeLimitIsAVerdictAndAWarmPoolIsGivenBack(t *testing.T) {
	sample.Leave(t)
	t.Run("limit", func(t *testing.T) {
		p := newProject(t)
		p.profile("sagemaker", "{engine: plain, command: train.py 10}", "limits: {lifetime: 1m, budget: 0.004 usd}\n")
		body := ""
		if out, err := p.Try("plan"); err != nil || !strings.Contains(out, "ends the job after 1m") {
			t.Fatalf("%v\n%s", err, out)
		}
		p.Must("run", "--plain", "--detach")
		body = string(p.fake.Calls("CreateTrainingJob")[0].Body)
		if !strings.Contains(body, `"MaxRuntimeInSeconds":60`) {
			t.Errorf("sent was %s", body)
		}
		p.Must("down", "jobs", "--plain")
		p.clean()
	})
	t.Run("warm pool", func(t *testing.T) {
		p := newProject(t)
		p.profile("sagemaker", "{engine: plain, command: train.py 0}", "machines: {instance: ml.m5.large, execution_role: Training, keep_alive: 30m}\n")
		events := jobstory.Said(t, p.Must("run", "--json"))
		if len(p.fake.Running()) != 1 {
			t.Fatal("the machines are not kept")
		}
		if slices.Contains(jobstory.Story(events), "run_billed") {
			t.Error("what it costs is told for good while its machines are kept")
		}
		billed(t, p, append(events, jobstory.Said(t, p.Must("down", "jobs", "--json"))...))
		p.clean()
	})
}

// Torchrun's agents on two hosts start their ranks again, all of them, and the job goes on.
func TestTorchrunStartsItsRanksAgainInATrainingJob(t *testing.T) {
	sample.Leave(t)
	if os.Getenv("DLWB_SAGEMAKER_TRAINING") == "" {
		t.Skip("NOT RUN: it trains by a real torch: make test-sagemaker does")
	}
	if exec.Command("/usr/bin/python3", "-c", "import torch").Run() != nil {
		t.Skip("NOT RUN: python3-torch is not installed; make test-slurm installs it on Debian and Ubuntu")
	}
	t.Setenv("PATH", "/usr/bin:"+os.Getenv("PATH"))
	p := newProject(t)
	p.fake.Hosts = func(n int) string { return fmt.Sprintf("127.0.0.%d", n+1) }
	p.Write("train.py", jobstory.FallsOnce)
	run := "{engine: torchrun, procs_per_node: 2, restarts: 2, command: train.py, env: {OMP_NUM_THREADS: \"1\", FELL: " + filepath.Join(t.TempDir(), "fell") + "}}"
	p.profile("sagemaker", run, "")
	out := p.Must("run", "--json", "--down")
	var all string // the agents deal out the ranks in an order of their own
	for place := range 4 {
		all += p.Logs()[fmt.Sprintf("rank-%d.log", place)]
	}
	for rank := range 4 {
		if !strings.Contains(all, fmt.Sprintf("rank %d sum 4\n", rank)) {
			t.Errorf("rank %d is not through:\n%s\n%s", rank, all, out)
		}
	}
	if strings.Count(all, "the first life ends here") != 1 {
		t.Errorf("one rank failed once:\n%s", all)
	}
	p.clean()
}
