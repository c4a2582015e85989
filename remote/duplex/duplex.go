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
// ends are closed. Where reading from one ends with an error, the other end is
// reset if it can be: what came through looks like a whole file otherwise.
func Join(ctx context.Context, a, b Conn) {
	closeBoth := func() {
		_ = a.Close()
		_ = b.Close()
	}
	defer closeBoth()
	stop := context.AfterFunc(ctx, closeBoth)
	defer stop()
	over := make(chan struct{}, 2)
	go half(a, b, over)
	go half(b, a, over)
	for range 2 {
		select {
		case <-over:
		case <-ctx.Done():
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
	if tcp, ok := to.(interface{ SetLinger(seconds int) error }); ok && reading.failed {
		_ = tcp.SetLinger(0)
	}
	_ = to.Close()
	_ = from.Close()
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
