package remote

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// stream is a command whose output is read as it comes, for as long as
// somebody listens. The command must end when its stdin does.
type stream struct {
	n      *Node
	call   *wire.Stream
	link   *link
	chunks chan []byte   // each is valid until the next one is taken
	quit   chan struct{} // closed when nobody listens any more
	ended  chan struct{} // closed when the command is over
	err    error         // how it ended; valid after ended
	once   sync.Once
}

// exitError is a command's exit that was not good.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// stream starts a command.
func (n *Node) stream(ctx context.Context, line string, stderr io.Writer) (*stream, error) {
	call, l, err := n.callOn(ctx, wire.Exec, wire.ExecRequest{Line: line, Input: true})
	if err != nil {
		return nil, err
	}
	st := &stream{
		n: n, call: call, link: l, chunks: make(chan []byte),
		quit: make(chan struct{}), ended: make(chan struct{}),
	}
	go st.pump(line, stderr)
	return st, nil
}

// pump hands the output over.
func (st *stream) pump(line string, stderr io.Writer) {
	defer close(st.ended)
	for {
		var m wire.ExecOutput
		if err := st.call.Recv(&m); err != nil {
			st.err = st.n.callError(fmt.Sprintf("run %q", brief(line)), st.link, err)
			return
		}
		_, _ = stderr.Write(m.Err)
		if m.Exit != nil {
			if m.Exit.Code != 0 {
				st.err = &exitError{m.Exit.Code}
			}
			return
		}
		if len(m.Out) > 0 {
			select {
			case st.chunks <- m.Out:
			case <-st.quit:
				return
			}
		}
	}
}

// each calls f with each piece of output, until the stream ends, ctx ends, f
// returns an error, or stop is closed. over tells whether the stream ended by
// itself; err then is how.
func (st *stream) each(ctx context.Context, stop <-chan struct{}, f func(p []byte) error) (over bool, err error) {
	defer st.leave()
	for {
		select {
		case p := <-st.chunks:
			if err := f(p); err != nil {
				return false, err
			}
		case <-st.ended:
			return true, st.err
		case <-stop:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// leave ends the command. It does not wait for that.
func (st *stream) leave() {
	st.once.Do(func() {
		close(st.quit)
		st.call.Reset()
	})
}

// say sends the command a line with a number.
func (st *stream) say(n int64) error {
	return st.call.Send(wire.ExecInput{Data: fmt.Appendln(nil, n)})
}

// sleepBackoff pauses before the given try; it reports false when ctx ended.
func sleepBackoff(ctx context.Context, try int) bool {
	pause := min(backoffMost, backoffLeast<<min(try, 10))
	select {
	case <-time.After(pause/2 + rand.N(pause/2+1)):
		return true
	case <-ctx.Done():
		return false
	}
}
