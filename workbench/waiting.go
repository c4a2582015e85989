package workbench

import (
	"context"

	"github.com/dlwb/dlwb/workbench/event"
)

// tellWaits tells what a step waits for, whenever nothing was heard of it for a
// while, until quiet is called.
func (w *Workbench) tellWaits(ctx context.Context, s scope, step string) (quiet func()) {
	return w.said.Tell(ctx, func(text string) {
		_ = w.publish(s, event.StepProgress{Step: step, Node: -1, Text: text})
	})
}
