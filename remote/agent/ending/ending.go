//go:build linux

// Package ending ends every process of a run: TERM to the training, a grace,
// then KILL, again and again until nothing is left or a bound is reached.
package ending

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote/agent/proc"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

const (
	// writeLimit is how long our own processes have to write their records, and
	// podman to remove a container.
	writeLimit = 10 * time.Second
	// killLimit is how long processes that were killed have to be gone, and stormLimit
	// how long those are killed that start ever new ones: each may have a session of its
	// own, and with that as large a share of the processor as who kills them.
	killLimit  = 5 * time.Second
	stormLimit = 30 * time.Second
	// gpuLimit is how long a GPU's memory is waited for.
	gpuLimit = 5 * time.Second
	// lookEvery is the least pause between two looks at what is still there, lookMost the
	// longest where a look is cheap. A look reads the environment of every process of
	// the machine: who waits for a long grace must not take the processor from the
	// training, which saves its checkpoint then.
	lookEvery = 20 * time.Millisecond
	lookMost  = 500 * time.Millisecond
	// freezes is how often in a row what is new is stopped before all is killed.
	freezes = 10
)

// Order is what is to be ended, and how. It may come at any time, also twice at
// once.
type Order struct {
	Run   runs.Run
	Grace time.Duration
	// Why goes into the run's status. Who supervises and gives none only sweeps
	// up what a finished run has left.
	Why string
	// Own: who supervises the run gives the order, and is spared.
	Own bool
	// Helper tells what the supervisor has started for itself. Nil: whoever says
	// so.
	Helper func(pid int) bool
	// KillAll kills every descendant of the supervisor that is no helper, until none
	// is left or no new one was met for a limit, or for the longest time; it says
	// whether none is left. Nil: it is not the supervisor who asks.
	KillAll func(limit, most time.Duration) bool
}

// End carries out the order and returns how many processes are still there. It
// leaves the line "stopping WHY" in status and the marker directory "stopping",
// and writes the record of the run's end where its supervisor can't any more.
func (o Order) End() (left int) {
	s := &sweep{Order: o, told: map[proc.ID]bool{}, seen: map[int]bool{}, programs: o.Run.Programs()}
	s.look()
	s.begin()
	if !s.untilGone(o.Grace, s.theWork, func() { s.term() }) {
		s.kill(s.theWork)
	}
	// Our own processes end by themselves, once they have written their records.
	s.untilGone(writeLimit, s.ours, func() { signal(syscall.SIGKILL, s.work) })
	if len(s.all()) > 0 {
		s.killGroup()
	}
	s.kill(s.all)
	s.look()
	left = len(s.all())
	if o.KillAll != nil && !o.KillAll(killLimit, stormLimit) {
		left = max(left, 1)
	}
	closed := false
	if !o.Own && left == 0 {
		closed = s.closeRecord()
		if dir := o.Run.Cgroup(); dir != "" {
			_ = syscall.Rmdir(dir)
		}
	}
	// A supervisor sees to it before it says that the run has ended; those of older
	// versions did not.
	if closed || !o.Run.Has("launch") {
		FreeGPUs(s.seen, PlainOutput)
	}
	return left
}

// sweep is an order that is carried out.
type sweep struct {
	Order
	work     []proc.Process // what the training started
	wrappers []proc.Process // ours, which write the records of ranks
	keepers  []proc.Process // the supervisor, and what it started for itself
	told     map[proc.ID]bool
	allTold  bool // by somebody else, who stops it too
	seen     map[int]bool
	programs map[int]string // of ranks that have not ended, as far as is on record
}

func (s *sweep) look() {
	s.work, s.wrappers, s.keepers = nil, nil, nil
	for _, m := range s.Run.Members() {
		switch {
		case m.Role == "rank" || m.Role == "log":
			s.wrappers = append(s.wrappers, m.Process)
		case s.Helper != nil && s.Helper(m.PID):
		case m.Role == "" || s.Helper != nil: // who only says that it is ours is not
			s.work = append(s.work, m.Process)
			s.seen[m.PID] = true
		case !s.Own:
			s.keepers = append(s.keepers, m.Process)
		}
	}
}

func (s *sweep) theWork() []proc.Process { return s.work }

func (s *sweep) all() []proc.Process {
	return append(append(append([]proc.Process{}, s.work...), s.wrappers...), s.keepers...)
}

// ours are those of our own processes that still have something to write;
// without a supervisor, none of its helpers.
func (s *sweep) ours() []proc.Process {
	if _, alive, _ := s.Run.Supervisor(); alive {
		return append(append([]proc.Process{}, s.wrappers...), s.keepers...)
	}
	return s.wrappers
}

// begin: TERM, once per run: a second one would cut short what the first made a
// program do, such as saving a checkpoint.
func (s *sweep) begin() {
	sweeping, first := s.Own && s.Why == "", false
	if !sweeping && s.Run.Has("") && !s.Run.Ended() {
		if first = os.Mkdir(s.Run.Path("stopping"), 0o700) == nil; first {
			why := s.Why
			if why == "" {
				why = "without a reason given"
			}
			_ = s.Run.Say("stopping %s", why)
		} else {
			s.allTold = s.Run.Has("stopping")
		}
	}
	s.term()
	if first {
		s.sayGone()
	}
}

