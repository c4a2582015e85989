package ec2

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/door"
)

// door is that of a network: what the user has set, or what the way there needs.
func (p *Provider) door(ctx context.Context, spec cloud.Spec, n network) (d door.Door, err error) {
	if given, err := door.Given(own(spec).SSHFrom); len(given) > 0 || err != nil {
		if d.Nets = given; err == nil && n.Way.kind == wayPublic && len(door.BySix(given, n.Six)) == 0 {
			family := map[bool]string{true: "IPv6", false: "IPv4"}[n.Six]
			err = fmt.Errorf("the machines have to be reached by %s, and %s has no %[1]s address: name the one that this machine goes out by in machines.ssh_from or %[3]s", family, door.Names(given), door.SourceEnv)
		}
		return d, err
	}
	switch n.Way.kind {
	case waySSM:
	case wayEndpoint:
		if n.Way.showsClient || len(n.Way.groups) == 0 { // the tunnels come from the caller's address
			d.Nets, err = p.seenFrom(ctx, n.Six)
		} else {
			d.Groups = n.Way.groups
		}
	case wayJump, wayPrivate:
		d.Nets = n.CIDRs
		if len(d.Nets) == 0 {
			err = fmt.Errorf("AWS does not say which addresses %s has: name in machines.ssh_from where ssh to the nodes comes from", n.VPC)
		}
	default:
		d.Nets, err = p.seenFrom(ctx, n.Six)
	}
	return d, err
}

// seenFrom is from where this machine is seen to come now, whatever was set.
func (p *Provider) seenFrom(ctx context.Context, six bool) ([]netip.Prefix, error) {
	api, err := p.api(ctx)
	if err != nil {
		return nil, err
	}
	if six {
		return door.MineBySix(ctx, api.Endpoint())
	}
	return door.Mine(ctx, api.Web(), api.Endpoint())
}

// existingGroups finds the security groups that the profile names, by id or by
// name.
func existingGroups(ctx context.Context, ec2 client, region, vpc string, named []string) (ids []string, err error) {
	found, err := describeGroups(ctx, ec2, region, vpc)
	if err != nil {
		return nil, err
	}
	for _, name := range named {
		i := slices.IndexFunc(found, func(g types.SecurityGroup) bool {
			return aws.ToString(g.GroupId) == name || aws.ToString(g.GroupName) == name
		})
		if i < 0 {
			return nil, fmt.Errorf("%s in %s has no security group %s: aws ec2 describe-security-groups --region %s --filters Name=vpc-id,Values=%s "+
				"--query \"SecurityGroups[].[GroupId,GroupName]\"", vpc, region, name, region, vpc)
		}
		ids = append(ids, aws.ToString(found[i].GroupId))
	}
	return ids, nil
}

func describeGroups(ctx context.Context, ec2 client, region, vpc string) (all []types.SecurityGroup, err error) {
	in := &awsec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("vpc-id", vpc)}}
	for pages := awsec2.NewDescribeSecurityGroupsPaginator(ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsapi.Explain(err, awsapi.Call{Action: "DescribeSecurityGroups", Region: region, ID: vpc})
		}
		all = append(all, page.SecurityGroups...)
	}
	return all, nil
}
