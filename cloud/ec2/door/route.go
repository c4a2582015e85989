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

// outward reports whether a route leads to the internet, both ways.
func outward(r types.Route) bool {
	everywhere := aws.ToString(r.DestinationCidrBlock) == "0.0.0.0/0" || aws.ToString(r.DestinationIpv6CidrBlock) == "::/0"
	return everywhere && strings.HasPrefix(aws.ToString(r.GatewayId), "igw-") && r.State != types.RouteStateBlackhole
}
