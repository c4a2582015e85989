package remote

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// chunkMost is the most that a stream hands over at once.
	chunkMost = 64 << 10
	// leaveGrace is how long a stream's command has to end after its stdin did.
	leaveGrace = 2 * time.Second
)

// stream is a command whose output is read as it comes, for as long as
// somebody listens. The command must end when its stdin does.
type stream struct {
	s      *session
	saying sync.Mutex // held while stdin is used: its end may be told at any time
	stdin  io.WriteCloser
	stdout io.Reader
	chunks chan []byte   // each is valid until the next one is taken
	quit   chan struct{} // closed when nobody listens any more
	ended  chan struct{} // closed when the session is over
	err    error         // how it ended, as Session.Wait tells it; valid after ended
	once   sync.Once
}

// stream starts a command. Nothing here waits for the node: a dead link shows
// as the stream's end, or as nothing until ctx of each ends.
func (n *Node) stream(ctx context.Context, line string, stderr io.Writer) (*stream, error) {
	s, err := n.session(ctx, true)
	if err != nil {
		return nil, err
	}
	st := &stream{
		s: s, chunks: make(chan []byte),
		quit: make(chan struct{}), ended: make(chan struct{}),
	}
	s.Stderr(stderr)
	if st.stdin, err = s.StdinPipe(); err == nil {
		st.stdout, err = s.StdoutPipe()
	}
	if err != nil {
		s.free()
		return nil, n.wrap(fmt.Sprintf("run %q", brief(line)), err)
	}
	go st.pump(line)
	return st, nil
}

// pump runs the command and hands its output over.
func (st *stream) pump(line string) {
	defer close(st.ended)
	defer st.s.free()
	// Start has its bound, and all of it ends with the connection.
	if st.err = st.s.Start(context.Background(), line); st.err != nil {
		return
	}
	st.copy()
	st.err = st.s.Wait(context.Background())
}

// copy uses two buffers in turn: while one is being used by the listener, the
// other one is being filled.
func (st *stream) copy() {
	bufs := [2][]byte{make([]byte, chunkMost), make([]byte, chunkMost)}
	for i := 0; ; i ^= 1 {
		k, err := st.stdout.Read(bufs[i])
		if k > 0 {
			select {
			case st.chunks <- bufs[i][:k]:
			case <-st.quit:
				_, _ = io.Copy(io.Discard, st.stdout)
				return
			}
		}
		if err != nil {
			return
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

// leave ends the command by the end of its stdin, and its session some time
// later in any case. It does not wait for that.
func (st *stream) leave() {
	st.once.Do(func() {
		close(st.quit)
		go func() {
			st.saying.Lock() // what is being said may be stuck on a dead link
			defer st.saying.Unlock()
			_ = st.stdin.Close()
		}()
		go func() {
			select {
			case <-st.ended:
			case <-time.After(leaveGrace):
				st.s.free()
			}
		}()
	})
}

// say sends the command a line with a number. A write to a dead link blocks
// until that is closed.
func (st *stream) say(n int64) error {
	st.saying.Lock()
	defer st.saying.Unlock()
	_, err := fmt.Fprintln(st.stdin, n)
	return err
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
