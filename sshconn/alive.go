package sshconn

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/sshconn/wake"
)

const (
	// wakeLimit is how long a connection has to answer after this machine was
	// asleep, or its network has changed.
	wakeLimit = 5 * time.Second
	// movedLimit is that limit for a connection from an address that this machine
	// does not have any more.
	movedLimit = 2 * time.Second
)

// KeepAlive asks the other end for an answer now and then, and at once when this
// machine was asleep or has other addresses, until the connection ends. One that
// does not answer is ended.
func (c *Conn) KeepAlive() {
	woken, enough := wake.Subscribe()
	defer enough()
	for {
		limit := c.bounds.Answer
		select {
		case <-c.over:
			return
		case <-time.After(c.bounds.Every):
		case <-woken:
			limit = min(limit, wakeLimit)
			if wake.Moved(c.conn) {
				limit = min(limit, movedLimit)
			}
		}
		answered := c.Ping()
		if !c.answeredIn(answered, woken, limit) {
			c.GiveUp(fmt.Errorf("no answer within %v", limit))
		}
		select {
		case <-answered:
		case <-c.over:
			return
		}
	}
}

// answeredIn waits for an answer, or for the connection's end. Whoever wakes up in
// between waits anew, and not for long: an answer may have come in the sleep.
func (c *Conn) answeredIn(answered, woken <-chan struct{}, limit time.Duration) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		select {
		case <-answered:
			return true
		case <-c.over:
			return true
		case <-woken:
			late.Reset(min(limit, wakeLimit))
		case <-late.C:
			return false
		}
	}
}

// Heard is when the other end was last heard, by the clock on the wall: it goes
// on while this machine sleeps.
func (c *Conn) Heard() time.Time { return time.Unix(0, c.heard.at.Load()) }

// heard is a connection that knows when the other end was last heard.
type heard struct {
	net.Conn
	at atomic.Int64
}

func (h *heard) Read(p []byte) (int, error) {
	k, err := h.Conn.Read(p)
	if k > 0 {
		h.at.Store(time.Now().UnixNano())
	}
	return k, err
}
