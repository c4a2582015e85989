package sweep

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/event"
)

// nodes is an owner that keeps its trials going until the test ends them, and sees
// which of them have a GPU at the same time.
type nodes struct {
	mu      sync.Mutex
	past    map[string]Past
	ends    map[string]chan struct{}
	started []string
	has     map[string]Slot
	shared  []string
	most    int
	stopped bool                   // all are
	launch  func(run string) error // why a launch fails; nil: none does
}

func newNodes() *nodes {
	return &nodes{past: map[string]Past{}, ends: map[string]chan struct{}{}, has: map[string]Slot{}}
}

// leave has a trial go on that an earlier process began.
func (n *nodes) leave(run string, trial int, slot Slot) chan struct{} {
	n.past[run] = Past{Label: Label{Trial: trial, Slot: slot}, Started: true}
	n.ends[run], n.has[run] = make(chan struct{}), slot
	return n.ends[run]
}

func (n *nodes) owner() Owner {
	return Owner{
		Past: func(run string) (Past, bool, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			past, is := n.past[run]
			return past, is, nil
		},
		Launch: func(_ context.Context, run string, label Label, _ *profiles.Profile) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.started = append(n.started, run)
			if n.launch != nil {
				if err := n.launch(run); err != nil {
					return err
				}
			}
			for other, slot := range n.has {
				for _, g := range label.Slot.GPUs {
					if slices.Contains(slot.Nodes, label.Slot.Nodes[0]) && (slot.GPUs == nil || slices.Contains(slot.GPUs, g)) {
						n.shared = append(n.shared, run+" has GPU "+strconv.Itoa(g)+" of "+other)
					}
				}
			}
			n.has[run] = label.Slot
			n.most = max(n.most, len(n.has))
			return nil
		},
		Watch: func(_ context.Context, run string) (event.RunEnded, error) {
			n.mu.Lock()
			end := n.ends[run]
			n.mu.Unlock()
			if end != nil {
				<-end
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.has, run)
			if n.stopped {
				return event.RunEnded{Verdict: event.Stopped, ExitCode: 130}, nil
			}
			return event.RunEnded{Verdict: event.Succeeded}, nil
		},
		Stop:    func(context.Context, string, string) error { return nil },
		Values:  func(string, string) []float64 { return nil },
		Publish: func(event.Body) error { return nil },
	}
}

func searched(trials, parallel int) *profiles.Profile {
	p := &profiles.Profile{Name: "x", Run: profiles.Run{Command: "train.py"}}
	p.Sweep = profiles.Sweep{Method: "grid", Parallel: parallel, Parameters: []profiles.Parameter{{Name: "a", Kind: "values"}}}
	for n := range trials {
		p.Sweep.Parameters[0].Values = append(p.Sweep.Parameters[0].Values, strconv.Itoa(n))
	}
	return p
}

// The profile said gpus: 2 before, and says gpus: 1 now, or the other way round.
func TestATrialThatGoesOnKeepsItsGPUsWhateverTheProfileSaysNow(t *testing.T) {
	for name, c := range map[string]struct {
		had, now []Slot
		parallel int
	}{
		"more GPUs for each":  {Slots([]int{4}, 1, 1), Slots([]int{4}, 1, 2), 0},
		"fewer GPUs for each": {Slots([]int{4}, 1, 2), Slots([]int{4}, 1, 1), 0},
		"whole nodes before":  {Slots([]int{4, 4}, 1, 0), Slots([]int{4, 4}, 1, 1), 0},
		"two nodes before":    {Slots([]int{2, 2}, 2, 0), Slots([]int{2, 2}, 1, 1), 0},
		"fewer at once":       {Slots([]int{4}, 1, 1), Slots([]int{4}, 1, 1)[:2], 2},
	} {
		n, p := newNodes(), searched(12, c.parallel)
		var ends []chan struct{}
		for i, slot := range c.had {
			ends = append(ends, n.leave(RunID(p.Name, "s1", i+1, 0), i+1, slot))
		}
		n.most = 0
		go func() {
			for _, end := range ends {
				time.Sleep(150 * time.Millisecond)
				close(end)
			}
		}()
		board, err := New(n.owner(), p, "s1", c.now).Run(context.Background())
		if err != nil || board.Done != 12 {
			t.Errorf("%s: %v, %+v", name, err, board)
		}
		if len(n.shared) > 0 {
			t.Errorf("%s: %s", name, strings.Join(n.shared, "; "))
		}
		if c.parallel > 0 && n.most > c.parallel {
			t.Errorf("%s: %d at once, %d are the most", name, n.most, c.parallel)
		}
	}
}

