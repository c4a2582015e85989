package job

import (
	"sync"
	"time"
)

// Pace says how often telemetry is wanted. One may serve many replicas.
type Pace struct {
	mu      sync.Mutex
	every   time.Duration
	changed chan struct{} // closed and replaced when every changes
}

// NewPace begins with a frame each second.
func NewPace() *Pace {
	return &Pace{every: time.Second, changed: make(chan struct{})}
}

// Set asks for a frame in every so much time, from 1 s to 10 s in whole
// seconds, from now on. The streams stay as they are.
func (p *Pace) Set(every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every = min(max(every.Round(time.Second), time.Second), 10*time.Second)
	if every != p.every {
		p.every = every
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// Now is the present pace; changed is closed when there is another one.
func (p *Pace) Now() (every time.Duration, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.every, p.changed
}
