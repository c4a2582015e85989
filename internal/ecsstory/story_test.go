//go:build linux

package ecsstory

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

	"github.com/dlwb/dlwb/internal/fakeecs"
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
		dir, err := os.MkdirTemp("", "dlwb-ecs")
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
	fake *fakeecs.Fake
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
	p := &project{t: t, dir: filepath.Join(dir, "p"), fake: fakeecs.New(filepath.Join(dir, "aws"))}
	t.Cleanup(p.fake.Close)
	p.env = append(p.fake.Env(), "HOME="+dir, "DLWB_HOME="+filepath.Join(dir, "state"), "XDG_STATE_HOME=", "DLWB_SETTLE=3s")
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

const machines = "machines: {count: 2, instance: m5.xlarge, image: 'rayproject/ray:2.40.0'}\n"

// profile writes a trusted profile.
func (p *project) profile(provider, run, more string) {
	p.t.Helper()
	where := "machines: {count: 2}\n"
	if provider == "ecs" {
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
	files, _ := filepath.Glob(filepath.Join(p.dir, "../state/runs/*/*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		all[filepath.Base(file)] = string(text)
	}
	return all
}

// clean looks whether anything is left that was made.
func (p *project) clean() {
	p.t.Helper()
	if left := p.fake.Left(); len(left) > 0 {
		p.t.Errorf("left is %q", left)
	}
}

func (p *project) await(what string, is func() bool) {
	p.t.Helper()
	for limit := time.Now().Add(90 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			p.t.Fatalf("%s: not in time; the logs are %q", what, p.logs())
		}
	}
}

// The same script as a job of Ray on ECS and on nodes of this machine: the same events,
// the same series, the same form of the receipt.
func TestARayJobHasTheSameStoryAsNodesOfThisMachine(t *testing.T) {
	stories, series, receipts := map[string][]string{}, map[string]string{}, map[string][]string{}
	for _, provider := range []string{"local", "ecs"} {
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
			t.Errorf("%s: the receipt says %v", provider, eventOf(t, events, "receipt"))
		}
		if out := p.logs()["rank-0.log"]; !strings.HasSuffix(out, "step 40/40 loss 0.1000\nrank 0 is through\n") || strings.Contains(out, "[dlwb]") {
			t.Errorf("%s: the log is\n%s", provider, out)
		}
		if out := p.logs()["rank-1.log"]; !strings.HasSuffix(out, "rank 1 is through\n") {
			t.Errorf("%s: the log of rank 1 is\n%s", provider, out)
		}
		p.clean()
	}
	if a, b := stories["local"], stories["ecs"]; !slices.Equal(a, b) {
		t.Errorf("the stories differ:\n%q\n%q", a, b)
	}
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT[^,\n]*|jobs-[0-9a-f-]*`)
	if a, b := times.ReplaceAllString(series["local"], ""), times.ReplaceAllString(series["ecs"], ""); a != b || !strings.Contains(a, "loss") {
		t.Errorf("the series differ:\n%s\n%s", a, b)
	}
	if a, b := receipts["local"], receipts["ecs"]; !slices.Equal(a, b) {
		t.Errorf("the receipts differ: %q, %q", a, b)
	}
}
