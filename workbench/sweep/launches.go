package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
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
	one     chan struct{} // full during a launch
	mu      sync.Mutex
	refused int // in a row
	halt    *HaltError

	full  error         // why there is no room for another; nil: there is, as far as is known
	since time.Time     // from when on there was none; zero: there was
	wait  time.Duration // until it is tried again
}

// do launches one, unless the sweep is at an end.
func (l *launches) do(ctx context.Context, launch func() error) error {
	l.one <- struct{}{}
	defer func() { <-l.one }()
	err := cmp.Or(ctx.Err(), l.over(), l.fullness())
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
	halt, full := new(HaltError), new(cloud.NoRoom)
	switch {
	case err == nil:
		l.refused, l.full, l.since, l.wait = 0, nil, time.Time{}, 0
	case errors.As(err, &full):
		l.full, l.wait = err, min(max(2*l.wait, roomFirst), roomLimit)
		if l.since.IsZero() {
			l.since = time.Now()
		}
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

const (
	// roomFirst is the first wait for room for another trial; each is twice as long as
	// the one before it.
	roomFirst = 10 * time.Second
	// roomLimit is the longest, and for how long there may be no room for any trial.
	roomLimit = 15 * time.Minute
)

// fullness is why there is no room for another trial; nil: there is.
func (l *launches) fullness() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full
}

// later tells when another is to be tried, though none has ended.
func (l *launches) later() <-chan time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full == nil {
		return nil
	}
	return time.After(l.wait)
}

// retry has the next launch tried again; freed says that a trial has ended, which makes
// room.
func (l *launches) retry(freed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full = nil; freed {
		l.since, l.wait = time.Time{}, 0
	}
}

// patience waits for room where none of the trials runs whose end would make some. It
// reports whether another is to be tried; an error: there was no room for too long.
func (l *launches) patience(ctx context.Context) (bool, error) {
	full := l.fullness()
	if full == nil || ctx.Err() != nil {
		return false, nil
	}
	l.mu.Lock()
	late := time.Since(l.since)+l.wait > roomLimit
	l.mu.Unlock()
	if late {
		f := event.FaultOf(full)
		return false, &event.Fault{What: "go on with the sweep", Node: -1, Why: "no trial runs, and there is no room for one: " + f.Why,
			Next: strings.TrimPrefix(f.Next+"; dlwb sweep goes on with the trials that wait", "; ")}
	}
	select {
	case <-l.later():
		l.retry(false)
	case <-ctx.Done():
	}
	return ctx.Err() == nil, nil
}
