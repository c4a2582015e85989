// Package duplex carries what comes on one connection to another one and back.
// Each direction has an end of its own: a client that has sent its request says
// so and goes on to read the answer.
package duplex

import (
	"context"
	"io"
)

// Conn is an end of what is joined. Its CloseWrite ends what goes to it, its
// Close both directions, at once and without waiting for anybody.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Join carries both directions until both have ended, or ctx has. Then both
// ends are closed. What is cut off, by ctx or because reading from the other end
// failed, is reset where it can be: half a file would look like a whole one.
func Join(ctx context.Context, a, b Conn) {
	defer func() {
		_ = a.Close()
		_ = b.Close()
	}()
	stop := context.AfterFunc(ctx, func() {
		cut(a)
		cut(b)
	})
	defer stop()
	over := make(chan struct{}, 2)
	go half(a, b, over)
	go half(b, a, over)
	for range 2 {
		select {
		case <-over:
		case <-ctx.Done(): // what is closed well first could not be cut any more
			cut(a)
			cut(b)
			return
		}
	}
}

// half carries one direction and passes its end on. After an error nothing more
// can come of either.
func half(to, from Conn, over chan<- struct{}) {
	defer func() { over <- struct{}{} }()
	reading := &reader{from: from}
	if _, err := io.Copy(to, reading); err == nil && to.CloseWrite() == nil {
		return
	}
	if reading.failed {
		cut(to)
	}
	_ = to.Close()
	_ = from.Close()
}

// cut ends a connection in a way that its other end does not take for its end.
func cut(c Conn) {
	if tcp, ok := c.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// reader remembers whether reading failed, or writing did.
type reader struct {
	from   io.Reader
	failed bool
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.failed = err != nil && err != io.EOF
	return n, err
}
