package ec2story

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

// moment is where in the life of a call dlwb is killed.
type moment string

const (
	beforeApplied moment = "before it is applied"     // and then it never is
	appliedLate   moment = "and it is applied later"  // the request was on its way
	replyLost     moment = "applied, reply lost"      //
	afterReply    moment = "after the reply"          //
	atWrite       moment = "at the next ledger write" // which waits for a lock
)

// call is one API call of a story, by its name and how many of that name came
// before it: polls make their absolute number a matter of luck.
type call struct {
	action  string
	nth     int
	changes bool // something, when it is applied
}

func (c call) String() string { return fmt.Sprintf("%s #%d", c.action, c.nth) }

// mostPolls is how often the same call is killed at: the hundredth look at
// instances is no other than the third.
const mostPolls = 2

// cell is one crash and what is done about it.
type cell struct {
	story      []string // the command that is killed
	begin      []string // what was done before, if anything
	at         call
	moment     moment
	signal     syscall.Signal
	afterwards string
	led        bool // the cluster has a head: one machine more, by a call of its own
}

func (c cell) String() string {
	with := ""
	if c.led {
		with = " with a head"
	}
	return fmt.Sprintf("dlwb %s%s, signal %d at %s %s, then %s", c.story[0], with, c.signal, c.at, c.moment, c.afterwards)
}

// story is a command that is killed, and what was done before.
type story struct {
	begin, story []string
	whole        bool // every moment meets every follow-up
	led          bool // with a head; only the calls that begin and end machines are killed at
}

const crashProfile = `environment: system
run: {engine: plain, command: "sh train.sh"}
results: {paths: [out/]}
`

const crashScript = "mkdir -p out; for i in 1 2 3; do echo step: $i loss: 0.$i; done; echo done >out/done\n"

func crashBench(t testing.TB, r *rand.Rand, led bool) *bench {
	// A group that its machines still hold when it is to be removed takes the
	// longest way out.
	o := fakeaws.Options{Release: 500 * time.Millisecond}
	if r != nil {
		var mu sync.Mutex
		o.Lag = func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(r.Int64N(int64(lagged)))
		}
	}
	b := newBench(t, o)
	if b.profile(2, crashProfile); led {
		b.ledProfile(2, "tensorflow, parameter_servers: 1")
	}
	b.write("train.sh", crashScript)
	return b
}

// callsOf runs a story undisturbed and lists its calls.
func callsOf(t *testing.T, s story) []call {
	t.Helper()
	begin, story := s.begin, s.story
	b := crashBench(t, nil, s.led)
	if begin != nil {
		if r := b.run(begin...); r.code != 0 {
			t.Fatalf("dlwb %v: %s", begin, r)
		}
	}
	b.aws.Forget()
	if r := b.run(story...); r.code != 0 {
		t.Fatalf("dlwb %v: %s", story, r)
	}
	seen := map[string]int{}
	var calls []call
	for _, c := range b.aws.Calls() {
		if seen[c.Action] < mostPolls {
			calls = append(calls, call{c.Action, seen[c.Action], !c.Reads()})
		}
		seen[c.Action]++
	}
	b.run("down", "story", "--plain")
	b.nothingLeft("the undisturbed " + story[0])
	return calls
}

