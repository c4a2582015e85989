//go:build unix

package local

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// errEnding is why a node that was asked to end starts nothing more.
var errEnding = errors.New("this node is being taken down")

// reaper takes the exit status of every child: of the commands it started, and
// of orphans that the node adopted. exec.Cmd.Wait can't live beside something
// that waits for orphans, each would take the other's.
type reaper struct {
	mu      sync.Mutex
	ending  bool
	waiting map[int]chan syscall.WaitStatus
	reports sync.WaitGroup // commands whose end was not reported yet
}

// newReaper begins to take exit statuses; it goes on as long as the process.
func newReaper() *reaper {
	// The os package tries once whether pidfds work, with a child of its own
	// that must not be taken from it.
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Release()
	}
	r := &reaper{waiting: map[int]chan syscall.WaitStatus{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			r.collect()
		}
	}()
	return r
}

// collect takes all exit statuses there are: one SIGCHLD may stand for many.
func (r *reaper) collect() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		r.mu.Lock()
		exit := r.waiting[pid]
		delete(r.waiting, pid)
		r.mu.Unlock()
		if exit != nil {
			exit <- status
		}
	}
}

// start starts a command, whose standard streams must be files, and returns
// where its exit status will come. Who starts it counts it off in
// reports.
func (r *reaper) start(cmd *exec.Cmd) (pid int, exit <-chan syscall.WaitStatus, err error) {
	r.mu.Lock() // held until the pid is known, so that collect finds it
	defer r.mu.Unlock()
	if r.ending {
		return 0, nil, errEnding
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	pid = cmd.Process.Pid
	c := make(chan syscall.WaitStatus, 1)
	r.waiting[pid] = c
	r.reports.Add(1)
	_ = cmd.Process.Release()
	return pid, c, nil
}

// close lets nothing more be started.
func (r *reaper) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
}
