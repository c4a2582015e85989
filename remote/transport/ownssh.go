package transport

import (
	"context"

	"github.com/dlwb/dlwb/internal/ownssh"
)

// SSH is a machine by the user's own ssh, which keeps the connection. It is open when
// ssh has got there and back, and ends when a command there ends because ssh does.
func SSH(way ownssh.Way) Opener {
	return func(ctx context.Context) (Machine, error) {
		if err := way.Try(ctx, 0); err != nil {
			return nil, err
		}
		argv := way.Argv("")
		return Program{Argv: argv[:len(argv)-1], Env: way.Env(), Ended: func(code int, said string) error {
			if code != ownssh.Lost {
				return nil
			}
			return way.Failed(said)
		}}.Open(ctx)
	}
}
