package ec2

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/waits"
)

// fewestTries is how often something is tried at least, however long that takes:
// a laptop that slept has lost its time, and not its tries.
const fewestTries = 4

// deadline is when to give up: not before a time, nor before some tries.
type deadline struct {
	at    time.Time
	tries int
}

func deadlineIn(d time.Duration) *deadline { return &deadline{at: time.Now().Add(d)} }

// over counts a try, and reports whether it was the last one.
func (d *deadline) over() bool {
	d.tries++
	return d.tries >= fewestTries && time.Now().After(d.at)
}

// backoff are pauses that grow from one poll to a few, for as long as the
// settle window.
type backoff struct {
	*deadline
	poll time.Duration
}

func (p *Provider) backoff() backoff { return backoff{deadlineIn(p.settle), p.poll()} }

// longestPause is how many polls one pause of a backoff lasts at most.
const longestPause = 5

// wait makes the next pause; it is false when it is time to give up.
func (b backoff) wait(ctx context.Context) bool {
	return !b.over() && waits.Pause(ctx, time.Duration(min(b.tries, longestPause))*b.poll) == nil
}

// insist makes a call that does no harm when it is made twice, until AWS has
// answered it: again after an answer that leaves it open, after too many calls,
// and while what it needs is not yet seen everywhere. What an endpoint does not
// serve is not asked again.
func (p *Provider) insist(ctx context.Context, call awsapi.Call, send func() error) error {
	b := p.backoff()
	for {
		problem := awsapi.Explain(send(), call)
		if problem == nil {
			return nil
		}
		switch problem.Kind {
		case awsapi.Unknown, awsapi.Throttled, awsapi.NotFound, awsapi.Unreachable:
		default:
			return problem
		}
		if awsapi.Unserved(problem) || !b.wait(ctx) {
			if ctx.Err() != nil {
				return fmt.Errorf("%w (%w)", problem, ctx.Err())
			}
			return problem
		}
	}
}

// is reports whether an error is a problem of a kind.
func is(err error, kind awsapi.Kind) bool {
	var p *awsapi.Problem
	return errors.As(err, &p) && p.Kind == kind
}
