//go:build unix

package localjob

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
)

// queueVar names a file; while it is there, no job begins.
const queueVar = "DLWB_LOCALJOB_QUEUE"

const pollEvery = 20 * time.Millisecond

// lookLimit is longer than any look at a lock takes, also on a busy machine.
const lookLimit = 10 * time.Second

// Main is the supervisor of one job. A second one for the same job finds that
// another has begun it, and ends.
func Main(args []string) int {
	dir := args[0]
	// Who only looks whether it is held has the lock for a moment too.
	within, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	lock := flock.New(filepath.Join(dir, "lock"))
	if ok, err := lock.TryLockContext(within, time.Millisecond); !ok || err != nil {
		return 1
	}
	defer lock.Unlock()
	j, err := readJob(dir)
	if err != nil || len(readStatuses(dir)) > 0 {
		return 1
	}
	// One job at a time.
	queue := flock.New(filepath.Join(filepath.Dir(dir), "queue.lock"))
	if err := queue.Lock(); err != nil {
		return 1
	}
	defer queue.Unlock()
	for _, err := os.Stat(os.Getenv(queueVar)); err == nil; _, err = os.Stat(os.Getenv(queueVar)) {
		time.Sleep(pollEvery) // a test holds the queue
	}
	s := &supervisor{dir: dir, job: j}
	if err := s.run(); err != nil {
		return 1
	}
	return 0
}

type supervisor struct {
	dir string
	job cloud.Job

	mu     sync.Mutex
	status *os.File
	began  []*exec.Cmd
}

// told is a status, and of which replica.
type told struct {
	Replica int
	job.Status
}

func (s *supervisor) tell(replica int, status job.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status.Time = time.Now()
	if line, err := json.Marshal(told{replica, status}); err == nil {
		_, _ = s.status.Write(append(line, '\n'))
	}
}

func (s *supervisor) run() (err error) {
	if s.status, err = os.OpenFile(filepath.Join(s.dir, "status"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	ctx, over := context.WithCancel(context.Background())
	defer over()
	for i := range s.job.Replicas {
		s.tell(i, job.Status{Kind: job.Started, Rank: -1})
	}
	var ranks sync.WaitGroup
	worst := make([]int, s.job.Replicas)
	for _, rank := range s.job.Ranks {
		cmd, err := s.start(rank)
		if err != nil {
			return err
		}
		s.tell(rank.Replica, job.Status{Kind: job.RankStarted, Rank: rank.Rank, PID: cmd.Process.Pid})
		ranks.Go(func() {
			_ = cmd.Wait()
			ended := endOf(cmd, rank.Rank)
			s.tell(rank.Replica, ended)
			s.mu.Lock()
			worst[rank.Replica] = max(worst[rank.Replica], ended.Code)
			s.mu.Unlock()
		})
	}
	go s.awaitStop(ctx)
	ranks.Wait()
	for i, code := range worst {
		s.tell(i, job.Status{Kind: job.Ended, Rank: -1, Code: code})
	}
	return nil
}

func (s *supervisor) start(r cloud.JobRank) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(s.dir, fmt.Sprintf("rank-%d.log", r.Rank)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(s.job.Command[0], s.job.Command[1:]...)
	cmd.Dir, cmd.Env = filepath.Join(s.dir, "code"), append(append(os.Environ(), r.Env...), s.job.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.began = append(s.began, cmd)
	return cmd, cmd.Start()
}

func endOf(cmd *exec.Cmd, rank int) job.Status {
	end := job.Status{Kind: job.RankEnded, Rank: rank, Code: cmd.ProcessState.ExitCode()}
	if w, is := cmd.ProcessState.Sys().(syscall.WaitStatus); is && w.Signaled() {
		end.Code = 128 + int(w.Signal())
		end.Signal = map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGKILL: "KILL"}[w.Signal()]
	}
	return end
}

// awaitStop ends the ranks when a stop is asked for.
func (s *supervisor) awaitStop(ctx context.Context) {
	for ctx.Err() == nil {
		if text, err := os.ReadFile(filepath.Join(s.dir, "stop")); err == nil {
			grace, why, _ := strings.Cut(string(text), " ")
			for i := range s.job.Replicas {
				s.tell(i, job.Status{Kind: job.Stopping, Rank: -1, Why: why})
			}
			s.signal(syscall.SIGTERM)
			patience, _ := time.ParseDuration(grace)
			select {
			case <-time.After(patience):
				s.signal(syscall.SIGKILL)
			case <-ctx.Done():
			}
			return
		}
		time.Sleep(pollEvery)
	}
}

func (s *supervisor) signal(sig syscall.Signal) {
	for _, cmd := range s.began {
		_ = syscall.Kill(-cmd.Process.Pid, sig)
	}
}
