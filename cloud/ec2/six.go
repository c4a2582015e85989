package ec2

import (
	"context"
	"fmt"

	"github.com/dlwb/dlwb/cloud"
)

// canSix holds a type against a network of IPv6 alone: AWS starts only types of the
// Nitro System there. What nobody knows is no reason against it.
// https://docs.aws.amazon.com/vpc/latest/userguide/configure-subnets.html
func (p *Provider) canSix(ctx context.Context, n network, o cloud.Offer) error {
	if !n.SixOnly {
		return nil
	}
	m, err := p.market(ctx)
	if err != nil {
		return nil
	}
	facts, err := m.Facts(ctx, o.Region, o.Instance)
	if err != nil || facts.Hypervisor != "xen" {
		return nil
	}
	return fmt.Errorf("machines there have IPv6 addresses only, for which AWS takes types of the Nitro System, and %s is none", o.Instance)
}