// term: to what has not got it yet, also when it was started meanwhile. The programs of
// ranks come first: a launcher that has got it ends them too.
func (s *sweep) term() {
	slices.SortStableFunc(s.work, func(a, b proc.Process) int {
		return cmp.Compare(len(s.programs[b.PID]), len(s.programs[a.PID]))
	})
	for _, p := range s.work {
		if !s.allTold && !s.told[p.ID()] {
			s.told[p.ID()] = true
			if p.Signal(syscall.SIGTERM) == nil {
				delete(s.programs, p.PID)
			}
		}
	}
}

// sayGone says which ranks the stop did not reach any more: they have ended by themselves,
// and whoever is to take note of that has not had the processor for it yet. Without a
// word their ends would be told behind the stop, and pass for its work.
func (s *sweep) sayGone() {
	parents := map[int]bool{}
	if sup, alive, _ := s.Run.Supervisor(); alive {
		parents[sup.PID] = true
	}
	for _, w := range s.wrappers {
		parents[w.PID] = true
	}
	for pid, number := range s.programs {
		if proc.EndedChild(pid, parents) {
			_ = s.Run.Say("rank %s gone", number)
		}
	}
}

func signal(sig syscall.Signal, to []proc.Process) {
	for _, p := range to {
		_ = p.Signal(sig)
	}
}

// untilGone looks until none of a kind is left; false when the time is over
// first. It looks again when one has ended, and else the less often, the longer it
// waits and the more a look takes.
func (s *sweep) untilGone(limit time.Duration, kind func() []proc.Process, each func()) bool {
	var look time.Duration
	for began := time.Now(); len(kind()) > 0; {
		waited := time.Since(began)
		if waited >= limit {
			return false
		}
		least := max(lookEvery, look)
		most := max(min(waited/4, lookMost), 9*look, least)
		time.Sleep(least)
		proc.AwaitEnd(kind(), min(most-least, limit-time.Since(began)))
		looks := time.Now()
		s.look()
		each()
		look = time.Since(looks)
	}
	return true
}

// kill kills until a look finds nothing of a kind. What starts ever new
// processes is stopped first, as what is stopped starts none.
func (s *sweep) kill(kind func() []proc.Process) {
	stopped := map[proc.ID]bool{}
	froze := 0
	most := time.Now().Add(stormLimit)
	for end := time.Now().Add(killLimit); len(kind()) > 0 && time.Now().Before(end) && time.Now().Before(most); s.look() {
		fresh := false
		for _, p := range kind() {
			if !stopped[p.ID()] {
				stopped[p.ID()], fresh = true, true
				_ = p.Signal(syscall.SIGSTOP)
			}
		}
		if fresh {
			end = time.Now().Add(killLimit)
		}
		if froze++; fresh && froze < freezes {
			continue
		}
		signal(syscall.SIGKILL, kind())
		froze = 0
		time.Sleep(time.Millisecond)
	}
}

// killGroup kills the run's cgroup at once, which no fork escapes.
func (s *sweep) killGroup() {
	if dir := s.Run.Cgroup(); dir != "" && !s.Own {
		if f, err := os.OpenFile(dir+"/cgroup.kill", os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString("1")
			_ = f.Close()
		}
	}
}

// closeRecord: where the supervisor was killed, nobody else can say that the run
// has ended.
func (s *sweep) closeRecord() bool {
	r := s.Run
	if !r.Launched() || r.Ended() {
		return false
	}
	start, _, _ := strings.Cut(r.Line("status"), " started ")
	if start == "" {
		start = "0"
	}
	r.CloseRanks(start)
	if r.End("exit", runs.Killed, start) == nil {
		_ = r.Say("ended %d", runs.Killed.Code)
	}
	_ = os.Remove(r.Path("events"))
	return true
}

// FreeGPUs waits a little until none of some processes holds GPU memory.
// nvidia-smi may hang: it is given up then.
func FreeGPUs(pids map[int]bool, output func(ctx context.Context, argv ...string) string) {
	ctx, cancel := context.WithTimeout(context.Background(), gpuLimit)
	defer cancel()
	holds := func(word string) bool {
		pid, err := strconv.Atoi(strings.TrimSuffix(word, ","))
		return err == nil && pids[pid]
	}
	for len(pids) > 0 && ctx.Err() == nil {
		if !slices.ContainsFunc(strings.Fields(output(ctx, "nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader")), holds) {
			return
		}
		time.Sleep(lookEvery)
	}
}

// PlainOutput runs a program and gives what it says. On a busy machine that is read
// later than its end is known.
func PlainOutput(ctx context.Context, argv ...string) string {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.WaitDelay = 2 * time.Second
	text, _ := c.Output()
	return string(text)
}
