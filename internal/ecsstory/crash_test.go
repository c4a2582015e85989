//go:build linux

package ecsstory

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/dlwb/dlwb/internal/fakeecs"
	"github.com/dlwb/dlwb/internal/jobstory"
)

// reads reports whether a call changes nothing.
func reads(call string) bool {
	return slices.ContainsFunc([]string{"Describe", "Get", "List", "Simulate"}, func(verb string) bool { return strings.HasPrefix(call, verb) })
}

// moment is where in the life of a call dlwb is killed.
type moment string

const (
	before  moment = "before it is carried out" // and then it never is
	lost    moment = "done, reply lost"
	atWrite moment = "at the next ledger write" // which waits for a lock
)

// follows are what somebody does who finds that dlwb was killed; down is the end of each.
var follows = []string{"down", "attach", "run again"}

// cell is one crash and what is done about it.
type cell struct {
	call       string
	nth        int
	moment     moment
	afterwards string
}

func (c cell) String() string {
	return fmt.Sprintf("%s #%d, %s, then %s", c.call, c.nth, c.moment, c.afterwards)
}

// ending reports whether the cluster was being taken down: a run is refused then.
func (c cell) ending() bool {
	return strings.HasPrefix(c.call, "De") || strings.HasPrefix(c.call, "Stop") || strings.HasPrefix(c.call, "Terminate") || c.call == "PutClusterCapacityProviders"
}

// sampled are the crashes of make test: at what costs money, at the job, and at the end.
var sampled = []cell{
	{"CreateAutoScalingGroup", 1, lost, "run again"},
	{"UpdateAutoScalingGroup", 2, lost, "attach"},
	{"PutParameter", 1, lost, "run again"},
	{"RegisterTaskDefinition", 1, lost, "run again"},
	{"SubmitJob", 1, lost, "attach"},
	{"SubmitJob", 1, atWrite, "attach"},
	{"DeleteAutoScalingGroup", 1, atWrite, "down"},
	{"StopTask", 2, lost, "run again"},
}

// cells are all crashes of a run with --down: at each call that changes something, by
// its name and how many of that name came before. The third of the same call is no
// other than the second.
func cells(t *testing.T) (all []cell) {
	t.Helper()
	p := newProject(t)
	p.profile("ecs", "{engine: plain, command: train.py 0.01}", executing)
	p.Must("run", "--plain", "--down")
	p.clean()
	counts := p.fake.Counts()
	for n, call := range slices.Sorted(maps.Keys(counts)) {
		for nth := 1; nth <= min(counts[call], 2) && !reads(call); nth++ {
			for i, m := range []moment{before, lost, atWrite} {
				all = append(all, cell{call, nth, m, follows[(n+nth+i)%len(follows)]})
			}
		}
	}
	return all
}

// dlwb is ended by SIGKILL at each call that changes something, in AWS and in Ray, and
// at the write to the ledger that follows it; then somebody takes everything down, goes
// on with the run, or runs again. There is no second job of one run and there are no
// more machines than were asked for; in the end nothing is left.
func TestADlwbThatIsKilledAtAnyCallLeavesNothing(t *testing.T) {
	jobstory.Program(t)
	all := sampled
	if os.Getenv("DLWB_ECS_MATRIX") != "" {
		all = cells(t)
	} else { // the whole takes minutes of waiting, more than make test-long has for one
		t.Logf("a sample: %d crashes; make test-ecs plays all", len(all))
	}
	var killed atomic.Int64
	few := semaphore.NewWeighted(6) // each mostly waits
	var every sync.WaitGroup
	for _, c := range all {
		if err := few.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		every.Go(func() {
			defer few.Release(1)
			t.Run(c.String(), func(t *testing.T) {
				if c.play(t) {
					killed.Add(1)
				} else {
					t.Log("it was not killed")
				}
			})
		})
	}
	every.Wait()
	t.Logf("dlwb was killed in %d of %d crashes", killed.Load(), len(all))
	if len(all)-int(killed.Load()) > max(1, len(all)/10) {
		t.Errorf("dlwb was killed in %d of %d crashes only: the matrix is not what it says", killed.Load(), len(all))
	}
}

