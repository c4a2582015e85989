package ec2

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// routed reports whether machines in a subnet can be reached by the public
// addresses that they are given: its route table sends everything else to an
// internet gateway. A subnet without a table of its own has the VPC's main one
// (https://docs.aws.amazon.com/vpc/latest/userguide/VPC_Route_Tables.html).
func routed(ctx context.Context, ec2 client, region, vpc, subnet string) (bool, error) {
	var main, its *types.RouteTable
	in := &awsec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("vpc-id", vpc)}}
	for pages := awsec2.NewDescribeRouteTablesPaginator(ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return false, awsapi.Explain(err, awsapi.Call{Action: "DescribeRouteTables", Region: region, ID: subnet})
		}
		for _, t := range page.RouteTables {
			for _, a := range t.Associations {
				if aws.ToString(a.SubnetId) == subnet {
					its = &t
				}
				if aws.ToBool(a.Main) {
					main = &t
				}
			}
		}
	}
	if its == nil {
		its = main
	}
	if its == nil {
		return false, &awsapi.Problem{Kind: awsapi.Unknown, Cause: "AWS shows no route table of " + subnet}
	}
	return slices.ContainsFunc(its.Routes, outward), nil
}

// outward reports whether a route leads to the internet, both ways.
func outward(r types.Route) bool {
	everywhere := aws.ToString(r.DestinationCidrBlock) == "0.0.0.0/0" || aws.ToString(r.DestinationIpv6CidrBlock) == "::/0"
	return everywhere && strings.HasPrefix(aws.ToString(r.GatewayId), "igw-") && r.State != types.RouteStateBlackhole
}
