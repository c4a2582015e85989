//go:build unix

package sagemaker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/fakesagemaker"
	"github.com/dlwb/dlwb/internal/job"
)

// book is a ledger in memory.
type book struct {
	mu  sync.Mutex
	all []cloud.Entry
}

func (b *book) Intend(kind, token string, detail any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, err := json.Marshal(detail)
	b.all = append(b.all, cloud.Entry{Kind: kind, Token: token, Detail: text, IntentAt: time.Now()})
	return err
}

func (b *book) change(token string, change func(*cloud.Entry)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.all {
		if b.all[i].Token == token {
			change(&b.all[i])
			return nil
		}
	}
	return errors.New("there is no intent " + token)
}

func (b *book) Resolve(token, id string) error {
	return b.change(token, func(e *cloud.Entry) { e.ID = id })
}

func (b *book) Close(token, proof string) error {
	now := time.Now()
	return b.change(token, func(e *cloud.Entry) { e.ClosedAt, e.Proof = &now, proof })
}

func (b *book) Entries() ([]cloud.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]cloud.Entry{}, b.all...), nil
}

// account is a fake that this process speaks to.
func account(t *testing.T) (*fakesagemaker.Fake, *Provider, cloud.Life) {
	t.Helper()
	f := fakesagemaker.New(filepath.Join(t.TempDir(), "containers"))
	t.Cleanup(f.Close)
	for _, pair := range f.Env() {
		key, value, _ := strings.Cut(pair, "=")
		t.Setenv(key, value)
	}
	return f, New(), cloud.Life{Name: "c", ID: "0123456789ab", Began: time.Now(), Dir: t.TempDir(), Ledger: &book{}}
}

// jobThat is a job of one machine that runs a program in Python.
func jobThat(t *testing.T, run, program string, m options.Machines) cloud.Job {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	m.Role = "Training"
	words := []string{"python3", "train.py"}
	return cloud.Job{Run: run, Replicas: 1, Command: words, Spec: cloud.Spec{Name: "c", Count: 1, Instance: "ml.m5.large", Own: &m, Lifetime: time.Hour},
		Code: cloud.Code{Dir: dir, Paths: []string{"train.py"}}, Ranks: []cloud.JobRank{{Rank: 0}},
		Procs: []cloud.JobProc{{Name: "rank-0", Ranks: []int{0}, Env: []string{"RANK=0"}, Argv: append([]string{"sh", "~/.dlwb/bin/rank", "rank-0"}, words...)}}}
}

func quiet(int, string) {}

func noStep(string, string) {}

// Connections that are cut, calls that are refused as too many, tokens that are no
// longer good and watchers that end and begin again cost no byte, and double none.
func TestALogIsReadWholeThroughCutsThrottlesAndDeadTokens(t *testing.T) {
	f, p, life := account(t)
	f.PageMost, f.Late = 7, 30*time.Millisecond
	var lost, refused atomic.Int32 // a watcher that has ended may have a call under way
	f.Cut(func(call string, nth int) bool {
		return call == "GetLogEvents" && nth%5 == 2 && lost.Add(1) <= 10
	})
	f.Answer(func(call string, nth int) *fakesagemaker.Error {
		if (call == "GetLogEvents" && nth%4 == 3 || call == "DescribeLogStreams" && nth == 1 || call == "DescribeTrainingJob" && nth == 2) && refused.Add(1) <= 10 {
			return &fakesagemaker.Error{Status: 400, Code: "ThrottlingException", Says: "Rate exceeded"}
		}
		return nil
	})
	const lines = 150
	j := jobThat(t, "r-log", fmt.Sprintf("import time\nfor i in range(%d):\n    print('line', i, 'ä' * (i %% 5), '' if i %% 7 else 'same', flush=True)\n    i %% 30 or time.sleep(0.1)\n", lines), options.Machines{})
	made, err := p.Submit(t.Context(), life, j, noStep, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context(), life, made.Ref, noStep, quiet); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	at, cuts, begun := job.Cursor(""), 0, time.Now()
	for done := false; !done; {
		ctx, cancel := context.WithCancel(t.Context())
		chunks := 0
		err := p.Open(life, made.Ref)[0].FollowLog(ctx, "rank-0.log", at, func(c job.Chunk) error {
			if c.From != at {
				return fmt.Errorf("a chunk begins at %s, and %s was read", c.From, at)
			}
			got.Write(c.Data)
			if at, chunks = c.Next, chunks+1; chunks == 2 && cuts < 10 {
				cuts++
				cancel() // this watcher ends; another goes on from its cursor, some the next day
				if cuts%2 == 0 {
					f.NextDay()
				}
			}
			return nil
		})
		cancel()
		if done = err == nil; err != nil && !errors.Is(err, context.Canceled) || time.Since(begun) > 4*time.Minute {
			t.Fatalf("%v after\n%s", err, got.String())
		}
	}
	want := ""
	for i := range lines {
		same := ""
		if i%7 == 0 {
			same = "same"
		}
		want += fmt.Sprintf("line %d %s %s\n", i, strings.Repeat("ä", i%5), same)
	}
	if got.String() != want {
		t.Errorf("%d bytes were read, and %d printed:\n%s", got.Len(), len(want), got.String())
	}
	if cuts != 10 || lost.Load() < 6 || refused.Load() < 6 {
		t.Errorf("%d watchers ended, %d replies were lost, %d calls refused", cuts, lost.Load(), refused.Load())
	}
	if all, err := p.Open(life, made.Ref)[0].HasAll(t.Context(), map[string]job.Cursor{"rank-0.log": at}); err != nil || !all {
		t.Errorf("has all: %v, %v", all, err)
	}
	if all, err := p.Open(life, made.Ref)[0].HasAll(t.Context(), map[string]job.Cursor{"rank-0.log": ""}); err != nil || all {
		t.Errorf("has all from the beginning: %v, %v", all, err)
	}
}

