package ec2

import (
	"context"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
)

// efaOnly is an interface that carries EFA's traffic and has no address.
const efaOnly = "efa-only"

// fabric says how the interfaces of a machine are laid out that is to use all of
// its EFA: whether the first one is for EFA too, and which others there are. cards
// is how many network cards the type has. Where it has one more than EFA
// interfaces (p6-b300), the first card is for the address alone.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
func fabric(efa, cards int) (first bool, others []fabricCard) {
	if efa == 0 {
		return false, nil
	}
	first, count := cards <= efa, efa
	if first {
		count--
	}
	for card := range count {
		others = append(others, fabricCard{Card: int32(card + 1), Device: 1, Kind: efaOnly})
	}
	return first, others
}

// weave gives a launch the interfaces for EFA that its way leaves room for: AWS
// gives no public address to a machine that has several.
func (u *up) weave(ctx context.Context, l *launch, o cloud.Offer) {
	if o.EFA == 0 || u.spec.Count < 2 {
		return
	}
	if !l.private() && !l.Six {
		l.EFA = true
		if o.EFA > 1 {
			u.say(-1, fmt.Sprintf("%s has %d EFA interfaces; one is used, because AWS gives no public address to a machine with more: "+
				"machines.reach: instance-connect, ssm or private, or machines.jump, use all of them", o.Instance, o.EFA))
		}
		return
	}
	l.EFA, l.Fabric = fabric(o.EFA, u.p.networkCards(ctx, o))
}

// networkCards is how many a type has; where nobody knows, one for each EFA.
func (p *Provider) networkCards(ctx context.Context, o cloud.Offer) int {
	m, err := p.market(ctx)
	if err != nil {
		return o.EFA
	}
	facts, err := m.Facts(ctx, o.Region, o.Instance)
	if err != nil || facts.Cards == 0 {
		return o.EFA
	}
	return facts.Cards
}

// bootstrap is how long machines of a type wait for somebody to make use of them,
// before their lease ends them.
func bootstrap(instance string) time.Duration {
	return bootstrapLimit + catalog.BootTime(instance)
}