// Whatever moment dlwb is killed at, nothing that costs money is left once
// somebody has taken the cluster down, gone on with it, or collected what a
// lost state directory knew of.
func TestCrashMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("starts machines; run without -short")
	}
	if len(raced) > 0 {
		t.Skip("what is killed is dlwb as people have it: make test plays the matrix by itself, without -race")
	}
	// Every Python on the PATH is looked at on every node.
	t.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
	var cells []cell
	each := sample.Of(t, 1, len(follows), "follow-ups for each moment of a call that begins or ends what costs money, and one moment of each call of a story that is made of others")
	for _, s := range []story{
		{nil, []string{"up", "--plain"}, true, false},
		{nil, []string{"run", "--down", "--plain"}, false, false}, // its parts are the other two
		{[]string{"up", "--plain"}, []string{"down", "story", "--plain"}, true, false},
		{nil, []string{"up", "--plain"}, true, true},
	} {
		for n, at := range callsOf(t, s) {
			if s.led && at.action != "RunInstances" {
				continue
			}
			cells = append(cells, cellsAt(s, n, at, each)...)
		}
	}
	if n := sample.Part(t, len(cells)/4, len(cells), "crashes"); n < len(cells) {
		cells = spread(cells, n)
	}
	var leaked, hit atomic.Int64
	few := semaphore.NewWeighted(8)
	var all sync.WaitGroup
	counts := map[moment]int{}
	for i, c := range cells {
		counts[c.moment]++
		if err := few.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer few.Release(1)
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				killed, clean := c.play(t, uint64(i))
				if killed {
					hit.Add(1)
				} else {
					t.Logf("not killed: %s", c)
				}
				if !clean {
					leaked.Add(1)
					t.Errorf("LEAK: %s", c)
				}
			})
		})
	}
	all.Wait()
	for _, m := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d cells: killed %s", counts[m], m)
	}
	t.Logf("crash matrix: %d cells, dlwb was killed in %d of them, %d leaks", len(cells), hit.Load(), leaked.Load())
	if int(hit.Load())*10 < len(cells)*9 {
		t.Errorf("dlwb was killed in %d of %d cells only: the matrix is not what it says", hit.Load(), len(cells))
	}
}

// spread gives n cells, as far from each other as they can be.
func spread(cells []cell, n int) []cell {
	some := make([]cell, n)
	for i := range some {
		some[i] = cells[i*len(cells)/n]
	}
	return some
}

// follows are what somebody does who finds that dlwb was killed.
var follows = []string{"down", "up again", "gc"}

// vital reports whether a call begins or ends what costs money, or makes what
// has a name of its own.
func (c call) vital() bool {
	return slices.Contains([]string{"RunInstances", "TerminateInstances", "CreateSecurityGroup", "CreatePlacementGroup", "ImportKeyPair"}, c.action)
}

// cellsAt are the crashes at the nth call of a story. In a whole story each
// moment of each vital call meets as many follow-ups as are asked for; otherwise one,
// and they go round. Looks are the same in a story that is made of others. In a sample of
// the matrix the moments go round, too, but for those of the vital calls of a whole story.
func cellsAt(s story, n int, at call, each int) []cell {
	moments := []moment{beforeApplied}
	if !at.changes && (!s.whole || at.nth > 0) {
		return nil
	}
	if at.changes {
		moments = []moment{beforeApplied, appliedLate, replyLost, afterReply, atWrite}
	}
	var cells []cell
	for i, m := range moments {
		if !(s.whole && at.vital()) && at.changes && each < len(follows) && (n+i)%len(moments) != 0 {
			continue
		}
		for j, f := range follows {
			some := 1
			if s.whole && at.changes && at.vital() {
				some = each
			}
			if (n+i+j)%len(follows) >= some {
				continue
			}
			cells = append(cells, cell{s.story, s.begin, at, m, syscall.SIGKILL, f, s.led})
		}
	}
	if s.whole && at.changes && at.nth == 0 {
		cells = append(cells, cell{s.story, s.begin, at, beforeApplied, syscall.SIGINT, "down", s.led},
			cell{s.story, s.begin, at, replyLost, syscall.SIGTERM, "gc", s.led})
	}
	return cells
}

