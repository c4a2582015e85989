//go:build linux

package sagemakerstory

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakesagemaker"
	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/workbench/event"
)

// searching has a sweep over so many rates. more is the rest of the sweep in a first line,
// and of the profile in others.
func (p *project) searching(steps int, rates, more string) {
	p.T.Helper()
	sweep, rest, _ := strings.Cut(more, "\n")
	if !strings.Contains(rest, "machines:") {
		rest += "machines: {instance: ml.m5.large, execution_role: Training}\n"
	}
	p.Search("provider: sagemaker\nrun: {engine: plain, command: train.py}\n"+rest, "parameters: {lr: ["+rates+"]}, "+sweep, steps, "0.05")
}

var trialOf = regexp.MustCompile(`-t(\d\d)`)

// once looks whether each trial was a training job, and none was one twice.
func (p *project) once(trials int) {
	p.T.Helper()
	jobs := p.fake.Jobs()
	of := map[string]int{}
	for _, name := range jobs {
		if m := trialOf.FindStringSubmatch(name); m != nil {
			of[m[1]]++
		}
	}
	if len(of) != trials || len(jobs) != trials {
		p.T.Errorf("%d trials were handed in as %q", trials, jobs)
	}
}

// billed is what all jobs have cost, as the service bills it.
func (p *project) billed() (sum float64) {
	for _, name := range p.fake.Jobs() {
		sum += p.fake.Billed(name) / 3600 * 0.115
	}
	return sum
}

// Each trial of a sweep is a training job of its own, so many at once as the profile
// says. A dlwb that is killed leaves them; the next one goes on with them, and hands none
// in twice. What it has cost is the sum of all, as SageMaker bills it.
func TestTheTrialsOfASweepAreTrainingJobs(t *testing.T) {
	p := newProject(t)
	p.searching(10, "0.6, 0.5, 0.4, 0.3, 0.2, 0.1", "parallel: 2\n")
	first := p.Command("sweep", "--json")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	p.Await("two trials are through", func() bool { return p.Board().Done >= 2 })
	_ = first.Process.Kill()
	_ = first.Wait()
	p.Must("sweep", "--json")
	if b := p.Board(); b.Trials != 6 || b.Done != 6 || b.Best != 6 {
		t.Fatalf("%+v", b)
	}
	p.once(6)
	if most := p.fake.Most(); most != 2 {
		t.Errorf("%d jobs went on at once, not 2", most)
	}
	var list struct{ Clusters []event.ClusterInfo }
	if err := json.Unmarshal([]byte(p.Must("ls", "--json")), &list); err != nil || len(list.Clusters) != 1 {
		t.Fatalf("%v, %+v", err, list)
	}
	if c := list.Clusters[0]; c.PricePerHour != 0 || math.Abs(c.Spent-p.billed()) > 1e-9 || c.Spent == 0 {
		t.Errorf("%+v, and billed are %v", c, p.billed())
	}
	events := jobstory.Said(t, p.Must("down", "jobs", "--json"))
	receipt := jobstory.EventOf(t, events, "receipt")
	if cost, _ := receipt["cost"].(float64); receipt["proven"] != true || math.Abs(cost-p.billed()) > 1e-9 {
		t.Errorf("the receipt says %v, and billed are %v", receipt, p.billed())
	}
	p.clean()
}

// down ends all jobs of a sweep that goes on. While they do, they cost what they cost
// together.
func TestDownEndsAllTrials(t *testing.T) {
	sample.Leave(t)
	p := newProject(t)
	p.searching(3000, "0.6, 0.5, 0.4, 0.3", "parallel: 3\n")
	sweep := p.Command("sweep", "--json")
	if err := sweep.Start(); err != nil {
		t.Fatal(err)
	}
	p.Await("three trials run", func() bool { return p.Board().Running == 3 && len(p.fake.Jobs()) == 3 })
	var list struct{ Clusters []event.ClusterInfo }
	if err := json.Unmarshal([]byte(p.Must("ls", "--json")), &list); err != nil || len(list.Clusters) != 1 || math.Abs(list.Clusters[0].PricePerHour-3*0.115) > 1e-9 {
		t.Errorf("%v, %+v", err, list)
	}
	_ = sweep.Process.Kill()
	_ = sweep.Wait()
	if out := p.Must("down", "jobs", "--plain"); !strings.Contains(out, "nothing is left") {
		t.Errorf("down says\n%s", out)
	}
	if out := p.Must("runs", "--json"); strings.Count(out, `"verdict":"stopped"`) != 3 {
		t.Errorf("the ends of the trials:\n%s", out)
	}
	p.once(3)
	p.clean()
}