// Who mends the script in the middle of a search gets a leaderboard of two scripts.
func TestASweepThatGoesOnWithOtherCodeSaysSo(t *testing.T) {
	edited := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		began []int64
		want  string
	}{
		"before the second of three": {[]int64{900, 1100, 900}, "all the same: 1,3 (a.py, b.py, c.py and 1 more)"},
		"before all":                 {[]int64{1100, 1200}, ""},
		"there are none yet":         {nil, ""},
	} {
		n, p, told := newNodes(), searched(4, 1), ""
		for i, at := range c.began {
			n.past[RunID(p.Name, "s1", i+1, 0)] = Past{Label: Label{Trial: i + 1}, Started: true, Ended: &event.RunEnded{Verdict: event.Succeeded}, Began: time.Unix(at, 0)}
		}
		owner := n.owner()
		owner.Changed = func(since time.Time) []string {
			if edited.After(since) {
				return []string{"a.py", "b.py", "c.py", "d.py"}
			}
			return nil
		}
		owner.Publish = func(b event.Body) error {
			if notice, is := b.(event.Noticed); is {
				told += notice.Text
			}
			return nil
		}
		if _, err := New(owner, p, "s1", Slots([]int{0}, 1, 0)).Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if (c.want == "") != (told == "") || !strings.HasSuffix(told, c.want) {
			t.Errorf("%s: told %q", name, told)
		}
	}
}

func TestNodesThatStartNothingEndTheSweepAndLeaveTheTrialsThatWait(t *testing.T) {
	n := newNodes()
	n.launch = func(run string) error {
		if slices.Index(n.started, run) < 4 {
			return nil // all was well at first
		}
		return errors.New("no such file")
	}
	board, err := New(n.owner(), searched(40, 0), "s1", Slots([]int{2}, 1, 1)).Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "3 trials in a row could not be started, the last of them: no such file") || strings.Count(err.Error(), "in a row") != 1 {
		t.Errorf("%v", err)
	}
	if board.Done != 4 || board.Failed != 3 || board.Running != 0 || len(n.started) != 7 {
		t.Errorf("%d launches, %+v", len(n.started), board)
	}
}

func TestALaunchThatFailsNowAndThenIsATrialThatFailed(t *testing.T) {
	n := newNodes()
	n.launch = func(run string) error {
		if slices.Index(n.started, run)%3 > 0 {
			return errors.New("no port is free")
		}
		return nil
	}
	board, err := New(n.owner(), searched(12, 0), "s1", Slots([]int{1}, 1, 1)).Run(context.Background())
	if err != nil || board.Done != 4 || board.Failed != 8 {
		t.Errorf("%v, %+v", err, board)
	}
}

func TestAClusterThatIsTakenDownHaltsTheSweepAndFailsNoTrial(t *testing.T) {
	n := newNodes()
	n.launch = func(run string) error {
		if slices.Index(n.started, run) < 2 {
			return nil
		}
		return &HaltError{&event.Fault{What: "launch a trial", Node: -1, Why: "the cluster is being taken down"}}
	}
	board, err := New(n.owner(), searched(9, 0), "s1", Slots([]int{4}, 1, 1)).Run(context.Background())
	var f *event.Fault
	if !errors.As(err, &f) || f.Why != "the cluster is being taken down" || strings.Count(err.Error(), "taken down") != 1 {
		t.Errorf("%v", err)
	}
	if board.Done != 2 || board.Failed != 0 || len(n.started) != 3 {
		t.Errorf("%v were launched, %+v", n.started, board)
	}
}

func TestTrialsThatSomebodyStopsAreNoReasonToGiveUp(t *testing.T) {
	n := newNodes()
	n.stopped = true
	board, err := New(n.owner(), searched(5, 0), "s1", Slots([]int{1}, 1, 1)).Run(context.Background())
	if err != nil || len(n.started) != 5 || board.Failed != 5 {
		t.Errorf("%v, %+v", err, board)
	}
}

// What was started of a trial and could not be stopped keeps its nodes: nobody else
// is launched there before its end is known.
func TestATrialWhoseFailedLaunchCouldNotBeStoppedKeepsItsPlace(t *testing.T) {
	for name, unreachable := range map[string]bool{"it ends later": false, "nobody can look": true} {
		n, p := newNodes(), searched(4, 0)
		first := RunID(p.Name, "s1", 1, 0)
		n.ends[first] = make(chan struct{})
		n.launch = func(run string) error {
			if run != first {
				return nil
			}
			n.past[run] = Past{Label: Label{Trial: 1, Slot: Slot{Nodes: []int{0}, GPUs: []int{0}}}}
			n.has[run] = Slot{Nodes: []int{0}}
			return errors.New("node0 went out of reach")
		}
		owner := n.owner()
		watch := owner.Watch
		owner.Watch = func(ctx context.Context, run string) (event.RunEnded, error) {
			if run == first && unreachable {
				return event.RunEnded{}, errors.New("look at the run: node0 does not answer")
			}
			return watch(ctx, run)
		}
		time.AfterFunc(300*time.Millisecond, func() { close(n.ends[first]) })
		board, err := New(owner, p, "s1", Slots([]int{1}, 1, 1)).Run(context.Background())
		if len(n.shared) > 0 {
			t.Errorf("%s: %s", name, strings.Join(n.shared, "; "))
		}
		if want := map[bool]int{false: 4, true: 1}[unreachable]; len(n.started) != want || (err != nil) != unreachable {
			t.Errorf("%s: %v were launched, %v, %+v", name, n.started, err, board)
		}
	}
}