// play plays a crash and reports whether dlwb was killed.
func (c cell) play(t *testing.T) bool {
	p := newProject(t)
	p.profile("ecs", "{engine: plain, command: train.py 0.01}", executing)
	hit := c.kill(p, "run", "--plain", "--down")
	c.follow(p)
	return hit
}

// killIn plays a crash in a cluster that is there, of the run or, with stopping, of the
// down that ends a run. It gives how many runs there are.
func (c cell) killIn(p *project, stopping bool) (hit bool, runs int) {
	p.T.Helper()
	if !stopping {
		return c.kill(p, "run", "--plain", "--down"), 1
	}
	p.Must("run", "--plain", "--detach")
	p.Await("the job", func() bool { return p.fake.Unended() == 1 })
	return c.kill(p, "down", "jobs", "--plain"), 1
}

// kill runs dlwb until the moment of the crash.
func (c cell) kill(p *project, words ...string) bool {
	p.T.Helper()
	k := &killer{c: c, p: p, started: make(chan struct{}), over: make(chan struct{})}
	p.fake.Answer(k.answer)
	p.fake.Cut(k.cut)
	cmd := p.Command(words...)
	out, err := os.Create(filepath.Join(p.T.TempDir(), "out"))
	if err != nil {
		p.T.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.T.Fatal(err)
	}
	k.dlwb = cmd.Process
	close(k.started)
	_ = cmd.Wait()
	k.end()
	return k.hit.Load()
}

// follow does what somebody does who finds that dlwb was killed.
func (c cell) follow(p *project) {
	p.T.Helper()
	runs := 1
	if c.afterwards != "down" {
		_, _ = p.Try("attach", "jobs", "--plain") // a run that never began is told as that
	}
	if c.afterwards == "run again" {
		runs = 2
		if out, err := p.Try("run", "--plain"); err != nil && !(c.ending() && strings.Contains(out, "the removal of cluster jobs has begun")) {
			p.T.Errorf("run again: %v\n%s", err, out)
		}
		if n := len(p.fake.AWS.Running()); n > 3 {
			p.T.Errorf("%d machines run, and 3 were asked for", n)
		}
	}
	if text, err := p.Try("down", "jobs", "--plain"); err != nil && !strings.Contains(text, "no cluster") {
		p.T.Errorf("down: %v\n%s", err, text)
	}
	if n := p.fake.Posts(); n > runs {
		p.T.Errorf("%d jobs were asked for by %d runs", n, runs)
	}
	p.clean()
}

// killer ends a dlwb at a call of it.
type killer struct {
	c       cell
	p       *project
	dlwb    *os.Process
	started chan struct{} // dlwb is known
	over    chan struct{} // it has ended
	hit     atomic.Bool
	mu      sync.Mutex // no write is begun when it is waited for
	writes  sync.WaitGroup
}

// here reports whether it is the call, once.
func (k *killer) here(call string, nth int) bool {
	<-k.started
	select {
	case <-k.over:
		return false
	default:
		return call == k.c.call && nth == k.c.nth && k.hit.CompareAndSwap(false, true)
	}
}

func (k *killer) kill() { _ = k.dlwb.Kill() }

func (k *killer) answer(call string, nth int) *fakeecs.Error {
	if k.c.moment != before || !k.here(call, nth) {
		return nil
	}
	k.kill()
	return &fakeecs.Error{Status: 500, Code: "InternalFailure", Says: "nobody hears this"}
}

func (k *killer) cut(call string, nth int) bool {
	<-k.started
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.c.moment == before || !k.here(call, nth) {
		return false
	}
	if k.c.moment == lost {
		k.kill()
		return true
	}
	unlock := jobstory.LockStore(k.p.T, filepath.Join(k.p.Dir, "../state/dlwb.sqlite"))
	k.writes.Go(func() {
		defer unlock()
		time.Sleep(700 * time.Millisecond) // dlwb has the reply and waits for the lock by now
		k.kill()
	})
	return false
}

// end waits until nothing is disturbed any more.
func (k *killer) end() {
	k.mu.Lock()
	close(k.over)
	k.mu.Unlock()
	k.writes.Wait()
}
