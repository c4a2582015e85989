package waits

import (
	"context"
	"time"
)

// Pause is the time between two looks at something that can't be waited for. It ends
// early with the error of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
