package tunnel

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// recordLimit bounds the wait for another process that changes a record: it only
// writes a small file.
const recordLimit = 2 * time.Second

// alone changes the records below forwards/ while no other process does: each change
// reads a file and writes it again, and of two at once one would be lost. Where the
// file system has no locks, or one is held for too long, the change is made without:
// a record that misses this tunnel would be worse.
func (t *Tunnels) alone(change func()) {
	t.recording.Lock()
	defer t.recording.Unlock()
	dir := filepath.Join(t.dir, "locks")
	if err := os.MkdirAll(dir, 0o700); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), recordLimit)
		defer cancel()
		l := flock.New(filepath.Join(dir, "forwards.records"), flock.SetPermissions(0o600))
		if is, err := l.TryLockContext(ctx, 5*time.Millisecond); is && err == nil {
			defer func() { _ = l.Unlock() }()
		}
	}
	change()
}