// A quota that has no room for all trials at once fails none of them: those without room
// wait until another has ended. The plan says so before.
func TestTrialsWaitForRoomInTheQuota(t *testing.T) {
	sample.Leave(t)
	for name, machines := range map[string]string{
		"jobs":       "machines: {instance: ml.m5.large, execution_role: Training}\n",
		"warm pools": "machines: {instance: ml.m5.large, execution_role: Training, keep_alive: 30m}\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.fake.Quota = 2
			p.searching(20, "0.5, 0.4, 0.3, 0.2, 0.1", "parallel: 4\n"+machines)
			if out := p.Must("plan"); !strings.Contains(out, "4 trials of the sweep at once need 4: 2 have room, and the others wait until one ends") {
				t.Errorf("the plan says\n%s", out)
			}
			p.untilRefused("ResourceLimitExceeded")
			out := p.Must("sweep", "--json")
			if b := p.Board(); b.Done != 5 || b.Failed != 0 || b.Best != 5 {
				t.Errorf("%+v", b)
			}
			if n := strings.Count(out, "there is no room for another trial now"); n != 1 {
				t.Errorf("that trials wait is told %d times:\n%s", n, out)
			}
			p.once(5)
			if most := p.fake.Most(); most != 2 {
				t.Errorf("%d machines were there at once, not 2", most)
			}
			p.Must("down", "jobs", "--plain")
			p.clean()
		})
	}
}

// untilRefused lets no trial end before the service has refused a request: on a busy
// machine the first are over when the next are handed in.
func (p *project) untilRefused(code string) {
	p.T.Helper()
	script := filepath.Join(p.Dir, "train.py")
	text, err := os.ReadFile(script)
	if err != nil {
		p.T.Fatal(err)
	}
	refused := filepath.Join(p.T.TempDir(), "refused")
	p.Write("train.py", fmt.Sprintf("import os, time\nwhile not os.path.exists(%q): time.sleep(0.05)\n%s", refused, text))
	ctx := p.T.Context()
	go func() {
		for p.fake.Refused(code) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		_ = os.WriteFile(refused, nil, 0o600)
	}()
}

// The budget is that of all trials: what their own limits let them cost is never more,
// and what a trial leaves is for those behind it.
func TestTheTrialsOfASweepShareItsBudget(t *testing.T) {
	sample.Leave(t)
	const budget, price = 0.02, 0.115
	p := newProject(t)
	p.searching(5, "0.4, 0.3, 0.2, 0.1", "parallel: 1\nlimits: {budget: 0.02 usd, lifetime: 2h}\n")
	if out := p.Must("plan"); !strings.Contains(out, "of limits.budget each has $0.005, which ends it after 2m36s") {
		t.Errorf("the plan says\n%s", out)
	}
	p.Must("sweep", "--json", "--down")
	p.once(4)
	var limits []int
	for _, c := range p.fake.Calls("CreateTrainingJob") {
		var in fakesagemaker.Request
		if err := json.Unmarshal(c.Body, &in); err != nil {
			t.Fatal(err)
		}
		limits = append(limits, in.StoppingCondition.MaxRuntimeInSeconds)
	}
	spent := 0.0
	for i, name := range p.fake.Jobs() {
		if most := spent + float64(limits[i])/3600*price; most > budget {
			t.Errorf("with trial %d all may cost %v, and the budget is %v", i+1, most, budget)
		}
		spent += p.fake.Billed(name) / 3600 * price
		if i > 0 && limits[i] <= limits[i-1] {
			t.Errorf("what a trial left is not the next one's: %v", limits)
		}
	}
	p.clean()

	t.Run("too small", func(t *testing.T) {
		p := newProject(t)
		p.searching(5, "0.4, 0.3, 0.2, 0.1", "parallel: 1\nlimits: {budget: 0.004 usd, lifetime: 2h}\n")
		out, err := p.Try("sweep", "--plain")
		if err == nil || !strings.Contains(out, "pays for less than a minute at") || strings.Contains(out, "in a row") {
			t.Errorf("%v:\n%s", err, out)
		}
		if b := p.Board(); b.Failed != 0 || len(p.fake.Jobs()) != 0 {
			t.Errorf("%+v, %q", b, p.fake.Jobs())
		}
		p.clean()
	})
}

