//go:build linux

// Package supervise runs the processes of one run on a node, in a process of its
// own that outlives the connection, and waits for every one of them.
package supervise

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/agent/proc"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

// children are all processes that this one has started or adopted. One place
// waits for them: two could take each other's. A child is buried with mu held:
// who holds it knows that no number of a child is given again.
type children struct {
	mu      sync.Mutex
	ends    map[int]chan<- end
	helpers map[int]bool // what we start for ourselves
	none    bool         // there is no child, and with that no descendant
	closed  bool         // nothing of the run is started any more
	started chan struct{}
}

// end is how a process has ended, and when that was seen, as a stamp: those who record
// it may come to that much later.
type end struct {
	syscall.WaitStatus
	at string
}

// adopt makes this process the parent of whatever its descendants leave behind,
// and waits for all of them from now on.
func adopt() *children {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	c := &children{ends: map[int]chan<- end{}, helpers: map[int]bool{}, none: true, started: make(chan struct{}, 1)}
	go func() {
		for {
			_ = unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if c.bury() {
				<-c.started
			}
		}
	}()
	return c
}

// bury takes note of the children that have ended, and says whether there is
// none left.
func (c *children) bury() (none bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if pid <= 0 {
			c.none = errors.Is(err, syscall.ECHILD)
			return c.none
		}
		if told := c.ends[pid]; told != nil {
			told <- end{status, runs.Stamp()}
		}
		delete(c.ends, pid)
		delete(c.helpers, pid)
	}
}

// calm is how often in a row no child must be seen beside our helpers.
const calm = 100

// killAll kills every descendant that is no helper, until none is left, no new one was
// met for a limit, or the longest time is over, and says whether none is left. Whatever
// a descendant does, it or one that it comes from is a child of ours: also of one that is
// another process at every moment.
func (c *children) killAll(limit, most time.Duration) bool {
	seen, met := 0, map[int]bool{}
	last := time.Now().Add(most)
	for end := time.Now().Add(limit); seen < calm; seen++ {
		known := len(met)
		alive, none := c.killOnce(met)
		switch {
		case none:
			return true
		case time.Now().After(end) || time.Now().After(last):
			return false
		case alive:
			seen = -1
		}
		if len(met) > known {
			end = time.Now().Add(limit)
		}
		c.bury()
	}
	return true
}

// killOnce kills the children that there are now, and adds them to those that were met.
func (c *children) killOnce(met map[int]bool) (alive, none bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	threads, _ := filepath.Glob("/proc/self/task/[0-9]*/children")
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && !c.helpers[pid] {
				alive, met[pid] = true, true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	return alive, c.none
}

// leftFor is how long what a rank has left behind may take to end by itself, as workers
// and trackers of Python's multiprocessing do.
const leftFor = 500 * time.Millisecond

// left gives the names of what still runs after that, sorted, each once.
func (c *children) left() (names []string) {
	for end := time.Now().Add(leftFor); !c.bury(); time.Sleep(leftFor / 20) {
		if time.Now().Before(end) {
			continue
		}
		table, below := proc.Table(), map[int]bool{os.Getpid(): true}
		proc.Spread(table, below)
		for pid := range below {
			if name := proc.Name(pid); pid != os.Getpid() && name != "" && !c.isHelper(pid) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	return nil
}

// tellLeft says in status what ranks that have ended well leave running, which is ended
// now: a script that puts the training into the background has ended itself.
func (s *supervisor) tellLeft() {
	if number, _ := s.program(s.plan.Procs[0]); number == "" {
		return // a launcher: its ranks are told apart, and it waits for them
	}
	const most = 5 // who starts many starts them from one program, as a rule
	if names := s.children.left(); len(names) > 0 {
		_ = s.run.Say("left %s", strings.Join(names[:min(most, len(names))], ", "))
	}
}

// errOver is why nothing of a run is started that has come to its end.
var errOver = errors.New("the run has come to its end")

// close has nothing of the run started any more: whoever looks for what is left behind
// from then on finds all of it.
func (c *children) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// start starts a program, whose end comes over the channel.
func (c *children) start(argv []string, attr *syscall.ProcAttr, helper bool) (int, <-chan end, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed && !helper {
		return 0, nil, errOver
	}
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return 0, nil, err
	}
	ended := make(chan end, 1)
	c.ends[pid], c.none = ended, false
	if helper {
		c.helpers[pid] = true
	}
	select {
	case c.started <- struct{}{}:
	default:
	}
	return pid, ended, nil
}

func (c *children) isHelper(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.helpers[pid]
}

// outputMost bounds what is read of a helper's output.
const outputMost = 1 << 20

// help runs a program of our own and gives what it says, and whether it ended
// well. What it complains about goes where we do.
func (c *children) help(ctx context.Context, argv ...string) (said string, ok bool) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return "", false
	}
	read, write, err := os.Pipe()
	if err != nil {
		return "", false
	}
	defer func() { _ = read.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		_ = write.Close()
		return "", false
	}
	pid, end, err := c.start(append([]string{path}, argv[1:]...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{null.Fd(), write.Fd(), os.Stderr.Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true},
	}, true)
	_, _ = null.Close(), write.Close()
	if err != nil {
		return "", false
	}
	defer context.AfterFunc(ctx, func() {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		_ = read.Close()
	})()
	text, _ := io.ReadAll(io.LimitReader(read, outputMost))
	select {
	case status := <-end:
		return string(text), status.ExitStatus() == 0
	case <-ctx.Done():
		return "", false
	}
}

func (c *children) output(ctx context.Context, argv ...string) string {
	said, _ := c.help(ctx, argv...)
	return said
}
