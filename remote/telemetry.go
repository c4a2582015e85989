package remote

import (
	"context"
	"sync"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// frameMost bounds one frame; a real one has a line for each GPU.
const frameMost = 256 << 10

// A node tells one frame a second at most. burstMost may come at once, as after a
// gap in the connection; of more, framesPerSecond are read.
const (
	burstMost       = 120
	framesPerSecond = 2
)

// Telemetry hands over the node's telemetry, one whole frame ("frame …" to
// "end") at a time, about one each second. It survives reconnects and ends with
// ctx, or with an error that a new connection can't mend. An empty iface means
// all interfaces. pace asks for more or fewer frames at any time; nil: one each
// second. sink must not keep its argument.
func (n *Node) Telemetry(ctx context.Context, iface string, pace *Pace, sink func(frame []byte)) error {
	if pace == nil {
		pace = NewPace()
	}
	room := allowance{left: burstMost, at: time.Now()}
	return n.keepListening(ctx, "read telemetry", func() (got bool, err error) {
		every, changed := pace.now()
		tell := func(st *wire.Stream, done <-chan struct{}) { pace.tell(st, changed, done) }
		err = listen(ctx, n, wire.Telemetry, wire.TelemetryRequest{Interface: iface, Pace: every}, tell, func(frame wire.TelemetryFrame) error {
			if len(frame) > frameMost {
				return wire.Brokenf("a frame of telemetry has %d bytes", len(frame))
			}
			got = true
			sink(frame)
			room.wait(ctx)
			return nil
		})
		return got, err
	})
}

// allowance is how many frames may be read now.
type allowance struct {
	left float64
	at   time.Time // when left was so much
}

// wait takes one, and waits where there is none: meanwhile the node has to wait.
func (a *allowance) wait(ctx context.Context) {
	now := time.Now()
	a.left, a.at = min(burstMost, a.left+now.Sub(a.at).Seconds()*framesPerSecond)-1, now
	if a.left >= 0 {
		return
	}
	select {
	case <-time.After(time.Second / framesPerSecond):
	case <-ctx.Done():
	}
}

// Pace says how often telemetry is wanted. One may serve many nodes.
type Pace struct {
	mu      sync.Mutex
	every   wire.TelemetryPace
	changed chan struct{} // closed and replaced when every changes
}

// NewPace begins with a frame each second.
func NewPace() *Pace {
	return &Pace{every: 1, changed: make(chan struct{})}
}

// Set asks for a frame in every so much time, from 1 s to 10 s in whole
// seconds, from now on. The streams stay as they are.
func (p *Pace) Set(every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seconds := wire.TelemetryPace(min(max(every.Round(time.Second), time.Second), 10*time.Second) / time.Second)
	if seconds != p.every {
		p.every = seconds
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

func (p *Pace) now() (every wire.TelemetryPace, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.every, p.changed
}

// tell tells a stream each change of the pace.
func (p *Pace) tell(st *wire.Stream, changed, done <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-done:
			return
		}
		var every wire.TelemetryPace
		if every, changed = p.now(); st.Send(every) != nil {
			return
		}
	}
}
