package door

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// Roads are the subnets in which machines can be reached from the internet: by the
// public IPv4 addresses that they are given, and by their IPv6 addresses.
type Roads struct{ V4, V6 map[string]bool }

// OpenSubnets finds them: the route table sends everything else to an internet
// gateway. A subnet without a table of its own has the VPC's main one
// (https://docs.aws.amazon.com/vpc/latest/userguide/VPC_Route_Tables.html).
func OpenSubnets(ctx context.Context, ec2 awsec2.DescribeRouteTablesAPIClient, region, vpc string, all []types.Subnet) (Roads, error) {
	roads := Roads{V4: map[string]bool{}, V6: map[string]bool{}}
	var main *types.RouteTable
	its := map[string]*types.RouteTable{}
	in := &awsec2.DescribeRouteTablesInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{vpc}}}}
	for pages := awsec2.NewDescribeRouteTablesPaginator(ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return roads, awsapi.Explain(err, awsapi.Call{Action: "DescribeRouteTables", Region: region, ID: vpc})
		}
		for _, t := range page.RouteTables {
			for _, a := range t.Associations {
				if id := aws.ToString(a.SubnetId); id != "" {
					its[id] = &t
				}
				if aws.ToBool(a.Main) {
					main = &t
				}
			}
		}
	}
	for _, s := range all {
		t := its[aws.ToString(s.SubnetId)]
		if t == nil {
			t = main
		}
		if t == nil {
			return roads, &awsapi.Problem{Kind: awsapi.Unknown, Cause: "AWS shows no route table of " + aws.ToString(s.SubnetId)}
		}
		if slices.ContainsFunc(t.Routes, outward) {
			roads.V4[aws.ToString(s.SubnetId)] = true
		}
		if slices.ContainsFunc(t.Routes, outwardBySix) {
			roads.V6[aws.ToString(s.SubnetId)] = true
		}
	}
	return roads, nil
}

// IPv6Only reports whether machines of a subnet have IPv6 addresses alone.
func IPv6Only(s types.Subnet) bool { return aws.ToBool(s.Ipv6Native) }

// HasIPv6 reports whether machines of a subnet can have IPv6 addresses.
func HasIPv6(s types.Subnet) bool {
	return slices.ContainsFunc(s.Ipv6CidrBlockAssociationSet, func(a types.SubnetIpv6CidrBlockAssociation) bool {
		return a.Ipv6CidrBlockState == nil || a.Ipv6CidrBlockState.State == types.SubnetCidrBlockStateCodeAssociated
	})
}

// outward reports whether a route leads to the internet, both ways, for the public
// IPv4 address that a machine is given. One for IPv6 alone does not.
func outward(r types.Route) bool {
	everywhere := aws.ToString(r.DestinationCidrBlock) == "0.0.0.0/0"
	return everywhere && strings.HasPrefix(aws.ToString(r.GatewayId), "igw-") && r.State != types.RouteStateBlackhole
}

// outwardBySix is outward for IPv6 addresses. An egress-only gateway lets nobody in.
func outwardBySix(r types.Route) bool {
	everywhere := aws.ToString(r.DestinationIpv6CidrBlock) == "::/0"
	return everywhere && strings.HasPrefix(aws.ToString(r.GatewayId), "igw-") && r.State != types.RouteStateBlackhole
}
