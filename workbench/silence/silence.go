// Package silence tells what a step waits for when nothing was heard of it for a while.
package silence

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/workbench/event"
)

// most is how long a step may be silent before it is told what it waits for. It is
// less than waits.Every: who prints the events has nothing to add.
const most = 12 * time.Second

// LastStep is when the steps were last heard of.
type LastStep struct{ at atomic.Int64 }

// Note notes an event that tells of a step.
func (l *LastStep) Note(b event.Body) {
	switch b.(type) {
	case event.StepStarted, event.StepProgress, event.StepEnded:
		l.at.Store(time.Now().UnixNano())
	}
}

// Tell tells what a step waits for, whenever nothing was heard of it for a while,
// until quiet is called.
func (l *LastStep) Tell(ctx context.Context, tell func(text string)) (quiet func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // what is finished after an interruption is told of, too
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		waits.Tell(ctx, most, func() time.Time { return time.Unix(0, l.at.Load()) }, func(wait waits.Wait, more int) {
			text := wait.String()
			if more > 0 {
				text += fmt.Sprintf(" (and %d more)", more)
			}
			tell(text)
		})
	}()
	return func() {
		cancel()
		<-ended
	}
}
