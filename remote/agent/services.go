//go:build linux

package agent

import (
	"context"

	"github.com/dlwb/dlwb/remote/agent/outlet"
	"github.com/dlwb/dlwb/remote/agent/telemetry"
	"github.com/dlwb/dlwb/remote/wire"
)

// handler does one call. It receives the request first; what it returns ends
// the call. ctx ends with the connection.
type handler func(ctx context.Context, s *wire.Stream) error

// services are what can be called over a connection.
var services = map[string]handler{
	wire.Aside:      answer(outlet.Aside),
	wire.DialPort:   dialPort,
	wire.Exec:       execute,
	wire.Facts:      answer(telemetry.Facts),
	wire.Fetch:      outlet.Fetch,
	wire.FetchPort:  fetchPort,
	wire.Files:      telling(watchFiles),
	wire.Follow:     telling(followFile),
	wire.Install:    answer(install),
	wire.Launch:     answer(launch),
	wire.List:       outlet.List,
	wire.ListenPort: listenPort,
	wire.Pair:       answer(pair),
	wire.Put:        outlet.Put,
	wire.State:      answer(state),
	wire.Stop:       answer(stopRun),
	wire.Telemetry:  watchNode,
	wire.Uninstall:  answer(uninstall),
	wire.Give:       answer(giveDir),
	wire.Sync:       syncDir,
	wire.Take:       takeDir,
}

// answer makes a handler of a service with one request and one answer.
func answer[Request, Answer any](do func(ctx context.Context, r Request) (Answer, error)) handler {
	return telling(func(ctx context.Context, r Request, s *wire.Stream) error {
		a, err := do(ctx, r)
		if err != nil {
			return err
		}
		return s.Send(a)
	})
}

// telling makes a handler of a service that goes on telling until its caller has
// enough.
func telling[Request any](do func(ctx context.Context, r Request, s *wire.Stream) error) handler {
	return func(ctx context.Context, s *wire.Stream) error {
		var r Request
		if err := s.Recv(&r); err != nil {
			return err
		}
		ctx, cancel := s.Gone(ctx)
		defer cancel()
		return do(ctx, r, s)
	}
}
