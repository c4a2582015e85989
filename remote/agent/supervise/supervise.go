//go:build linux

package supervise

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote/agent/ending"
	"github.com/dlwb/dlwb/remote/agent/logs"
	"github.com/dlwb/dlwb/remote/agent/proc"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/wire"
)

// supervisor is the process that looks after a run until nothing of it is alive.
type supervisor struct {
	run      runs.Run
	set      runs.Settings
	plan     wire.LaunchRequest
	start    string
	group    cgroup
	children *children
	door     net.Listener // for the wrappers of ranks
	events   chan event
	over     chan struct{} // closed when nobody takes events any more
	life     string        // that this part of a job has; empty: it is none
	told     <-chan string // by the part that leads this one
	released bool          // it has told, and nothing else ends this one

	mu       sync.Mutex
	logs     map[string]*logs.Log
	pids     map[int]bool // of the programs of ranks
	late     []event      // of ranks that ended when nobody took events any more
	held     []heldEnd    // in the order in which they came
	lost     bool         // a process has failed
	sweeping time.Time    // since when what is left behind is being ended

	live     int // processes that we wait for
	helpers  int // those that serve them
	failed   *runs.Exit
	why      string
	patience <-chan time.Time
	ranks    sync.WaitGroup // that have a wrapper
	stops    sync.WaitGroup
	tellers  sync.WaitGroup
}

// event is the end of a process of ours or of a rank behind a wrapper.
type event struct {
	who  string
	exit runs.Exit
	ours bool
	// helper: it serves the others, and has no good end of its own.
	helper bool
	// swept: it ended when what the run had left behind was ended.
	swept bool
}

// Main is "agent supervise RUN_DIR": it supervises a run that Launch has
// prepared, and is told to its end.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: agent supervise RUN_DIR")
		return 64
	}
	signals := heed()
	_ = syscall.Umask(0o077)
	s, err := begin(runs.At(args[0]), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, "dlwb supervise:", err)
		return codeFull
	}
	s.supervise(signals)
	return s.finish()
}

// heed gives the signals that mean a program's end. No other one ends us, and
// none is ignored: it would be in what we start too.
func heed() <-chan os.Signal {
	ends := make(chan os.Signal, 8)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGXFSZ)
	return ends
}

// begin takes the room for the records, reads what is to be done, and says that
// the run is supervised. placing puts hosts into what is to be done; nil: they are
// there.
func begin(r runs.Run, adapt func(*wire.LaunchRequest)) (*supervisor, error) {
	s := &supervisor{run: r, set: r.Settings(), start: runs.Stamp(), logs: map[string]*logs.Log{}, pids: map[int]bool{},
		events: make(chan event), over: make(chan struct{})}
	plan, err := ReadPlan(r)
	if err != nil {
		return nil, err
	}
	s.plan = plan
	if adapt != nil {
		adapt(&s.plan)
	}
	for _, record := range []string{"full", "exit"} {
		if err := r.Reserve(record); err != nil {
			return nil, fmt.Errorf("%w: is the disk full?", err)
		}
	}
	s.children = adopt()
	s.group = enclose(r)
	if s.door, err = listen(r); err != nil {
		fmt.Fprintln(os.Stderr, "dlwb supervise: launchers' ranks are not heard:", err)
	} else {
		s.ranks.Go(s.admit)
	}
	if err := r.Say("started %d", os.Getpid()); err != nil {
		return nil, fmt.Errorf("%w: is the disk full?", err)
	}
	self, _ := proc.Read(os.Getpid())
	return s, r.SupervisedBy(self)
}

// supervise starts the processes and waits for their ends. With peers, the
// moment of patience is theirs too.
func (s *supervisor) supervise(signals <-chan os.Signal) {
	for _, p := range s.plan.Procs {
		if p.Helper {
			s.helpers++
		} else {
			s.live++
		}
		go s.runProc(p)
	}
	only := s.live == 0 // helpers: they serve ranks on other nodes
	for s.live > 0 || only && s.helpers > 0 || (s.patience != nil && len(s.plan.Peers) > 0) {
		select {
		case e := <-s.events:
			switch {
			case e.helper:
				s.helpers--
			case e.ours:
				s.live--
			}
			s.ended(e)
		case sig := <-signals:
			// Whoever ends us by TERM means the run.
			if !s.run.Has("stopping") {
				s.stop(fmt.Sprintf("supervise got SIG%s", signalName(sig.(syscall.Signal))))
			}
		case why := <-s.told:
			s.release(why)
		case <-s.patience:
			s.patience = nil
			if s.live > 0 {
				s.stop(s.why)
			}
			s.tellPeers()
		}
	}
}

