package remote

import (
	"context"
	"errors"
	"io"

	"github.com/dlwb/dlwb/remote/wire"
)

// listen calls a service that goes on telling, and hands over what it tells
// until ctx ends, take fails, or the service ends: io.EOF where it does so well.
// say, unless it is nil, may tell it more until done is closed.
func listen[M any](ctx context.Context, n *Node, service string, request any,
	say func(st *wire.Stream, done <-chan struct{}), take func(M) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, l, err := n.callOn(ctx, service, request)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, st.Reset)()
	defer st.Reset()
	if say != nil {
		go say(st, ctx.Done())
	}
	for {
		var m M
		switch err := st.Recv(&m); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return err
		case err != nil:
			return n.callError(service, l, err)
		}
		if err := take(m); err != nil {
			return &takeError{err}
		}
	}
}

// keepListening listens again where the connection is lost, until ctx ends, or
// with an error that a new connection can't mend. once tells whether anything
// came.
func (n *Node) keepListening(ctx context.Context, what string, once func() (got bool, err error)) error {
	for try := 0; ; try++ {
		got, err := once()
		var took *takeError
		switch {
		case errors.As(err, &took):
			return took.error
		case ctx.Err() != nil:
			return n.wrap(what, context.Cause(ctx))
		case !errors.Is(err, io.EOF) && !isTransport(err) && !n.shutOut(err):
			return n.wrap(what, err)
		case got:
			try = 0
		}
		if !n.Rest(ctx, try) {
			return n.wrap(what, context.Cause(ctx))
		}
	}
}

// shutOut reports whether an error is that of a login which worked before: it may again.
func (n *Node) shutOut(err error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.met && errors.As(err, new(*AuthError))
}

// isTransport reports whether a later connection may do better.
func isTransport(err error) bool {
	var unreachable *UnreachableError
	var lost *LostError
	return errors.As(err, &unreachable) || errors.As(err, &lost)
}
