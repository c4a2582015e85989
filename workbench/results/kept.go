package results

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench/event"
)

// keptEvery is the pause between two looks at the checkpoints that a service keeps.
const keptEvery = 10 * time.Second

// FollowKept tells of the checkpoints that a service keeps of a run, until ctx ends. One
// counts when two looks have found it the same. told is the newest that was told before;
// nil: none was.
func FollowKept(ctx context.Context, look func(context.Context) ([]cloud.Checkpoint, error), told *event.Checkpoint, publish func(event.Body) error) {
	var newest time.Time
	if told != nil {
		newest = told.Written
	}
	for last := []cloud.Checkpoint(nil); ; {
		now, err := lookOnce(ctx, look)
		if err == nil {
			if c := newestOf(now, last); c.Written.After(newest) {
				newest = c.Written
				err = publish(event.CheckpointSaved{Name: c.Name, Place: c.Place, Files: c.Files, Bytes: c.Bytes, Written: c.Written})
			}
			last = now
		}
		if err != nil && ctx.Err() == nil {
			slog.Debug("checkpoints that a service keeps", "error", err)
		}
		select {
		case <-time.After(keptEvery):
		case <-ctx.Done():
			return
		}
	}
}

func lookOnce(ctx context.Context, look func(context.Context) ([]cloud.Checkpoint, error)) ([]cloud.Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, ckptLookLimit)
	defer cancel()
	return look(ctx)
}

// newestOf is the newest checkpoint that is the same in both looks.
func newestOf(now, last []cloud.Checkpoint) (newest cloud.Checkpoint) {
	for _, c := range now {
		if c.Written.After(newest.Written) && slices.Contains(last, c) {
			newest = c
		}
	}
	return newest
}
