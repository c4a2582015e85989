package hosts

import (
	"context"
	"fmt"

	"github.com/dlwb/dlwb/cloud"
)

// Meet reaches every host of a spec, and so asks a person what there is to ask:
// whether a host that is not known is the right one, and for the passphrases of
// keys. It changes nothing on the hosts.
func (p *Provider) Meet(ctx context.Context, spec cloud.Spec) error {
	machines, err := p.machines(spec)
	if err != nil {
		return err
	}
	calls := p.newCaller()
	defer calls.close()
	if _, err := p.reachAll(ctx, calls, machines, func(int, string) {}); err != nil {
		return fmt.Errorf("reach the hosts of cluster %s: %w", spec.Name, err)
	}
	return nil
}
