//go:build linux

package agent

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote/agent/follow"
	"github.com/dlwb/dlwb/remote/agent/metricfiles"
	"github.com/dlwb/dlwb/remote/agent/telemetry"
	"github.com/dlwb/dlwb/remote/wire"
)

// watchNode is the service Telemetry.
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

// followFile is the service Follow.
func followFile(ctx context.Context, s *wire.Stream) error {
	var r wire.FollowRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	if r.Path == "" || r.From < 0 || r.Segment < 0 || r.Segment > wire.SegmentMost {
		return wire.Faultf(wire.Wrong, "nothing can be followed as %+v", r)
	}
	ctx, cancel := s.Gone(ctx)
	defer cancel()
	f := follow.Reader{Path: atHome(r.Path), Offset: r.From, Segment: r.Segment}
	f.Data = func(p []byte) error { return s.Send(wire.FollowNews{Data: p}) }
	f.Dropped = func(to int64) error { return s.Send(wire.FollowNews{Dropped: to}) }
	err := f.Follow(ctx)
	if errors.Is(err, follow.ErrTruncated) {
		return wire.Faultf(wire.Truncated, "%v", err)
	}
	return err
}

// watchFiles is the service Files.
func watchFiles(ctx context.Context, s *wire.Stream) error {
	var r wire.FilesRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	ctx, cancel := s.Gone(ctx)
	defer cancel()
	r.Mark = atHome(r.Mark)
	return metricfiles.Watch(ctx, r, func(n wire.FilesNews) error { return s.Send(n) })
}

// facts is the service Facts.
func facts(ctx context.Context, _ wire.FactsRequest) (wire.NodeFacts, error) {
	return telemetry.Facts(ctx), nil
}

// atHome is a path that begins in the home directory where it is relative.
func atHome(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return strings.TrimSuffix(home(), "/") + "/" + path
}