// ended: the first failure decides what becomes of the run. The others get a
// moment to print what they know, and are stopped then. What ends because of a
// stop has not failed.
func (s *supervisor) ended(e event) {
	if e.helper && e.exit.Code == 0 {
		e.exit.Code = 1 // whoever needs it has lost it
	}
	if e.ours && !e.helper {
		s.tellHeld(e.exit)
	}
	if e.exit.Code == 0 || s.failed != nil || s.run.Has("stopping") {
		return
	}
	s.mu.Lock()
	s.lost = true
	s.mu.Unlock()
	s.failed = &e.exit
	s.why = fmt.Sprintf("%s on %s %s", e.who, s.set.Node, e.exit.Outcome())
	s.patience = time.After(s.set.Patience)
}

// tell makes an event of an end.
func (s *supervisor) tell(e event) {
	select {
	case s.events <- e:
	case <-s.over:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = append(s.late, e)
	}
}

// stop ends the run meanwhile.
func (s *supervisor) stop(why string) {
	s.stops.Go(func() { s.order(s.set.Grace, why).End() })
}

func (s *supervisor) order(grace time.Duration, why string) ending.Order {
	return ending.Order{Run: s.run, Grace: grace, Why: why, Own: true,
		Helper: s.children.isHelper, KillAll: s.children.killAll}
}

// sweepGrace is what processes get that the run has left behind.
const sweepGrace = 2 * time.Second

// isSwept reports whether a rank that has just ended was ended as something left
// behind. The sweep begins with TERM, which a wrapper outlives: one that is gone
// sooner than it kills was gone before.
func (s *supervisor) isSwept(wrapperGone bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.sweeping.IsZero() && !(wrapperGone && time.Since(s.sweeping) < sweepGrace)
}

// finish ends whatever the processes have left behind, and writes the record of
// the run: nothing of it is alive then.
func (s *supervisor) finish() int {
	stopped := s.run.Has("stopping")
	close(s.over)
	s.stops.Wait()
	if s.failed == nil && !stopped && s.helpers == 0 && len(s.plan.Procs) > 0 {
		s.tellLeft()
	}
	s.mu.Lock()
	s.sweeping = time.Now()
	s.mu.Unlock()
	s.children.close() // a helper may be about to start: it would outlive us
	wait := lastOutput
	if !s.children.bury() { // else there is nobody, and nobody to look for
		if left := s.order(sweepGrace, "").End(); left > 0 {
			wait = time.Second // for the others: these hold their pipes for ever
			fmt.Fprintf(os.Stderr, "dlwb supervise: %d processes can't be ended\n", left)
		}
	}
	if s.door != nil {
		_ = s.door.Close()
	}
	soon(&s.ranks, wait)
	s.mu.Lock()
	pids, late := maps.Clone(s.pids), slices.Clone(s.late)
	s.mu.Unlock()
	if stopped {
		ending.FreeGPUs(pids, s.children.output)
	}
	for _, e := range late {
		if e.exit.Code != 0 && !e.swept && !e.helper && !stopped && s.failed == nil {
			s.failed = &e.exit
		}
	}
	s.run.CloseRanks(s.start)
	exit := runs.Exit{Code: 0, Signal: "-"}
	switch {
	case s.failed != nil:
		exit = *s.failed
	case stopped && !s.onlyHelps():
		exit = runs.Exit{Code: 143, Signal: "TERM"}
	}
	var untold error
	if s.plan.Leads && s.failed == nil && !stopped {
		s.why = overReason + s.set.Node
		s.tellPeers()
		untold = s.tellBeside(s.why)
	}
	if err := s.record(exit); err != nil {
		fmt.Fprintf(os.Stderr, "dlwb supervise: ended with code %d, but: %v: is the disk full?\n", exit.Code, err)
		return codeFull
	}
	_ = s.run.Say("ended %d", exit.Code)
	s.tellers.Wait()
	s.group.remove()
	if untold != nil {
		fmt.Fprintln(os.Stderr, "dlwb supervise: the other nodes can't be told that all has ended here:", untold)
		return codeFull
	}
	return 0
}

