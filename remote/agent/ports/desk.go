package ports

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

const (
	// waitMost is how many connections of one port wait to be fetched; what
	// comes then waits in the kernel.
	waitMost = 64
	// fetchLimit is how long one waits.
	fetchLimit = 15 * time.Second
	// acceptPause is how long accepting rests after an error that passes, as when
	// there are too many open files.
	acceptPause = 100 * time.Millisecond
)

// Desk keeps what has connected to a port until it is fetched by its number.
// Only the caller opens streams: an agent that could would have to be bounded.
type Desk struct {
	mu      sync.Mutex
	waiting map[uint64]*guest
}

// guest is a connection that waits.
type guest struct {
	conn  *net.TCPConn
	leave func() // makes room for another one; called once
	late  *time.Timer
}

// NewDesk returns a desk at which nobody waits.
func NewDesk() *Desk { return &Desk{waiting: map[uint64]*guest{}} }

// Receive announces each connection to a listener until ctx ends, or an
// announcement fails. It closes the listener, and what nobody has fetched.
func (d *Desk) Receive(ctx context.Context, l *net.TCPListener, announce func(number uint64) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer l.Close()
	context.AfterFunc(ctx, func() { _ = l.Close() })
	room := make(chan struct{}, waitMost)
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		conn, err := accept(ctx, l)
		if err != nil {
			return err
		}
		if err := announce(d.admit(ctx, conn, func() { <-room })); err != nil {
			return err
		}
	}
}

// accept waits for a connection. Errors that pass are not told.
func accept(ctx context.Context, l *net.TCPListener) (*net.TCPConn, error) {
	for {
		conn, err := l.AcceptTCP()
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, net.ErrClosed):
			return nil, err
		}
		select {
		case <-time.After(acceptPause):
		case <-ctx.Done():
		}
	}
}

// admit has a connection wait under a number that nobody guesses: one of an
// earlier agent's must not lead to another port's.
func (d *Desk) admit(ctx context.Context, conn *net.TCPConn, leave func()) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	number := rand.Uint64()
	for d.waiting[number] != nil {
		number++
	}
	drop := func() {
		if late := d.Fetch(number); late != nil {
			_ = late.Close()
		}
	}
	stop := context.AfterFunc(ctx, drop)
	d.waiting[number] = &guest{conn: conn, leave: func() { stop(); leave() }, late: time.AfterFunc(fetchLimit, drop)}
	return number
}

// Fetch gives the connection that waits under a number; nil: none does.
func (d *Desk) Fetch(number uint64) *net.TCPConn {
	d.mu.Lock()
	g := d.waiting[number]
	delete(d.waiting, number)
	d.mu.Unlock()
	if g == nil {
		return nil
	}
	g.late.Stop()
	g.leave()
	return g.conn
}
