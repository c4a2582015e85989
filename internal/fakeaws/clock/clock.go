// Package clock is a clock that runs faster or slower than the real one.
package clock

import (
	"sync"
	"time"
)

// Clock is the virtual one: the real time since the start, faster or slower,
// and every advance.
type Clock struct {
	speed float64
	start time.Time

	mu      sync.Mutex
	ahead   time.Duration
	changed chan struct{} // closed at the next advance
}

// New is a clock that starts now.
func New(speed float64) *Clock {
	return &Clock{speed: speed, start: time.Now(), changed: make(chan struct{})}
}

// Now is the virtual time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.start.Add(time.Duration(float64(time.Since(c.start))*c.speed) + c.ahead)
}

// Advance moves the clock forward at once.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	close(c.changed)
	c.changed = make(chan struct{})
}

// Wait returns true at the virtual time t, and false when done is closed
// before.
func (c *Clock) Wait(t time.Time, done <-chan struct{}) bool {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		left := t.Sub(c.Now())
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