// The line by which a host tells of its ranks may be in the page that was read last:
// who goes on from there still knows that nothing more comes.
func TestTheEndOfALogIsKnownBehindIt(t *testing.T) {
	f, p, life := account(t)
	f.PageMost = 1000
	made, err := p.Submit(t.Context(), life, jobThat(t, "r-end", "print('one')\nprint('two')\n", options.Machines{}), noStep, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context(), life, made.Ref, noStep, quiet); err != nil {
		t.Fatal(err)
	}
	one := p.Open(life, made.Ref)[0]
	read := func(from job.Cursor) (text string, at job.Cursor) {
		at = from
		if err := one.FollowLog(t.Context(), "rank-0.log", from, func(c job.Chunk) error {
			text, at = text+string(c.Data), c.Next
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return text, at
	}
	read("")            // until the job is over
	all, at := read("") // now in one page
	if all != "one\ntwo\n" {
		t.Fatalf("%q", all)
	}
	if has, err := one.HasAll(t.Context(), map[string]job.Cursor{"rank-0.log": at}); err != nil || !has {
		t.Errorf("has all: %v, %v", has, err)
	}
	if more, _ := read(at); more != "" {
		t.Errorf("behind the end there is %q", more)
	}
}

// Twice with one run, there is one job; a job of that name that is another's is not
// taken; what is doubtful is asked for.
func TestARunHasOneJobWhateverIsLost(t *testing.T) {
	f, p, life := account(t)
	var lost atomic.Int32 // nothing but the cut orders it before what the test does then
	f.Cut(func(call string, _ int) bool { return call == "CreateTrainingJob" && lost.Add(1) <= 2 })
	j := jobThat(t, "r-1", "print('done')\n", options.Machines{})
	first, err := p.Submit(t.Context(), life, j, noStep, quiet)
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.Submit(t.Context(), life, j, noStep, quiet)
	if err != nil || second.Ref != first.Ref || len(f.Jobs()) != 1 || lost.Load() != 1 {
		t.Errorf("%q, %q, %v; %d replies were lost, and the jobs are %q", first.Ref, second.Ref, err, lost.Load(), f.Jobs())
	}
	other := cloud.Life{Name: "d", ID: "ba9876543210", Began: time.Now(), Ledger: &book{}}
	if _, err := p.Submit(t.Context(), other, j, noStep, quiet); err == nil || !strings.Contains(err.Error(), "not of this run") {
		t.Errorf("the job of another was taken: %v", err)
	}
	if found, err := p.Find(t.Context(), life, "r-1", cloud.Untold); err != nil || found.Ref != first.Ref {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := p.Find(t.Context(), life, "r-2", cloud.Untold); err != nil || found.Ref != "" {
		t.Errorf("%+v, %v", found, err)
	}
	if r, err := p.Down(t.Context(), life, quiet); err != nil || !r.Proven() || len(f.Running()) > 0 || len(r.Resources) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What would keep a job from running is said before anything is made.
func TestThePreflightSaysWhatStandsInTheWay(t *testing.T) {
	f, p, _ := account(t)
	f.AddBucket("far", "eu-west-1")
	f.Role("Other", `{"Statement":[{"Principal":{"Service":"ec2.amazonaws.com"}}]}`)
	for name, c := range map[string]struct {
		change func(*cloud.Spec, *options.Machines)
		want   string
	}{
		"role":      {func(_ *cloud.Spec, m *options.Machines) { m.Role = "Nobody" }, "there is no IAM role Nobody"},
		"trust":     {func(_ *cloud.Spec, m *options.Machines) { m.Role = "Other" }, "does not trust SageMaker"},
		"bucket":    {func(_ *cloud.Spec, m *options.Machines) { m.Bucket = "nowhere" }, "there is no bucket nowhere"},
		"region":    {func(_ *cloud.Spec, m *options.Machines) { m.Checkpoints = "s3://far/x" }, "the bucket far is in eu-west-1, and the job is in us-west-2"},
		"image":     {func(s *cloud.Spec, _ *options.Machines) { s.Image = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/a:1" }, "the image is in eu-west-1"},
		"no image":  {func(s *cloud.Spec, _ *options.Machines) { s.Image = "pytorhc" }, `there is no image "pytorhc"`},
		"quota":     {func(s *cloud.Spec, _ *options.Machines) { s.Count = 9 }, `"ml.m5.large for training job usage" is 8, and the job needs 9`},
		"type":      {func(s *cloud.Spec, _ *options.Machines) { s.Instance = "g5.xlarge" }, "that of SageMaker has ml. in front"},
		"wait":      {func(s *cloud.Spec, m *options.Machines) { s.Spot, m.MaxWait = true, "30m" }, "machines.max_wait is 30m and the job may run for 1h"},
		"warm spot": {func(s *cloud.Spec, m *options.Machines) { s.Spot, m.KeepAlive = true, "30m" }, "spot machines are not kept"},
		"long":      {func(s *cloud.Spec, _ *options.Machines) { s.Lifetime = 30 * 24 * time.Hour }, "this provider gives 28d at most"},
		"budget":    {func(s *cloud.Spec, _ *options.Machines) { s.Budget, s.Instance = 5, "ml.p4d.24xlarge" }, "limits.budget can't be held"},
	} {
		t.Run(name, func(t *testing.T) {
			m := options.Machines{Role: "Training"}
			spec := cloud.Spec{Name: "c", Count: 1, Instance: "ml.m5.large", Lifetime: time.Hour, Own: &m}
			c.change(&spec, &m)
			began, problems := time.Now(), ""
			for _, f := range p.Check(t.Context(), spec).Findings {
				if !f.OK {
					problems += f.Text + "\n"
				}
			}
			if !strings.Contains(problems, c.want) || time.Since(began) > time.Minute {
				t.Errorf("after %v:\n%s", time.Since(began), problems)
			}
		})
	}
	m := options.Machines{Role: "Training"}
	out := p.Check(t.Context(), cloud.Spec{Name: "c", Count: 2, Instance: "ml.m5.large", Lifetime: time.Hour, Own: &m})
	for _, f := range out.Findings {
		if f.Result() != cloud.Fine {
			t.Errorf("%+v", f)
		}
	}
	if out.PricePerHour != 0.23 || !strings.Contains(out.Script, `"s3:PutObject"`) || !strings.Contains(out.Script, `"MaxRuntimeInSeconds": 3600`) {
		t.Errorf("%v\n%s", out.PricePerHour, out.Script)
	}
	if strings.Contains(out.Script, "ssmmessages") {
		t.Errorf("without remote debugging the policy is\n%s", out.Script)
	}
	t.Setenv("PATH", t.TempDir()) // no plugin is there
	debug := options.Machines{Role: "Training", RemoteDebug: true}
	out = p.Check(t.Context(), cloud.Spec{Name: "c", Count: 1, Instance: "ml.m5.large", Lifetime: time.Hour, Own: &debug})
	if said := fmt.Sprint(out.Findings); !strings.Contains(out.Script, `"ssmmessages:OpenDataChannel"`) || !strings.Contains(said, "session-manager-plugin is not installed here") {
		t.Errorf("%s\n%s", said, out.Script)
	}
	f.Refuse("ssmmessages:OpenDataChannel")
	if text := fmt.Sprint(p.Check(t.Context(), cloud.Spec{Name: "c", Count: 1, Instance: "ml.m5.large", Lifetime: time.Hour, Own: &debug}).Findings); !strings.Contains(text, "may not ssmmessages:OpenDataChannel") {
		t.Error(text)
	}
	f.Refuse("s3:PutObject")
	if text := fmt.Sprint(p.Check(t.Context(), cloud.Spec{Name: "c", Count: 2, Instance: "ml.m5.large", Lifetime: time.Hour, Own: &m}).Findings); !strings.Contains(text, "may not s3:PutObject") {
		t.Error(text)
	}
	if len(f.Jobs()) > 0 {
		t.Errorf("a check has made %q", f.Jobs())
	}
}
