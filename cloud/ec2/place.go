package ec2

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/door"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/cloud/ec2/vpc"
)

// network is where instances of a region can be put, and how they are reached
// there.
type network struct {
	VPC     string
	CIDRs   []netip.Prefix
	Default bool              // it is the region's default VPC
	Subnets map[string]string // by zone
	// Six says that the machines are reached, and reach each other, by IPv6, and
	// SixOnly that they have no other addresses.
	Six, SixOnly bool
	Way          way
	// Unsure is why it is not known whether the subnets have a route to the
	// internet; nil: it is known.
	Unsure error
}

// network finds the subnets that the spec names, or those of the default VPC, and
// the way to them.
func (p *Provider) network(ctx context.Context, region string, spec cloud.Spec) (network, error) {
	ec2, err := p.connect(ctx, region)
	if err != nil {
		return network{}, err
	}
	n := network{Subnets: map[string]string{}, Default: own(spec).VPC == "" && own(spec).Subnet == ""}
	if own(spec).VPC != "" {
		if n.VPC, err = vpc.Named(ctx, ec2, region, own(spec).VPC); err != nil {
			return n, err
		}
	}
	all, err := vpc.Subnets(ctx, ec2, region, n.VPC, own(spec).Subnet)
	if err != nil {
		return n, err
	}
	if n.VPC, err = vpc.One(all, n.VPC, region, own(spec).Subnet); err != nil {
		return n, err
	}
	return n, p.choosePlaces(ctx, ec2, region, spec, &n, all)
}

// choosePlaces finds the way to a network, and keeps one subnet in each zone that
// can be reached by it.
func (p *Provider) choosePlaces(ctx context.Context, ec2 client, region string, spec cloud.Spec, n *network, all []types.Subnet) error {
	var roads door.Roads
	if !n.Default {
		roads, n.Unsure = door.OpenSubnets(ctx, ec2, region, n.VPC, all)
	}
	all = p.family(ctx, spec, n, all, roads)
	open := roads.V4
	if n.Six {
		open = roads.V6
	}
	routes := n.Default || n.Unsure != nil || slices.ContainsFunc(all, func(s types.Subnet) bool { return open[aws.ToString(s.SubnetId)] })
	var err error
	if n.Way, err = findWay(ctx, ec2, region, spec, *n, all, routes); err != nil {
		return err
	}
	if n.Way.kind == wayPublic && !n.Default && n.Unsure == nil {
		all = slices.DeleteFunc(slices.Clone(all), func(s types.Subnet) bool { return !open[aws.ToString(s.SubnetId)] })
	}
	if n.Way.kind == wayJump || n.Way.kind == wayPrivate {
		if n.CIDRs, err = vpc.CIDRs(ctx, ec2, region, n.VPC); err != nil {
			return err
		}
		n.CIDRs = door.BySix(n.CIDRs, n.Six)
	}
	room := map[string]int32{}
	for _, s := range all {
		zone, free := aws.ToString(s.AvailabilityZone), aws.ToInt32(s.AvailableIpAddressCount)
		if n.Way.kind != wayPublic && !open[aws.ToString(s.SubnetId)] {
			free += 1 << 20 // one of the private subnets, where there are some
		}
		if n.Subnets[zone] == "" || free > room[zone] {
			n.Subnets[zone], room[zone] = aws.ToString(s.SubnetId), free
		}
	}
	return nil
}

// family chooses between IPv4 and IPv6, and gives the subnets that remain. Where
// machines can have both, IPv6 is chosen when it alone leads to them from here.
func (p *Provider) family(ctx context.Context, spec cloud.Spec, n *network, all []types.Subnet, roads door.Roads) []types.Subnet {
	both := slices.DeleteFunc(slices.Clone(all), door.IPv6Only)
	if len(both) == 0 {
		n.Six, n.SixOnly = true, true
		return all
	}
	public := own(spec).Jump == "" && (own(spec).Reach == "" || own(spec).Reach == options.ReachPublic)
	if n.Default || n.Unsure != nil || !public || slices.ContainsFunc(both, func(s types.Subnet) bool { return roads.V4[aws.ToString(s.SubnetId)] }) {
		return both
	}
	bySix := slices.DeleteFunc(slices.Clone(both), func(s types.Subnet) bool { return !door.HasIPv6(s) || !roads.V6[aws.ToString(s.SubnetId)] })
	if len(bySix) == 0 {
		return both
	}
	if d, err := p.door(ctx, spec, network{Six: true, Way: way{kind: wayPublic}}); err != nil || len(d.Nets) == 0 {
		return both // nobody gets from here to there by IPv6
	}
	n.Six = true
	return bySix
}

// errNoRoute is that machines get no address by which they could be reached, and
// errNoRouteBySix that nobody gets to the one that they have.
var errNoRouteBySix = errors.New("no route ::/0 to an internet gateway (an egress-only one lets nobody in): dlwb could not reach the IPv6 addresses of machines there")
var errNoRoute = errors.New("no route to an internet gateway: machines there get no address by which dlwb could reach them")
