package ownssh

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// tryLimit is how long ssh has for a first word from there.
	tryLimit = 20 * time.Second
	// refusedPause is how long no login is tried where one was refused, unless there is
	// another connection that ssh keeps: sites lock out who tries again and again.
	refusedPause = 5 * time.Minute
)

// refusals are the latest refused logins, and direct the machines that are reached
// without the connection that ssh keeps, which is dead; both by the way.
var refusals, direct sync.Map

// refusal is a login that was refused: it would be again until another process keeps a
// connection.
type refusal struct {
	err    *Error
	master string // who kept one, which was dead; empty: nobody did
}

// Try gets to the machine and back, at most for a limit; 0: for as long as is usual.
// Where a login was refused, it is not tried again at once.
func (w Way) Try(ctx context.Context, limit time.Duration) error {
	if before, is := refusals.Load(w); is {
		if r := before.(refusal); time.Since(r.err.Refused) < refusedPause && w.Master(ctx) == r.master {
			return r.err
		}
		refusals.Delete(w)
	}
	if limit <= 0 {
		limit = tryLimit
	}
	if by, is := direct.Load(w); is && w.Master(ctx) != by {
		direct.Delete(w)
	}
	err := w.once(ctx, limit)
	if !errors.Is(err, errSilent) {
		return err
	}
	master := w.Master(ctx)
	if _, is := direct.Load(w); is || master == "" {
		return w.silent(limit)
	}
	// The machine may be away, or the connection dead: a new one tells.
	direct.Store(w, master)
	switch err = w.once(ctx, limit); {
	case errors.Is(err, errSilent):
		direct.Delete(w)
		return w.silent(limit)
	case err != nil:
		direct.Delete(w)
		return w.dead(err, master)
	}
	return nil
}

var errSilent = errors.New("no answer")

// errHeard ends a try whose machine has said something.
var errHeard = errors.New("it has answered")

// lastWait is how long a session that has said something may take to end. One whose
// shell has left a program in the background does not end.
const lastWait = 500 * time.Millisecond

// word calls a function when something is written to it.
type word func()

// Write takes it as the first word, or one more.
func (w word) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

// once runs a command there; errSilent: nothing came of it.
func (w Way) once(ctx context.Context, limit time.Duration) error {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	heard, end := context.WithCancelCause(within)
	defer end(nil)
	first := sync.OnceFunc(func() { time.AfterFunc(lastWait, func() { end(errHeard) }) })
	_, err := w.Run(heard, "echo", nil, word(first), io.Discard) // whatever a shell there makes of that
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(context.Cause(heard), errHeard):
		return nil
	case within.Err() != nil:
		return errSilent
	}
	return err
}
