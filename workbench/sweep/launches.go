package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dlwb/dlwb/workbench/event"
)

// HaltError says that no trial can be launched any more, whatever its parameters:
// those that wait go on waiting, for another Run.
type HaltError struct{ Err error }

func (e *HaltError) Error() string { return e.Err.Error() }

// Unwrap gives why.
func (e *HaltError) Unwrap() error { return e.Err }

// refusedAt is after how many launches in a row that failed none is tried any more:
// then it is the nodes, and every trial that waits would fail there.
const refusedAt = 3

// launchPause is between two launches: whoever waits to change the cluster, as to
// take it down, has it in between.
const launchPause = 100 * time.Millisecond

// launches are those of a sweep, one after the other.
type launches struct {
	one     sync.Mutex // held during a launch
	mu      sync.Mutex
	refused int // in a row
	halt    *HaltError
}

// do launches one, unless the sweep is at an end.
func (l *launches) do(ctx context.Context, launch func() error) error {
	l.one.Lock()
	defer l.one.Unlock()
	err := cmp.Or(ctx.Err(), l.over())
	if err != nil {
		return err
	}
	err = launch()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err = l.note(err); err == nil {
		time.Sleep(launchPause)
	}
	return err
}

// note notes how a launch went.
func (l *launches) note(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch halt := new(HaltError); {
	case err == nil:
		l.refused = 0
	case errors.As(err, &halt):
		l.halt = halt
		return halt
	default:
		if l.refused++; l.refused >= refusedAt {
			l.halt = &HaltError{&event.Fault{What: "go on with the sweep", Node: -1,
				Why:  fmt.Sprintf("%d trials in a row could not be started, the last of them: %v", refusedAt, err),
				Next: "dlwb sweep goes on with all that did not start, after that is mended"}}
		}
	}
	return err
}

// over is why no more can be launched; nil: they can.
func (l *launches) over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halt == nil {
		return nil
	}
	return l.halt
}
