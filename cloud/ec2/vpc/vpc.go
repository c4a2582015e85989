// Package vpc finds the VPC and the subnets that a profile names: by id, by name, by a
// tag, or by nothing.
package vpc

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// API are the calls that show them.
type API interface {
	awsec2.DescribeVpcsAPIClient
	awsec2.DescribeSubnetsAPIClient
}

func filter(name, value string) types.Filter {
	return types.Filter{Name: &name, Values: []string{value}}
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
	return filter("tag:Name", word)
}

// Named is the id of the one VPC that a word names.
func Named(ctx context.Context, ec2 API, region, word string) (string, error) {
	found, err := list(ctx, ec2, region, selector(word, "vpc-", "vpc-id"))
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

func list(ctx context.Context, ec2 API, region string, by types.Filter) (all []types.Vpc, err error) {
	for pages := awsec2.NewDescribeVpcsPaginator(ec2, &awsec2.DescribeVpcsInput{Filters: []types.Filter{by}}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsapi.Explain(err, awsapi.Call{Action: "DescribeVpcs", Region: region})
		}
		all = append(all, page.Vpcs...)
	}
	return all, nil
}

// CIDRs are the addresses of a VPC.
func CIDRs(ctx context.Context, ec2 API, region, vpc string) (all []netip.Prefix, err error) {
	found, err := list(ctx, ec2, region, filter("vpc-id", vpc))
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

// Subnets are those of a VPC, or those that a word names, or the default VPC's.
func Subnets(ctx context.Context, ec2 API, region, vpc, word string) (all []types.Subnet, err error) {
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
	return Placed(all, region)
}

// Placed are the subnets of which AWS says in which zone they are. An error says that
// there are some, and that none is one of those.
func Placed(all []types.Subnet, region string) (placed []types.Subnet, err error) {
	var ids []string
	for _, s := range all {
		ids = append(ids, aws.ToString(s.SubnetId))
		if aws.ToString(s.AvailabilityZone) != "" {
			placed = append(placed, s)
		}
	}
	if len(placed) == 0 && len(all) > 0 {
		return nil, &awsapi.Problem{Kind: awsapi.Unknown, Cause: "AWS does not say in which zone " + strings.Join(ids, ", ") + " is",
			Next: fmt.Sprintf("aws ec2 describe-subnets --region %s --subnet-ids %s shows what it says", region, strings.Join(ids, " "))}
	}
	return placed, nil
}

// One is the VPC that all subnets are in. named is how the profile names them; empty:
// it does not.
func One(all []types.Subnet, vpc, region, named string) (string, error) {
	if len(all) == 0 {
		switch {
		case named != "":
			return "", fmt.Errorf("%s has no subnet %s: aws ec2 describe-subnets --region %s --query \"Subnets[].[SubnetId,VpcId,AvailabilityZone,Tags]\"", region, named, region)
		case vpc != "":
			return "", fmt.Errorf("%s in %s has no subnet", vpc, region)
		}
		return "", fmt.Errorf("%s has no default VPC with subnets: aws ec2 create-default-vpc --region %s; or name one in machines.vpc or machines.subnet", region, region)
	}
	vpc = aws.ToString(all[0].VpcId)
	for _, s := range all {
		if other := aws.ToString(s.VpcId); other != vpc {
			return "", fmt.Errorf("subnets of several VPCs in %s are %s: of %s and of %s; name one in machines.vpc", region, named, vpc, other)
		}
	}
	return vpc, nil
}

// Text names subnets with their zones.
func Text(all []types.Subnet) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, aws.ToString(s.SubnetId)+" ("+aws.ToString(s.AvailabilityZone)+")")
	}
	return strings.Join(texts, ", ")
}
