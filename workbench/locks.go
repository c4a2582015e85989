package workbench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// A cluster has three locks. Whoever changes it (up, launch, down) holds one,
// whoever watches its run and stores what it says another, whoever stores its
// nodes' telemetry the third. They are held by a process, so a crash frees
// them, and the store is never asked who is alive.
const (
	lockChange  = "change"
	lockWatch   = "watch"
	lockObserve = "observe"
)

// claim is a lock that is held.
type claim struct{ lock *flock.Flock }

func (c *claim) release() {
	if c == nil {
		return
	}
	_ = os.Truncate(c.lock.Path(), 0)
	_ = c.lock.Unlock()
}

func (w *Workbench) lockPath(cluster, kind string) string {
	return filepath.Join(w.dir, "locks", cluster+"."+kind)
}

// claim takes a lock of a cluster; nil when another holder has it. Who only
// looks whether it is held has it for a moment too, so one look is not enough.
func (w *Workbench) claim(cluster, kind string) (*claim, error) {
	l := flock.New(w.lockPath(cluster, kind), flock.SetPermissions(0o600))
	for range 5 {
		ok, err := l.TryLock()
		if err != nil {
			return nil, fmt.Errorf("take the %s lock of cluster %s: %w", kind, cluster, err)
		}
		if ok {
			_ = os.WriteFile(l.Path(), []byte(strconv.Itoa(os.Getpid())), 0o600)
			return &claim{l}, nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil, nil
}

// claimChange takes the change lock.
func (w *Workbench) claimChange(ctx context.Context, cluster string) (*claim, error) {
	return w.claimSoon(ctx, cluster, lockChange)
}

// claimSoon takes a lock, waiting a little for one that is about to be given
// back.
func (w *Workbench) claimSoon(ctx context.Context, cluster, kind string) (*claim, error) {
	deadline := time.After(2 * time.Second)
	for {
		c, err := w.claim(cluster, kind)
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline:
			return nil, &BusyError{Cluster: cluster, PID: w.holder(cluster, kind)}
		}
	}
}

// held reports whether somebody holds a lock.
func (w *Workbench) held(cluster, kind string) bool {
	l := flock.New(w.lockPath(cluster, kind), flock.SetFlag(os.O_RDONLY))
	defer l.Close()
	ok, err := l.TryRLock()
	return !ok && err == nil
}

// holder is the process that holds a lock; 0 for none, or when it can't be
// told.
func (w *Workbench) holder(cluster, kind string) int {
	if !w.held(cluster, kind) {
		return 0
	}
	b, _ := os.ReadFile(w.lockPath(cluster, kind))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// BusyError says that another dlwb is changing the cluster just now.
type BusyError struct {
	Cluster string
	PID     int
}

func (e *BusyError) Error() string {
	who := "another dlwb"
	if e.PID != 0 {
		who += fmt.Sprintf(" (process %d)", e.PID)
	}
	return fmt.Sprintf("cluster %s: %s is changing it just now; wait for it, or end it and try again", e.Cluster, who)
}
