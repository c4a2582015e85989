// Package locks holds the three locks that a cluster has. They are files, held by a
// process: a crash frees them, and the store is never asked who is alive.
package locks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Kind is one of the locks of a cluster.
type Kind string

// The locks of a cluster.
const (
	Change  Kind = "change"  // held by whoever changes it: up, launch, down
	Watch   Kind = "watch"   // by whoever watches its run and stores what it says
	Observe Kind = "observe" // by whoever stores its nodes' telemetry
)

// Dir is the directory in which the locks lie.
type Dir string

// Claim is a lock that is held; nil is none.
type Claim struct{ lock *flock.Flock }

// Release gives the lock back.
func (c *Claim) Release() {
	if c == nil {
		return
	}
	_ = os.Truncate(c.lock.Path(), 0)
	_ = c.lock.Unlock()
}

func (d Dir) path(cluster string, kind Kind) string {
	return filepath.Join(string(d), cluster+"."+string(kind))
}

// lookMost is how long one who only looks at a lock may hold it up: it takes microseconds,
// but a busy machine may let it stand there.
const lookMost = 2 * time.Second

// Claim takes a lock of a cluster; nil when another holder has it. Those who only look
// whether it is held share it for a moment: where it can be shared, there is no holder.
func (d Dir) Claim(cluster string, kind Kind) (*Claim, error) {
	l := flock.New(d.path(cluster, kind), flock.SetPermissions(0o600))
	for began := time.Now(); time.Since(began) < lookMost; time.Sleep(2 * time.Millisecond) {
		ok, err := l.TryLock()
		if ok {
			_ = os.WriteFile(l.Path(), []byte(strconv.Itoa(os.Getpid())), 0o600)
			return &Claim{l}, nil
		}
		shared := false
		if err == nil {
			shared, err = l.TryRLock()
		}
		if err != nil {
			return nil, fmt.Errorf("take the %s lock of cluster %s: %w", kind, cluster, err)
		}
		if !shared {
			break
		}
		_ = l.Unlock()
	}
	_ = l.Close()
	return nil, nil
}

// ClaimSoon takes a lock, waiting a little for one that is about to be given
// back. It returns a *BusyError where it stays taken.
func (d Dir) ClaimSoon(ctx context.Context, cluster string, kind Kind) (*Claim, error) {
	deadline := time.After(2 * time.Second)
	for {
		c, err := d.Claim(cluster, kind)
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline:
			return nil, &BusyError{Cluster: cluster, PID: d.Holder(cluster, kind)}
		}
	}
}

// ClaimWhile takes a lock, however long another one has it. still is asked each time
// that it does not come soon, and once it is had: its error ends the wait.
func (d Dir) ClaimWhile(ctx context.Context, cluster string, kind Kind, still func() error) (*Claim, error) {
	for {
		c, err := d.ClaimSoon(ctx, cluster, kind)
		if busy := new(BusyError); err != nil && !errors.As(err, &busy) {
			return nil, err
		}
		if err := still(); err != nil {
			c.Release()
			return nil, err
		}
		if c != nil {
			return c, nil
		}
	}
}

// Turn is a claim of a lock that several of one process share.
type Turn struct {
	dir     Dir
	cluster string
	kind    Kind
	mu      sync.Mutex
	claim   *Claim
}

// Turn makes one; nothing is claimed yet.
func (d Dir) Turn(cluster string, kind Kind) *Turn {
	return &Turn{dir: d, cluster: cluster, kind: kind}
}

// Claim takes the lock, or gives the claim that another one here has; nil when it is
// held elsewhere. Release of the turn gives it back, not that of the claim.
func (t *Turn) Claim() (*Claim, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.claim != nil {
		return t.claim, nil
	}
	var err error
	t.claim, err = t.dir.Claim(t.cluster, t.kind)
	return t.claim, err
}

// Release gives the lock back, when all that share it are done.
func (t *Turn) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claim.Release()
	t.claim = nil
}

// Held reports whether somebody holds a lock.
func (d Dir) Held(cluster string, kind Kind) bool {
	l := flock.New(d.path(cluster, kind), flock.SetFlag(os.O_RDONLY))
	defer l.Close()
	ok, err := l.TryRLock()
	return !ok && err == nil
}

// Holder is the process that holds a lock; 0 for none, or when it can't be
// told.
func (d Dir) Holder(cluster string, kind Kind) int {
	if !d.Held(cluster, kind) {
		return 0
	}
	b, _ := os.ReadFile(d.path(cluster, kind))
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