// dlwb is ended by SIGKILL at each call of a sweep that changes something: before it is
// carried out, when it was and before the reply, or at the write to the ledger behind it.
// Another dlwb goes on, and a third takes all down. No trial was handed in twice, and
// nothing is left.
func TestASweepThatIsKilledAtAnyCallHandsNoTrialInTwice(t *testing.T) {
	sample.Leave(t)
	const most = 20
	moments := []string{"before it", "reply lost", "at the write behind it"}
	points := sample.Of(t, 6, len(moments)*most, "moments")
	for i := range points {
		point := i
		if points < len(moments)*most {
			point = []int{3, 4, 5, 9, 11, 16}[i] // around what hands the trials in
		}
		nth, moment := point/len(moments)+1, point%len(moments)
		t.Run(fmt.Sprintf("call %d, %s", nth, moments[moment]), func(t *testing.T) { sweepKilledAt(t, nth, moment) })
	}
}

func sweepKilledAt(t *testing.T, nth, moment int) {
	p := newProject(t)
	p.searching(3, "0.3, 0.2, 0.1", "parallel: 2\n")
	var dlwb atomic.Pointer[os.Process]
	var seen atomic.Int64
	here := func(call string) bool { // what is only looked at is no moment: there are hundreds of these
		if !changing[call] || call == "DescribeTrainingJob" || dlwb.Load() == nil || seen.Add(1) != int64(nth) {
			return false
		}
		t.Logf("it is killed at %s", call)
		return true
	}
	kill := func() { _ = dlwb.Load().Kill() }
	var writes sync.WaitGroup
	switch moment {
	case 0:
		p.fake.Answer(func(call string, _ int) *fakesagemaker.Error {
			if !here(call) {
				return nil
			}
			kill()
			return &fakesagemaker.Error{Status: 500, Code: "InternalFailure", Says: "nobody hears this"}
		})
	case 1:
		p.fake.Cut(func(call string, _ int) bool {
			hit := here(call)
			if hit {
				kill()
			}
			return hit
		})
	default:
		p.fake.Cut(func(call string, _ int) bool {
			if here(call) {
				unlock := jobstory.LockStore(t, filepath.Join(p.Dir, "../state/dlwb.sqlite"))
				writes.Go(func() {
					defer unlock()
					time.Sleep(700 * time.Millisecond) // dlwb has the reply and waits for the lock by now
					kill()
				})
			}
			return false
		})
	}
	cmd := p.Command("sweep", "--plain", "--down")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dlwb.Store(cmd.Process)
	if err := cmd.Wait(); err == nil {
		t.Logf("it was through before call %d", nth)
	}
	writes.Wait()
	dlwb.Store(nil)
	if text, err := p.Try("sweep", "--plain"); err != nil {
		t.Errorf("sweep: %v\n%s", err, text)
	}
	if b := p.Board(); b.Done != 3 {
		t.Errorf("%+v", b)
	}
	if text, err := p.Try("down", "jobs", "--plain"); err != nil && !strings.Contains(text, "no cluster") {
		t.Errorf("down: %v\n%s", err, text)
	}
	p.once(3)
	p.clean()
}
