//go:build linux

package agent

import (
	"context"
	"errors"
	"time"

	"github.com/dlwb/dlwb/remote/agent/follow"
	"github.com/dlwb/dlwb/remote/agent/metricfiles"
	"github.com/dlwb/dlwb/remote/agent/telemetry"
	"github.com/dlwb/dlwb/remote/wire"
)

// Relative paths begin in the home directory, which serve has gone to.

func watchNode(ctx context.Context, s *wire.Stream) error {
	var r wire.TelemetryRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pace := make(chan time.Duration)
	go func() {
		defer cancel()
		for p := wire.TelemetryPace(0); s.Recv(&p) == nil; {
			select {
			case pace <- p.Duration():
			case <-ctx.Done():
				return
			}
		}
	}()
	return telemetry.Watch(ctx, r.Interface, r.Pace.Duration(), pace, func(frame []byte) error {
		return s.Send(wire.TelemetryFrame(frame))
	})
}

func followFile(ctx context.Context, r wire.FollowRequest, s *wire.Stream) error {
	if r.Path == "" || r.From < 0 || r.Segment < 0 || r.Segment > wire.SegmentMost {
		return wire.Faultf(wire.Wrong, "nothing can be followed as %+v", r)
	}
	err := (&follow.Reader{Path: r.Path, Offset: r.From, Segment: r.Segment,
		Data:    func(p []byte) error { return s.Send(wire.FollowNews{Data: p}) },
		Dropped: func(to int64) error { return s.Send(wire.FollowNews{Dropped: to}) },
	}).Follow(ctx)
	if errors.Is(err, follow.ErrTruncated) {
		return wire.Faultf(wire.Truncated, "%v", err)
	}
	return err
}

func watchFiles(ctx context.Context, r wire.FilesRequest, s *wire.Stream) error {
	return metricfiles.Watch(ctx, r, func(n wire.FilesNews) error { return s.Send(n) })
}
