package wire

import "time"

// Telemetry tells what a node is doing, in frames of text as package metrics
// reads them. The request is a TelemetryRequest; a TelemetryFrame follows now and
// then. The caller may send a TelemetryPace at any time.
const Telemetry = "telemetry"

// TelemetryRequest begins a stream.
type TelemetryRequest struct {
	Interface string        `cbor:"i,omitempty"` // of the network; empty: all
	Pace      TelemetryPace `cbor:"p"`
}

// TelemetryPace is how many seconds there are from a frame to the next.
type TelemetryPace int

// Duration is the pace as a time, an hour at most.
func (p TelemetryPace) Duration() time.Duration {
	return time.Duration(min(max(p, 0), 3600)) * time.Second
}

// TelemetryFrame is one frame.
type TelemetryFrame []byte
