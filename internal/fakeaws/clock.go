package fakeaws

import (
	"sync"
	"time"
)

// clock is the virtual one: the real time since the start, faster or slower,
// and every advance.
type clock struct {
	speed float64
	start time.Time

	mu      sync.Mutex
	ahead   time.Duration
	changed chan struct{} // closed at the next advance
}

func newClock(speed float64) *clock {
	return &clock{speed: speed, start: time.Now(), changed: make(chan struct{})}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.start.Add(time.Duration(float64(time.Since(c.start))*c.speed) + c.ahead)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	close(c.changed)
	c.changed = make(chan struct{})
}

// wait returns true at the virtual time t, and false when done is closed
// before.
func (c *clock) wait(t time.Time, done <-chan struct{}) bool {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		left := t.Sub(c.now())
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(time.Duration(float64(left)/c.speed) + time.Microsecond)
		select {
		case <-timer.C:
		case <-changed:
			timer.Stop()
		case <-done:
			timer.Stop()
			return false
		}
	}
}

// Now is the virtual time.
func (s *Server) Now() time.Time { return s.clock.now() }

// Advance moves the virtual clock forward at once.
func (s *Server) Advance(d time.Duration) { s.clock.advance(d) }
