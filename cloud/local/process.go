//go:build unix

package local

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
)

// cookieName is the environment variable that everything of a cluster carries;
// its value is the id of the cluster.
const cookieName = "DLWB_LOCAL"

// process is one entry of the process table. pid and start together name it: a
// pid alone is reused.
type process struct {
	pid, ppid int
	start     string
	dead      bool // a zombie: it runs no more, only its parent has not looked
	kernel    bool // a thread of the kernel, which is nobody's
	name      string
	cpu       time.Duration
	rss       int64 // bytes
}

// living is the process with this pid and start, unless it has ended.
func living(pid int, start string) bool {
	if pid <= 0 || start == "" {
		return false
	}
	p, err := lookup(pid)
	return err == nil && !p.dead && p.start == start
}

// finder looks at the process table and picks.
type finder func() ([]process, error)

// membersOf finds every process of a cluster: those that carry its cookie or
// its mark, and all their descendants. The process that looks is never among
// them.
func membersOf(id string) finder {
	return func() ([]process, error) {
		all, err := processes()
		return membersIn(all, id), err
	}
}

func membersIn(all []process, id string) []process {
	carries := carriers(id)
	return closure(all, func(p process) bool { return carries(p.pid) })
}

// descendantsOf finds what a process has started, and what that has started.
func descendantsOf(pid int) finder {
	return func() ([]process, error) {
		all, err := processes()
		return descendantsIn(all, pid), err
	}
}

func descendantsIn(all []process, pid int) []process {
	return closure(all, func(p process) bool { return p.ppid == pid })
}

// closure picks the processes that root accepts and all their descendants.
func closure(all []process, root func(process) bool) []process {
	self := os.Getpid()
	children := map[int][]process{}
	var todo []process
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
		if !p.dead && p.pid != self && root(p) {
			todo = append(todo, p)
		}
	}
	seen := map[int]bool{self: true}
	var mine []process
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[p.pid] {
			continue
		}
		seen[p.pid] = true
		todo = append(todo, children[p.pid]...)
		if !p.dead {
			mine = append(mine, p)
		}
	}
	return mine
}

// signal sends to exactly this process and to none that got its pid later:
// os.FindProcess holds the process (a pidfd, on Linux) while its start time is
// compared.
func (p process) signal(signals ...syscall.Signal) {
	held, err := os.FindProcess(p.pid)
	if err != nil {
		return
	}
	defer held.Release() //nolint:errcheck // nothing can be done about it
	if !living(p.pid, p.start) {
		return
	}
	for _, s := range signals {
		_ = held.Signal(s) // it may have ended by itself
	}
}

// errLeft is returned by end when something survived KILL.
var errLeft = errors.New("processes are left that did not end by KILL")

// killLimit is how long end goes on killing, and leastKills how many times it does at
// least: something may start processes faster than they can be ended, or be stuck in the
// kernel. A look at all processes alone takes seconds on a machine that is busy enough.
const (
	killLimit  = 10 * time.Second
	leastKills = 10
)

// end ends every process that find finds: TERM, and KILL to what is there after
// the grace period. It looks until two looks in a row find nothing, because a
// process that is born during a look may be missed by it. It returns the
// processes it saw.
func end(ctx context.Context, find finder, grace time.Duration) (map[int]process, error) {
	seen := map[int]process{}
	began := time.Now()
	clean, kills := 0, 0
	for {
		mine, err := find()
		if err != nil {
			return seen, err
		}
		if len(mine) == 0 {
			if clean++; clean == 2 {
				return seen, nil
			}
			if err := waits.Pause(ctx, 2*time.Millisecond); err != nil {
				return seen, err
			}
			continue
		}
		clean = 0
		spent := time.Since(began)
		for _, p := range mine {
			_, known := seen[p.pid]
			seen[p.pid] = p
			switch {
			case spent >= grace:
				p.signal(syscall.SIGKILL)
			case !known:
				// An interactive shell ignores TERM, a stopped process
				// sees no signal until it goes on.
				p.signal(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGCONT)
			}
		}
		if spent >= grace {
			kills++
		}
		if spent > grace+killLimit && kills >= leastKills {
			return seen, errLeft
		}
		if err := waits.Pause(ctx, 10*time.Millisecond); err != nil {
			return seen, err
		}
	}
}
