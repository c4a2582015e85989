//go:build linux

package ecsstory

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeecs"
	"github.com/dlwb/dlwb/internal/jobstory"
)

func TestMain(m *testing.M) { jobstory.Main(m) }

// project is a directory with a state of its own, and an account.
type project struct {
	*jobstory.Project
	fake *fakeecs.Fake
}

func newProject(t *testing.T) *project {
	t.Helper()
	fake := fakeecs.New(filepath.Join(t.TempDir(), "aws"))
	t.Cleanup(fake.Close)
	return &project{jobstory.New(t, jobstory.Program(t), append(fake.Env(), "DLWB_SETTLE=3s")...), fake}
}

const machines = "machines: {count: 2, instance: m5.xlarge, image: 'rayproject/ray:2.40.0'}\n"

// profile writes a trusted profile.
func (p *project) profile(provider, run, more string) {
	p.T.Helper()
	where := "machines: {count: 2}\n"
	if provider == "ecs" {
		where = machines
	}
	if strings.Contains(more, "machines:") {
		where = ""
	}
	p.Write("dlwb.yaml", "name: jobs\nprovider: "+provider+"\n"+where+"run: "+run+"\n"+more)
	p.Trust("dlwb.yaml")
}

// clean looks whether anything is left that was made.
func (p *project) clean() {
	p.T.Helper()
	if left := p.fake.Left(); len(left) > 0 {
		p.T.Errorf("left is %q", left)
	}
}

// The same script as a job of Ray on ECS and on nodes of this machine: the same events,
// the same series, the same form of the receipt.
func TestARayJobHasTheSameStoryAsNodesOfThisMachine(t *testing.T) {
	t.Parallel()
	stories, series, receipts := map[string][]string{}, map[string]string{}, map[string][]string{}
	for _, provider := range []string{"local", "ecs"} {
		p := newProject(t)
		p.profile(provider, `{engine: plain, command: train.py 0.02, env: {GREETING: "a b'c"}}`, "limits: {lifetime: 1h}\n")
		events := jobstory.Said(t, p.Must("run", "--json", "--down"))
		stories[provider] = jobstory.Story(events)
		run, _ := jobstory.EventOf(t, events, "run_started")["run"].(string)
		series[provider] = p.Must("export", run, "--format", "csv")
		for key := range jobstory.EventOf(t, events, "receipt") {
			receipts[provider] = append(receipts[provider], key)
		}
		slices.Sort(receipts[provider])
		if proven := jobstory.EventOf(t, events, "receipt")["proven"]; proven != true {
			t.Errorf("%s: the receipt says %v", provider, jobstory.EventOf(t, events, "receipt"))
		}
		if out := p.Logs()["rank-0.log"]; !strings.HasSuffix(out, "step 40/40 loss 0.1000\nrank 0 is through\n") || strings.Contains(out, "[dlwb]") {
			t.Errorf("%s: the log is\n%s", provider, out)
		}
		if out := p.Logs()["rank-1.log"]; !strings.HasSuffix(out, "rank 1 is through\n") {
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
