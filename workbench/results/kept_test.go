package results

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench/event"
)

// A checkpoint that a service keeps is told of when two looks have found it the same,
// once, and not when an older one follows or a look fails between.
func TestAKeptCheckpointIsToldOnceAndWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(s int) time.Time { return time.Date(2026, 3, 1, 12, 0, s, 0, time.UTC) }
		half := cloud.Checkpoint{Name: "step-200", Files: 1, Bytes: 10, Written: at(20)}
		full := cloud.Checkpoint{Name: "step-200", Files: 2, Bytes: 30, Written: at(21)}
		first := cloud.Checkpoint{Name: "step-100", Place: "s3://ml-lab/ckpt/step-100", Files: 1, Bytes: 10, Written: at(10)}
		looks := [][]cloud.Checkpoint{{first}, {first, half}, {half, first}, {full, first}, nil, {full, first}, {first, full}, {first}, {first}}
		ctx, stop := context.WithCancel(t.Context())
		var told []event.CheckpointSaved
		n := 0
		FollowKept(ctx, func(context.Context) ([]cloud.Checkpoint, error) {
			n++
			switch {
			case n > len(looks):
				stop()
				return nil, ctx.Err()
			case looks[n-1] == nil:
				return nil, errors.New("throttled")
			}
			return looks[n-1], nil
		}, nil, func(b event.Body) error {
			told = append(told, b.(event.CheckpointSaved))
			return nil
		})
		want := []event.CheckpointSaved{
			{Name: "step-100", Place: first.Place, Files: 1, Bytes: 10, Written: at(10)},
			{Name: "step-200", Files: 1, Bytes: 10, Written: at(20)},
			{Name: "step-200", Files: 2, Bytes: 30, Written: at(21)},
		}
		if len(told) != len(want) {
			t.Fatalf("told are %+v", told)
		}
		for i := range want {
			if told[i] != want[i] {
				t.Errorf("%d. told is %+v, not %+v", i, told[i], want[i])
			}
		}
	})
}

// Who watches again is not told again.
func TestAKeptCheckpointThatWasToldIsNotToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloud.Checkpoint{Name: "step", Files: 1, Written: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		FollowKept(ctx, func(context.Context) ([]cloud.Checkpoint, error) { return []cloud.Checkpoint{c}, nil },
			&event.Checkpoint{Name: "step", Written: c.Written}, func(b event.Body) error {
				t.Errorf("told again: %+v", b)
				return nil
			})
	})
}