// record writes the run's record. Nobody may take a run for ended well that has
// none: whoever asks meanwhile sees a run that has not ended; after a minute,
// one without a record.
func (s *supervisor) record(exit runs.Exit) (err error) {
	for range 60 {
		if err = s.run.End("exit", exit, s.start); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// lastOutput bounds the wait for the ends of the ranks, each of which waits until its last
// output is in its log (logs.Captured).
const lastOutput = 40 * time.Second

// soon waits for what has nothing to wait for any more.
func soon(all *sync.WaitGroup, most time.Duration) {
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(most):
	}
}

// began takes note of a rank's program.
func (s *supervisor) began(k *rank, pid int) {
	s.mu.Lock()
	s.pids[pid] = true
	s.mu.Unlock()
	k.started(pid)
}

// log gives a log of the run, of which there is one writer.
func (s *supervisor) log(name string) (*logs.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logs[name]; l != nil {
		return l, nil
	}
	l, err := logs.Open(s.run, name)
	if err == nil {
		s.logs[name] = l
	}
	return l, err
}

// runProc runs a process to its end.
func (s *supervisor) runProc(p wire.LaunchProc) {
	number, argv := s.program(p)
	who := p.Name
	if number != "" {
		who = "rank " + number
	}
	exit, err := s.runProgram(p, number, argv)
	if err != nil {
		fmt.Fprintf(os.Stderr, "dlwb supervise: %s: %v\n", who, err)
		exit = runs.Exit{Code: codeFull, Signal: "-"}
	}
	s.tell(event{who: who, exit: exit, ours: true, helper: p.Helper})
}

// program gives what a process runs. One that would start a single rank through
// the wrapper is that rank itself: its wrapper is this process.
func (s *supervisor) program(p wire.LaunchProc) (number string, argv []string) {
	for _, w := range p.Argv {
		argv = append(argv, inHome(s.run.Home(), string(w)))
	}
	if len(argv) > 3 && argv[0] == "sh" && strings.HasSuffix(argv[1], "/.dlwb/bin/rank") {
		for _, kv := range p.Env {
			if value, ok := strings.CutPrefix(string(kv), "RANK="); ok && isRank(value) {
				number = value
			}
		}
		if number != "" {
			argv = argv[3:]
		}
	}
	return number, argv
}

func (s *supervisor) runProgram(p wire.LaunchProc, number string, argv []string) (exit runs.Exit, err error) {
	log, err := s.log(p.Log)
	if err != nil {
		return exit, err
	}
	read, write, err := logs.Pipe(s.run, p.Log)
	if err != nil {
		return exit, err
	}
	k := &rank{}
	if number == "" {
		k.printed = log.Capture(read)
	} else if k, err = openRank(s.run, number, log, read, &s.group); err != nil {
		_, _ = fmt.Fprintln(log, "dlwb:", err)
		return exit, err
	}
	k.output = s.children.output
	if missing := s.await(p, log); missing != "" {
		_ = write.Close()
		_, _ = fmt.Fprintln(log, "dlwb:", missing)
		exit = runs.Exit{Code: codeMissing, Signal: "-"}
		if number == "" {
			return exit, nil
		}
		return exit, k.ended(exit, runs.Stamp())
	}
	pid, ended, err := s.fork(argv, s.environ(p), write)
	_ = write.Close()
	at := runs.Stamp()
	if err != nil {
		_, _ = fmt.Fprintf(log, "dlwb: %s can't be started: %v\n", argv[0], err)
		exit = runs.Exit{Code: 126, Signal: "-"}
	} else {
		if number != "" {
			s.began(k, pid)
		}
		e := <-ended
		exit, at = exitOf(e.WaitStatus), e.at
	}
	if number == "" {
		k.printed.Drained()
		return exit, nil
	}
	return exit, k.ended(exit, at)
}

// fork starts a program of the run as a shell does, which also knows what to
// say of one that is not there.
func (s *supervisor) fork(argv, env []string, out *os.File) (int, <-chan end, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = null.Close() }()
	attr := &syscall.ProcAttr{Dir: s.run.Line("dir"), Env: env, Files: []uintptr{null.Fd(), out.Fd(), out.Fd()}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	argv = append([]string{shell, "-c", `exec "$@"`, "dlwb"}, argv...)
	if s.group.dir != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(s.group.dir.Fd())
		if pid, end, err := s.children.start(argv, attr, false); err == nil {
			return pid, end, nil
		}
		attr.Sys.UseCgroupFD = false // a kernel that can't start it there
	}
	return s.children.start(argv, attr, false)
}

// environ is a process's environment. A later value of a name counts.
func (s *supervisor) environ(p wire.LaunchProc) []string {
	values := map[string]string{}
	set := func(kv string) {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	for _, kv := range os.Environ() {
		set(kv)
	}
	delete(values, runs.EnvRole)
	for _, kv := range append(append([][]byte{}, s.plan.Env...), p.Env...) {
		set(string(kv))
	}
	set("PWD=" + s.run.Line("dir"))
	if s.plan.Called != "" {
		set(runs.EnvID + "=" + s.plan.Called)
	}
	if s.plan.Results != "" {
		set("DLWB_RESULTS=" + s.run.Line("results"))
	}
	env := make([]string, 0, len(values))
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	return env
}

// tellPeers tells every peer that this run has failed, all at once, and gives up
// on those that do not answer in time.
func (s *supervisor) tellPeers() {
	if _, err := os.Stat(s.run.PeerFile("peer_key")); err != nil && len(s.plan.Peers) > 0 {
		fmt.Fprintln(os.Stderr, "dlwb supervise: the peers can't be told:", err)
		return
	}
	for _, p := range s.plan.Peers {
		s.tellers.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), tellLimit)
			defer cancel()
			args := toPeer(s.run, p, fmt.Sprintf("stop %s %s", idAt(p, s.run.ID), s.why))
			outcome := "not reached"
			if _, ok := s.children.help(ctx, args...); ok {
				outcome = "told"
			}
			_ = s.run.Say("peer %s %s", p.Name, outcome)
		})
	}
}

// tellLimit is how long a peer may need to answer.
const tellLimit = 15 * time.Second
