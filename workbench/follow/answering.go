package follow

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/waits"
)

const (
	// answerWait is how long a replica has to answer where others do, before what
	// can be reached is ended without it.
	answerWait = 3 * time.Second
	// firstAnswerWait is how long the first one has.
	firstAnswerWait = 15 * time.Second
	// answerPause is the pause before one is asked again whose answer was an error.
	answerPause = time.Second
)

// Silent asks each replica of a run whether it is there, and says which do not
// answer. That proves nothing of them: it says what is not waited for.
func Silent(ctx context.Context, replicas []job.Replica) []bool {
	ctx, cancel := context.WithTimeout(ctx, firstAnswerWait)
	defer cancel()
	silent := slices.Repeat([]bool{true}, len(replicas))
	answers := make(chan int, len(replicas))
	for i, r := range replicas {
		go func() {
			for { // one call that fails is no silence
				_, err := r.State(ctx)
				if err == nil {
					answers <- i
					return
				}
				slog.Debug("asked whether a replica is there", "replica", i, "error", err)
				if waits.Pause(ctx, answerPause) != nil {
					return
				}
			}
		}()
	}
	var late <-chan time.Time
	began := time.Now()
	for range replicas {
		select {
		case i := <-answers:
			silent[i] = false
			if late == nil {
				late = time.After(max(answerWait-time.Since(began), answerWait/4))
			}
		case <-late:
			return silent
		case <-ctx.Done():
			return silent
		}
	}
	return silent
}
