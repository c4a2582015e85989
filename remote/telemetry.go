package remote

import (
	"context"
	"time"

	"github.com/dlwb/dlwb/internal/job"
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
func (n *Node) Telemetry(ctx context.Context, iface string, pace *job.Pace, sink func(frame []byte)) error {
	if pace == nil {
		pace = job.NewPace()
	}
	room := allowance{left: burstMost, at: time.Now()}
	return n.keepListening(ctx, "read telemetry", func() (got bool, err error) {
		every, changed := pace.Now()
		tell := func(st *wire.Stream, done <-chan struct{}) { tellPace(pace, st, changed, done) }
		err = listen(ctx, n, wire.Telemetry, wire.TelemetryRequest{Interface: iface, Pace: paceOf(every)}, tell, func(frame wire.TelemetryFrame) error {
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

// paceOf is a pace as the wire has it.
func paceOf(every time.Duration) wire.TelemetryPace { return wire.TelemetryPace(every / time.Second) }

// tellPace tells a stream each change of the pace.
func tellPace(pace *job.Pace, st *wire.Stream, changed, done <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-done:
			return
		}
		var every time.Duration
		if every, changed = pace.Now(); st.Send(paceOf(every)) != nil {
			return
		}
	}
}
