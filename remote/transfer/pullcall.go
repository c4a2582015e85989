package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/remote/wire/bulk"
)

const (
	// answerLimit is how long a node may be silent while it reads files.
	answerLimit = 10 * time.Minute
	// pullPatience is for how long a connection that was lost is tried to be had
	// again, where the rules of a Pull don't say.
	pullPatience = 45 * time.Second
)

// caller is what a Pull and a Put need of a *remote.Node; tests have others.
type caller interface {
	Name() string
	Call(ctx context.Context, service string, request any) (st *wire.Stream, blame func(error) error, err error)
	Ask(ctx context.Context, service string, request, answer any) error
	Rest(ctx context.Context, try int) bool
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// patientCall is a call that is given up when nothing comes for too long.
type patientCall struct{ *wire.Stream }

func (c patientCall) Recv(v any) error { return c.wait(func() error { return c.Stream.Recv(v) }) }

// Raw is the stream's, with the same patience.
func (c patientCall) Raw() io.ReadWriter {
	raw := c.Stream.Raw()
	return struct {
		io.Reader
		io.Writer
	}{readFunc(func(p []byte) (n int, err error) {
		err = c.wait(func() error { n, err = raw.Read(p); return err })
		return n, err
	}), raw}
}

func (c patientCall) wait(do func() error) error {
	late := time.AfterFunc(answerLimit, c.Reset)
	err := do()
	if !late.Stop() && err != nil {
		err = wire.Faultf(wire.Failed, "it was silent for %s", units.Duration(answerLimit))
	}
	return err
}

// begin begins a call, which ends with done or the context.
func begin(ctx context.Context, n caller, service string, request any) (c patientCall, done func(), err error) {
	s, _, err := n.Call(ctx, service, request)
	if err != nil {
		return c, nil, err
	}
	stop := context.AfterFunc(ctx, s.Reset)
	waited := waits.Begin(waits.Wait{On: n.Name(), What: "to answer " + service})
	return patientCall{s}, func() { stop(); waited(); s.Reset() }, nil
}

func (p *puller) begin(ctx context.Context, service string, request any) (patientCall, func(), error) {
	c, done, err := begin(ctx, p.node, service, request)
	p.met = p.met || err == nil
	return c, done, err
}

// persist does something again when the connection is lost on the way. A node
// that never answered is not waited for.
func (p *puller) persist(ctx context.Context, do func() error) error {
	patience := p.rules.Patience
	if patience <= 0 {
		patience = pullPatience
	}
	return persist(ctx, p.node, &p.met, &p.moved, patience, do)
}

func persist(ctx context.Context, n caller, met *bool, moved *int64, patience time.Duration, do func() error) error {
	since, was := time.Now(), *moved
	for try := 1; ; try++ {
		err := do()
		if ctx.Err() != nil && err != nil {
			return context.Cause(ctx)
		}
		if err == nil || !*met || !isCut(err) {
			return err
		}
		if *moved != was {
			since, was, try = time.Now(), *moved, 1
		}
		if time.Since(since) > patience || !n.Rest(ctx, try) {
			return fmt.Errorf("%w; it was tried again for %s", err, units.Duration(time.Since(since)))
		}
	}
}

// isCut reports whether the connection is to blame, and may come back.
func isCut(err error) bool {
	var cut *bulk.LostError
	var lost *remote.LostError
	var away *remote.UnreachableError
	return errors.As(err, &cut) || errors.As(err, &lost) || errors.As(err, &away)
}
