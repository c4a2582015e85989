//go:build !linux

package follow

import (
	"context"
	"os"
	"time"
)

// notifier is nothing here: time passes.
type notifier struct{}

func newNotifier() notifier { return notifier{} }

func (notifier) watch(*os.File) {}
func (notifier) leave()         {}
func (notifier) close()         {}

func (notifier) wait(ctx context.Context, d time.Duration) { pass(ctx, d) }
