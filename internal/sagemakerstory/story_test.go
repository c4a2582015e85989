//go:build linux

package sagemakerstory

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakesagemaker"
)

var (
	building sync.Once
	built    string
	buildErr error
)

// program is dlwb, built once for all tests.
func program(t *testing.T) string {
	t.Helper()
	building.Do(func() {
		dir, err := os.MkdirTemp("", "dlwb-sagemaker")
		if buildErr = err; err != nil {
			return
		}
		built = filepath.Join(dir, "dlwb")
		if out, err := exec.Command("go", "build", "-o", built, "../..").CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("%w: %s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return built
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

// project is a directory with a state of its own, and an account.
type project struct {
	t    *testing.T
	dir  string
	fake *fakesagemaker.Fake
	env  []string
}

const script = `import os, sys, time
rank = int(os.environ["RANK"])
for step in range(1, 41):
    if rank == 0:
        print(f"step {step}/40 loss {4 / step:.4f}", flush=True)
    time.sleep(float(sys.argv[1]))
print("rank", rank, "is through", flush=True)
`

func newProject(t *testing.T) *project {
	t.Helper()
	dir := t.TempDir()
	p := &project{t: t, dir: filepath.Join(dir, "p"), fake: fakesagemaker.New(filepath.Join(dir, "containers"))}
	t.Cleanup(p.fake.Close)
	p.env = append(p.fake.Env(), "HOME="+dir, "DLWB_HOME="+filepath.Join(dir, "state"), "XDG_STATE_HOME=")
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write("train.py", script)
	return p
}

func (p *project) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

const machines = "machines: {count: 2, instance: ml.m5.large, execution_role: Training}\n"

// profile writes a trusted profile.
func (p *project) profile(provider, run, more string) {
	p.t.Helper()
	where := "machines: {count: 2}\n"
	if provider == "sagemaker" {
		where = machines
	}
	if strings.Contains(more, "machines:") {
		where = ""
	}
	p.write("dlwb.yaml", "name: jobs\nprovider: "+provider+"\n"+where+"run: "+run+"\n"+more)
	p.must("trust", "--hash", p.hash(), "dlwb.yaml")
}

var shownHash = regexp.MustCompile(`--hash ([0-9a-f]+)`)

func (p *project) hash() string {
	p.t.Helper()
	out, _ := p.try("plan", "dlwb.yaml")
	hash := shownHash.FindStringSubmatch(out)
	if hash == nil {
		p.t.Fatalf("no hash is shown in\n%s", out)
	}
	return hash[1]
}

func (p *project) command(args ...string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command(program(p.t), args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	return cmd
}

func (p *project) try(args ...string) (string, error) {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	return string(out), err
}

func (p *project) must(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatalf("dlwb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// said are the events that a command printed.
func said(t *testing.T, out string) (events []map[string]any) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

// story are the names of events, without those that say how far something is and the
// steps that a provider has for itself.
func story(events []map[string]any) (names []string) {
	for _, e := range events {
		name, _ := e["event"].(string)
		if slices.Contains([]string{"step_progress", "sample", "log_line", "point", "progress", "node", "notice"}, name) {
			continue
		}
		if step, is := e["step"].(string); is {
			if !slices.Contains([]string{"train", "fetch", "down"}, step) {
				continue
			}
			name += " " + step
		}
		names = append(names, name)
	}
	return names
}

func eventOf(t *testing.T, events []map[string]any, name string) map[string]any {
	t.Helper()
	for _, e := range events {
		if e["event"] == name {
			return e
		}
	}
	t.Fatalf("there is no event %s", name)
	return nil
}

// logs are the stored logs, by the names of their files.
func (p *project) logs() map[string]string {
	all := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(p.dir, "../state/runs/*/rank-*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		all[filepath.Base(file)] = string(text)
	}
	return all
}

// clean looks whether anything is left that costs or was the run's own.
func (p *project) clean() {
	p.t.Helper()
	if left := p.fake.Running(); len(left) > 0 {
		p.t.Errorf("jobs are left: %q", left)
	}
	if left := p.fake.Objects("sagemaker-us-west-2-"+fakesagemaker.Account, "dlwb/"); len(slices.DeleteFunc(left, func(k string) bool { return strings.HasPrefix(k, "dlwb/output/") })) > 0 {
		p.t.Errorf("objects are left: %q", left)
	}
}

func (p *project) await(what string, is func() bool) {
	p.t.Helper()
	for limit := time.Now().Add(60 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			p.t.Fatalf("%s: not within a minute; the logs are %q", what, p.logs())
		}
	}
}

// The same script as a training job and on nodes of this machine: the same events,
// the same series, the same form of the receipt.
func TestATrainingJobHasTheSameStoryAsNodesOfThisMachine(t *testing.T) {
	stories, series, receipts := map[string][]string{}, map[string]string{}, map[string][]string{}
	for _, provider := range []string{"local", "sagemaker"} {
		p := newProject(t)
		p.profile(provider, `{engine: plain, command: train.py 0.02, env: {GREETING: "a b'c"}}`, "limits: {lifetime: 1h}\n")
		events := said(t, p.must("run", "--json", "--down"))
		stories[provider] = story(events)
		run, _ := eventOf(t, events, "run_started")["run"].(string)
		series[provider] = p.must("export", run, "--format", "csv")
		for key := range eventOf(t, events, "receipt") {
			receipts[provider] = append(receipts[provider], key)
		}
		slices.Sort(receipts[provider])
		if proven := eventOf(t, events, "receipt")["proven"]; proven != true {
			t.Errorf("%s: the receipt says %v", provider, proven)
		}
		if out := p.logs()["rank-0.log"]; !strings.HasSuffix(out, "step 40/40 loss 0.1000\nrank 0 is through\n") || strings.Contains(out, "[dlwb]") {
			t.Errorf("%s: the log is\n%s", provider, out)
		}
		if out := p.logs()["rank-1.log"]; !strings.HasSuffix(out, "rank 1 is through\n") {
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
	p.write("train.py", "import os, sys, time\nprint('begun', flush=True)\nif os.environ['RANK'] == '1':\n    print('no such file', flush=True)\n    sys.exit(7)\ntime.sleep(60)\n")
	p.profile("sagemaker", "{engine: plain, command: train.py}", "")
	out, err := p.try("run", "--json", "--down")
	if err == nil {
		t.Fatalf("a run that failed exits well:\n%s", out)
	}
	ended := eventOf(t, said(t, out), "run_ended")
	if ended["exit_code"] != 7.0 || ended["rank"] != 1.0 || ended["verdict"] != "exited" && !strings.Contains(fmt.Sprint(ended["cause"]), "rank 1 on node1 exited with code 7") {
		t.Errorf("%v", ended)
	}
	if log := p.logs()["rank-1.log"]; log != "begun\nno such file\n" {
		t.Errorf("the log of rank 1 is %q", log)
	}
	p.clean()
}

// Several ranks of a host have a log each, and a code each.
func TestSeveralRanksOfAHostHaveLogsOfTheirOwn(t *testing.T) {
	p := newProject(t)
	p.write("train.py", "import os, sys\nprint('I am', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], os.environ['SM_CURRENT_HOST'], os.environ['WHAT'])\nsys.exit(0)\n")
	p.profile("sagemaker", `{engine: plain, procs_per_node: 2, command: train.py, env: {WHAT: "a 'b' $c"}}`, "")
	p.must("run", "--json", "--down")
	for rank, host := range []string{"algo-1", "algo-1", "algo-2", "algo-2"} {
		if log, want := p.logs()[fmt.Sprintf("rank-%d.log", rank)], fmt.Sprintf("I am %d of 4 %s a 'b' $c\n", rank, host); log != want {
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
	for _, by := range []string{"dlwb", "elsewhere"} {
		t.Run(by, func(t *testing.T) {
			p := newProject(t)
			p.profile("sagemaker", "{engine: plain, command: train.py 0.2}", "")
			p.must("run", "--plain", "--detach")
			watch := p.command("attach", "jobs", "--plain")
			if err := watch.Start(); err != nil {
				t.Fatal(err)
			}
			p.await("step 3", func() bool { return strings.Contains(p.logs()["rank-0.log"], "step 3/40") })
			if by == "dlwb" {
				_ = watch.Process.Kill() // with what it had not noted
				_ = watch.Wait()
				p.must("stop", "jobs", "--plain")
			} else {
				p.fake.StopElsewhere(p.fake.Jobs()[0])
				_ = watch.Wait()
			}
			p.steps(3)
			out := p.must("runs")
			if !strings.Contains(out, "stopped") {
				t.Errorf("runs says\n%s", out)
			}
			if out := p.must("down", "jobs", "--plain"); !strings.Contains(out, "nothing is left") {
				t.Errorf("down says\n%s", out)
			}
			p.clean()
		})
	}
}

// steps looks whether the log of rank 0 has the steps from 1 on, each once.
func (p *project) steps(least int) {
	p.t.Helper()
	last, log := 0, p.logs()["rank-0.log"]
	for line := range strings.Lines(log) {
		if step, is := strings.CutPrefix(line, "step "); is {
			if last++; !strings.HasPrefix(step, fmt.Sprint(last)+"/40 ") {
				p.t.Fatalf("step %d is missing or comes twice:\n%s", last, log)
			}
		}
	}
	if last < least {
		p.t.Errorf("%d steps are in the log", last)
	}
}

// Spot machines that are taken back put the job into the queue again; it goes on from
// its checkpoint, with streams of its own, and what it saved is told.
func TestASpotJobGoesOnFromItsCheckpointAndTellsWhatItSaved(t *testing.T) {
	p := newProject(t)
	p.fake.AddBucket("ml-lab", p.fake.Region)
	p.write("train.py", `import os, time
where = os.path.join(os.environ["SAGEMAKER_BASE_DIR"], "checkpoints", "step")
first = int(open(where).read()) + 1 if os.path.exists(where) else 1
for step in range(first, 41):
    print(f"step {step}/40", flush=True)
    with open(where, "w") as f:
        f.write(str(step))
    time.sleep(0.1)
`)
	p.profile("sagemaker", "{engine: plain, command: train.py}", "machines: {instance: ml.m5.large, execution_role: Training, spot: true, max_wait: 2h, checkpoints: 's3://ml-lab/ckpt'}\nlimits: {lifetime: 1h}\n")
	p.must("run", "--plain", "--detach")
	watch := p.command("attach", "jobs", "--plain")
	out := &strings.Builder{}
	watch.Stdout, watch.Stderr = out, out
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	p.await("step 5", func() bool { return strings.Contains(p.logs()["rank-0.log"], "step 5/40") })
	p.fake.Interrupt(p.fake.Jobs()[0])
	if err := watch.Wait(); err != nil {
		t.Errorf("attach: %v\n%s", err, out)
	}
	if log := p.logs()["rank-0.log"]; strings.Count(log, "step 1/40\n") != 1 || strings.Count(log, "step 40/40\n") != 1 {
		t.Errorf("the log is\n%s", log)
	}
	if !strings.Contains(out.String(), "taken back") {
		t.Errorf("that its machines were taken is not told:\n%s", out)
	}
	if down := p.must("down", "jobs", "--plain"); !strings.Contains(down, "% saved") {
		t.Errorf("what spot saved is not told:\n%s", down)
	}
	p.clean()
}

// A job has its time from the service itself; a warm pool is given back.
func TestATimeLimitIsAVerdictAndAWarmPoolIsGivenBack(t *testing.T) {
	t.Run("limit", func(t *testing.T) {
		p := newProject(t)
		p.profile("sagemaker", "{engine: plain, command: train.py 10}", "limits: {lifetime: 1m, budget: 0.004 usd}\n")
		body := ""
		if out, err := p.try("plan"); err != nil || !strings.Contains(out, "ends the job after 1m") {
			t.Fatalf("%v\n%s", err, out)
		}
		p.must("run", "--plain", "--detach")
		body = string(p.fake.Calls("CreateTrainingJob")[0].Body)
		if !strings.Contains(body, `"MaxRuntimeInSeconds":60`) {
			t.Errorf("sent was %s", body)
		}
		p.must("down", "jobs", "--plain")
		p.clean()
	})
	t.Run("warm pool", func(t *testing.T) {
		p := newProject(t)
		p.profile("sagemaker", "{engine: plain, command: train.py 0}", "machines: {instance: ml.m5.large, execution_role: Training, keep_alive: 30m}\n")
		p.must("run", "--plain")
		if len(p.fake.Running()) != 1 {
			t.Fatal("the machines are not kept")
		}
		p.must("down", "jobs", "--plain")
		p.clean()
	})
}
