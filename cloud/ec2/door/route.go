package door

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// OpenSubnets are those in which machines can be reached by the public addresses
// that they are given: the route table sends everything else to an internet
// gateway. A subnet without a table of its own has the VPC's main one
// (https://docs.aws.amazon.com/vpc/latest/userguide/VPC_Route_Tables.html).
func OpenSubnets(ctx context.Context, ec2 awsec2.DescribeRouteTablesAPIClient, region, vpc string, all []types.Subnet) (map[string]bool, error) {
	var main *types.RouteTable
	its := map[string]*types.RouteTable{}
	in := &awsec2.DescribeRouteTablesInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{vpc}}}}
	for pages := awsec2.NewDescribeRouteTablesPaginator(ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsapi.Explain(err, awsapi.Call{Action: "DescribeRouteTables", Region: region, ID: vpc})
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
	open := map[string]bool{}
	for _, s := range all {
		t := its[aws.ToString(s.SubnetId)]
		if t == nil {
			t = main
		}
		if t == nil {
			return nil, &awsapi.Problem{Kind: awsapi.Unknown, Cause: "AWS shows no route table of " + aws.ToString(s.SubnetId)}
		}
		if slices.ContainsFunc(t.Routes, outward) {
			open[aws.ToString(s.SubnetId)] = true
		}
	}
	return open, nil
}

// WithIPv4 are the subnets whose machines have IPv4 addresses: by those dlwb reaches
// them, and they each other. AWS refuses to give one in a subnet of IPv6 alone.
func WithIPv4(all []types.Subnet, region string) ([]types.Subnet, error) {
	var both []types.Subnet
	var ids []string
	for _, s := range all {
		if ids = append(ids, aws.ToString(s.SubnetId)); !aws.ToBool(s.Ipv6Native) {
			both = append(both, s)
		}
	}
	if len(both) == 0 && len(all) > 0 {
		return nil, fmt.Errorf("%s in %s: machines there have IPv6 addresses only, and dlwb needs IPv4 ones: name a subnet with both in machines.subnet: "+
			"aws ec2 describe-subnets --region %s --filters Name=ipv6-native,Values=false", strings.Join(ids, ", "), region, region)
	}
	return both, nil
}

// outward reports whether a route leads to the internet, both ways, for the public
// IPv4 address that a machine is given. One for IPv6 alone does not.
func outward(r types.Route) bool {
	everywhere := aws.ToString(r.DestinationCidrBlock) == "0.0.0.0/0"
	return everywhere && strings.HasPrefix(aws.ToString(r.GatewayId), "igw-") && r.State != types.RouteStateBlackhole
}
