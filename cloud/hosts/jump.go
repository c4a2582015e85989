package hosts

import (
	"context"
	"fmt"

	"github.com/dlwb/dlwb/cloud"
)

// Jumps reaches what the user's own ssh calls by a name, and returns it as the
// last of the hosts on the way to machines behind it, each with the key that it
// has shown. With ask a person is asked about keys that are not known; else such a
// host is refused. Other providers, whose machines stand behind it, need it.
func (p *Provider) Jumps(ctx context.Context, name string, ask bool) ([]cloud.Jump, error) {
	by := p
	if !ask {
		quiet := p.options
		quiet.Confirm = nil
		by = New(quiet)
	}
	r, err := by.resolver()
	if err != nil {
		return nil, err
	}
	m, err := r.host(name)
	if err == nil {
		err = m.noCommand()
	}
	if err != nil {
		return nil, fmt.Errorf("jump host %s: %w", name, err)
	}
	calls := p.newCaller()
	defer calls.close()
	c, err := by.reach(ctx, calls, m)
	if err != nil {
		return nil, fmt.Errorf("jump host %w", err)
	}
	last := machine{Jumps: append(c.Jumps, c.machine)}
	return jumpsOf(last), nil
}