// play plays a cell. It reports whether dlwb was killed where it should be,
// and whether the account was clean in the end.
func (c cell) play(t *testing.T, seed uint64) (killed, clean bool) {
	b := crashBench(t, rand.New(rand.NewPCG(seed, 1)), c.led)
	if c.begin != nil {
		if r := b.run(c.begin...); r.code != 0 {
			t.Errorf("dlwb %v: %s", c.begin, r)
			return false, false
		}
	}
	cmd := b.command(c.story...)
	var end sync.Once
	var was atomic.Bool
	kill := func() {
		end.Do(func() {
			was.Store(true)
			_ = cmd.Process.Signal(c.signal)
		})
	}
	started := make(chan struct{}) // the process is known to whoever kills it
	var hook sync.Mutex            // held while the fault is at work
	f := c.fault(b, started, kill)
	work := f.Hook
	f.Hook = func(at fakeaws.Stage, call fakeaws.Call) {
		hook.Lock()
		defer hook.Unlock()
		work(at, call)
	}
	b.aws.Fault(f)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	wait(t, cmd)
	b.aws.Heal()
	hook.Lock() // a lock that is held on the store is given back
	defer hook.Unlock()
	return was.Load(), c.follow(b)
}

func wait(t *testing.T, cmd *exec.Cmd) {
	stuck := time.AfterFunc(storyLimit, func() { _ = cmd.Process.Kill() })
	defer func() {
		if !stuck.Stop() {
			t.Errorf("%v did not end", cmd.Args[1:])
		}
	}()
	_ = cmd.Wait()
}

// fault is the fault at whose call dlwb is killed.
func (c cell) fault(b *bench, started chan struct{}, kill func()) fakeaws.Fault {
	f := fakeaws.Fault{Action: c.at.action, Skip: c.at.nth, Times: 1}
	stage := fakeaws.Before
	switch c.moment {
	case beforeApplied:
		f.Do = fakeaws.FailBefore
	case appliedLate:
		f.Do, f.Delay = fakeaws.DelayApply, lagged
	case replyLost:
		f.Do, stage = fakeaws.LoseReply, fakeaws.Applied
	case afterReply, atWrite:
		stage = fakeaws.Replied
	}
	var unlock func()
	f.Hook = func(at fakeaws.Stage, _ fakeaws.Call) {
		<-started
		if c.moment == atWrite && at == fakeaws.Applied {
			unlock = jobstory.LockStore(b.t, filepath.Join(b.state(), "dlwb.sqlite"))
		}
		if at != stage {
			return
		}
		if c.moment == atWrite {
			time.Sleep(30 * time.Millisecond) // dlwb waits for the lock by now
			defer unlock()
		}
		kill()
		if c.signal == syscall.SIGKILL {
			time.Sleep(5 * time.Millisecond) // it is dead before it is answered
		}
	}
	return f
}

// follow does what somebody does who finds that dlwb was killed, and reports
// whether nothing is left.
func (c cell) follow(b *bench) bool {
	b.t.Helper()
	switch c.afterwards {
	case "down":
		return b.clean(c, b.run("down", "story", "--plain"))
	case "up again":
		if r := b.run("up", "--plain"); r.code != 0 {
			b.t.Errorf("%s: %s", c, r)
		}
		asked := 2
		if c.led {
			asked++
		}
		if n := b.running(); n > asked {
			b.t.Errorf("%s: %d instances run, and %d were asked for", c, n, asked)
		}
		return b.clean(c, b.run("down", "story", "--plain"))
	default:
		if err := os.RemoveAll(b.state()); err != nil {
			b.t.Error(err)
		}
		return b.clean(c, b.run("gc", "--yes", "--plain"))
	}
}

func (b *bench) running() (n int) {
	for _, i := range b.aws.Instances() {
		if strings.HasSuffix(i, " running") || strings.HasSuffix(i, " pending") {
			n++
		}
	}
	return n
}

// clean reports whether the last command succeeded, or had nothing to do, and
// the account is empty.
func (b *bench) clean(c cell, r result) bool {
	b.t.Helper()
	nothing := strings.Contains(r.stderr, "there is none of that name") // killed before it was begun, or gone already
	if r.code != 0 && !nothing {
		b.t.Errorf("%s: dlwb says %s", c, r)
	}
	return b.nothingLeft(c.String()) && (r.code == 0 || nothing)
}
