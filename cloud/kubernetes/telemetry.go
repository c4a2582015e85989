package kubernetes

import (
	"context"
	_ "embed" // the script
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/job"
)

//go:embed telemetry.sh
var telemetrySh string

// Telemetry asks the pod again and again: each time a script prints one frame.
func (r *replica) Telemetry(ctx context.Context, pace *job.Pace, sink func(frame []byte)) error {
	for {
		every, changed := pace.Now()
		every = max(every, leastEvery)
		began := time.Now()
		ask, cancel := context.WithTimeout(ctx, telemetryLimit)
		frame, err := r.Output(ask, fmt.Sprintf("every=%d\n%s", int(every.Seconds()), telemetrySh))
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case permanent(err):
			return err
		case err == nil && len(frame) > 0:
			sink(frame)
		}
		select {
		case <-time.After(max(every-time.Since(began), 200*time.Millisecond)):
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const (
	// leastEvery spares the API server: each frame is a command that it passes on.
	leastEvery = 3 * time.Second
	// telemetryLimit bounds one frame: nvidia-smi hangs with a driver that is
	// wedged.
	telemetryLimit = 15 * time.Second
)
