package cli

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/sanitize"
)

// lastSaid is when a command last said something of what it does.
type lastSaid struct{ at atomic.Int64 }

func (s *lastSaid) now() { s.at.Store(time.Now().UnixNano()) }

func (s *lastSaid) time() time.Time { return time.Unix(0, s.at.Load()) }

// waitingEvent is what --json prints while something is waited for. It is made
// here and stored nowhere, so it is no workbench.Event.
type waitingEvent struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	On    string    `json:"on"`
	For   string    `json:"for"`
	Since time.Time `json:"since"`
	Limit float64   `json:"limit,omitempty"` // seconds
	Then  string    `json:"then,omitempty"`
	More  int       `json:"more,omitempty"` // how many other things are waited for
}

// tellWaits says every 15 s what is waited for, while nothing else is said: on
// stderr, which has no data, or with --json as an event on stdout, where all
// JSON is: an answer is told from it by having no event.
func (a *app) tellWaits(ctx context.Context) {
	waits.Tell(ctx, waits.Every, a.said.time, func(w waits.Wait, more int) {
		switch {
		case a.onScreen.Load():
		case a.json:
			_ = a.encode(waitingEvent{"waiting", timeNow(), w.On, w.What, w.Since.UTC(), w.Limit.Seconds(), w.Then, more})
		default:
			others := ""
			if more > 0 {
				others = fmt.Sprintf(" (and %d more)", more)
			}
			sanitize.Fprintf(a.err, "… %s%s\n", w.String(), others)
		}
	})
}
