package follow

import (
	"context"
	"fmt"
	"io"
	"time"
)

// What the chart rank prints is read for metrics from its stored log, not on the way
// there: whoever prints it, in this process or another, has it as fast as it comes,
// and the file is the queue of the bytes that are not read yet.

// storedPiece is how much of it is read at once.
const storedPiece = 256 << 10

// came notes that a log has grown.
func (t *Watch) came(rank int) {
	t.mu.Lock()
	t.before[rank], t.printed[rank] = t.printed[rank], time.Now()
	t.mu.Unlock()
	t.owner.Changed()
	if rank == t.chartRank() {
		select {
		case t.unread <- struct{}{}:
		default:
		}
	}
}

// readOn reads what comes, until ctx ends. What is left then is read by whoever has
// ended it, or by the next watch.
func (t *Watch) readOn(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.unread:
		}
		if err := t.readStored(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// readStored reads what is stored and was not read yet.
func (t *Watch) readStored(ctx context.Context) error {
	log := t.logs[t.chartRank()]
	if t.piece == nil {
		t.piece = make([]byte, storedPiece)
	}
	buf := t.piece
	for t.fed < log.stored() && ctx.Err() == nil {
		n, err := log.f.ReadAt(buf[:min(storedPiece, log.stored()-t.fed)], t.fed)
		if err != nil && err != io.EOF || n == 0 {
			return fmt.Errorf("read the stored log: %w", err)
		}
		t.mu.Lock()
		t.points = append(t.points, t.reader.Feed(buf[:n], now())...)
		t.feedAdded(t.fed, buf[:n])
		flood := len(t.points) >= pointsAtOnce
		t.mu.Unlock()
		t.fed += int64(n)
		if flood {
			if err := t.storePoints(); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
