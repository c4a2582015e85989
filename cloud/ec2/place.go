package ec2

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/door"
	"github.com/dlwb/dlwb/cloud/ec2/options"
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
		if n.VPC, err = vpcNamed(ctx, ec2, region, own(spec).VPC); err != nil {
			return n, err
		}
	}
	all, err := subnets(ctx, ec2, region, n.VPC, own(spec).Subnet)
	if err != nil {
		return n, err
	}
	if n.VPC, err = oneVPC(all, n.VPC, region, spec); err != nil {
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
		if n.CIDRs, err = cidrsOf(ctx, ec2, region, n.VPC); err != nil {
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

// selector is the filter for something that a profile names: by its id, by a tag
// as KEY=VALUE, or by its name, which is a tag too.
func selector(word, prefix, idFilter string) types.Filter {
	if strings.HasPrefix(word, prefix) {
		return filter(idFilter, word)
	}
	if key, value, ok := strings.Cut(word, "="); ok {
		return filter("tag:"+key, value)
	}
	return filter("tag:"+tagName, word)
}

// vpcNamed is the id of the one VPC that a word names.
func vpcNamed(ctx context.Context, ec2 client, region, word string) (string, error) {
	found, err := vpcs(ctx, ec2, region, selector(word, "vpc-", "vpc-id"))
	if err != nil {
		return "", err
	}
	show := fmt.Sprintf("aws ec2 describe-vpcs --region %s --query \"Vpcs[].[VpcId,Tags]\"", region)
	switch len(found) {
	case 1:
		return aws.ToString(found[0].VpcId), nil
	case 0:
		return "", fmt.Errorf("%s has no VPC %s: %s", region, word, show)
	}
	var ids []string
	for _, v := range found {
		ids = append(ids, aws.ToString(v.VpcId))
	}
	return "", fmt.Errorf("%d VPCs in %s are %s: %s; write one of these ids in machines.vpc", len(ids), region, word, strings.Join(ids, ", "))
}

func vpcs(ctx context.Context, ec2 client, region string, by types.Filter) (all []types.Vpc, err error) {
	for pages := awsec2.NewDescribeVpcsPaginator(ec2, &awsec2.DescribeVpcsInput{Filters: []types.Filter{by}}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsapi.Explain(err, awsapi.Call{Action: "DescribeVpcs", Region: region})
		}
		all = append(all, page.Vpcs...)
	}
	return all, nil
}

// cidrsOf are the addresses of a VPC.
func cidrsOf(ctx context.Context, ec2 client, region, vpc string) (all []netip.Prefix, err error) {
	found, err := vpcs(ctx, ec2, region, filter("vpc-id", vpc))
	for _, v := range found {
		texts := []string{aws.ToString(v.CidrBlock)}
		for _, a := range v.CidrBlockAssociationSet {
			texts = append(texts, aws.ToString(a.CidrBlock))
		}
		for _, a := range v.Ipv6CidrBlockAssociationSet {
			texts = append(texts, aws.ToString(a.Ipv6CidrBlock))
		}
		for _, text := range texts {
			if n, err := netip.ParsePrefix(text); err == nil && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all, err
}

// subnets are those of a VPC, or those that a word names, or the default VPC's.
func subnets(ctx context.Context, ec2 client, region, vpc, word string) (all []types.Subnet, err error) {
	in := &awsec2.DescribeSubnetsInput{}
	switch {
	case strings.HasPrefix(word, "subnet-"):
		in.SubnetIds = []string{word} // one that does not exist is an error then
	case word != "":
		in.Filters = append(in.Filters, selector(word, "subnet-", "subnet-id"))
	case vpc == "":
		in.Filters = append(in.Filters, filter("default-for-az", "true"))
	}
	if vpc != "" {
		in.Filters = append(in.Filters, filter("vpc-id", vpc))
	}
	for pages := awsec2.NewDescribeSubnetsPaginator(ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsapi.Explain(err, awsapi.Call{Action: "DescribeSubnets", Region: region, ID: word})
		}
		all = append(all, page.Subnets...)
	}
	return all, nil
}

// oneVPC is the VPC that all subnets are in.
func oneVPC(all []types.Subnet, vpc, region string, spec cloud.Spec) (string, error) {
	if len(all) == 0 {
		switch {
		case own(spec).Subnet != "":
			return "", fmt.Errorf("%s has no subnet %s: aws ec2 describe-subnets --region %s --query \"Subnets[].[SubnetId,VpcId,AvailabilityZone,Tags]\"", region, own(spec).Subnet, region)
		case vpc != "":
			return "", fmt.Errorf("%s in %s has no subnet", vpc, region)
		}
		return "", fmt.Errorf("%s has no default VPC with subnets: aws ec2 create-default-vpc --region %s; or name one in machines.vpc or machines.subnet", region, region)
	}
	vpc = aws.ToString(all[0].VpcId)
	for _, s := range all {
		if other := aws.ToString(s.VpcId); other != vpc {
			return "", fmt.Errorf("subnets of several VPCs in %s are %s: of %s and of %s; name one in machines.vpc", region, own(spec).Subnet, vpc, other)
		}
	}
	return vpc, nil
}

// errNoRoute is that machines get no address by which they could be reached, and
// errNoRouteBySix that nobody gets to the one that they have.
var errNoRouteBySix = errors.New("no route ::/0 to an internet gateway (an egress-only one lets nobody in): dlwb could not reach the IPv6 addresses of machines there")
var errNoRoute = errors.New("no route to an internet gateway: machines there get no address by which dlwb could reach them")
