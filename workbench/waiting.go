package workbench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/workbench/event"
)

// stepSilence is how long a step may be silent before it is told what it waits
// for. It is less than waits.Every: who prints the events has nothing to add.
const stepSilence = 12 * time.Second

// lastStep is when the steps were last heard of.
type lastStep struct{ at atomic.Int64 }

// note notes an event that tells of a step.
func (l *lastStep) note(b event.Body) {
	switch b.(type) {
	case event.StepStarted, event.StepProgress, event.StepEnded:
		l.at.Store(time.Now().UnixNano())
	}
}

// tellWaits tells what a step waits for, whenever nothing was heard of it for a
// while, until quiet is called.
func (w *Workbench) tellWaits(ctx context.Context, s scope, step string) (quiet func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // what is finished after an interruption is told of, too
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		waits.Tell(ctx, stepSilence, func() time.Time { return time.Unix(0, w.said.at.Load()) }, func(wait waits.Wait, more int) {
			text := wait.String()
			if more > 0 {
				text += fmt.Sprintf(" (and %d more)", more)
			}
			_ = w.publish(s, event.StepProgress{Step: step, Node: -1, Text: text})
		})
	}()
	return func() {
		cancel()
		<-ended
	}
}
