package ec2

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// door is from where ssh gets in.
type door struct {
	nets   []netip.Prefix
	groups []string // security groups of an endpoint that the tunnels come from
}

// text says it to a person.
func (d door) text() string {
	var from []string
	if len(d.nets) > 0 {
		from = append(from, sourceText(d.nets))
	}
	if len(d.groups) > 0 {
		from = append(from, "the endpoint's group "+strings.Join(d.groups, ", "))
	}
	if len(from) == 0 {
		return "nothing gets in from outside; Systems Manager's agent goes out"
	}
	return "ssh from " + strings.Join(from, " and ") + " only"
}

// door is that of a network: what the user has set, or what the way there needs.
func (p *Provider) door(ctx context.Context, spec cloud.Spec, n network) (d door, err error) {
	if given, err := givenSources(spec); len(given) > 0 || err != nil {
		d.nets = given
		return d, err
	}
	switch n.Way.kind {
	case waySSM:
	case wayEndpoint:
		if n.Way.showsClient || len(n.Way.groups) == 0 { // the tunnels come from the caller's address
			d.nets, err = p.sources(ctx, spec)
		} else {
			d.groups = n.Way.groups
		}
	case wayJump, wayPrivate:
		d.nets = n.CIDRs
		if len(d.nets) == 0 {
			err = fmt.Errorf("AWS does not say which addresses %s has: name in machines.ssh_from where ssh to the nodes comes from", n.VPC)
		}
	default:
		d.nets, err = p.sources(ctx, spec)
	}
	return d, err
}

// rules are those by which somebody gets in, each for a call of its own: AWS
// refuses a whole call for one rule that is there already.
func (d door) rules(port int32) [][]types.IpPermission {
	var all [][]types.IpPermission
	for _, from := range d.nets {
		all = append(all, []types.IpPermission{sshRule(from, port)})
	}
	for _, g := range d.groups {
		all = append(all, []types.IpPermission{{IpProtocol: aws.String("tcp"), FromPort: &port, ToPort: &port,
			UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: aws.String(g), Description: aws.String("ssh through the endpoint")}}}})
	}
	return all
}

func sshRule(from netip.Prefix, port int32) types.IpPermission {
	r := types.IpPermission{IpProtocol: aws.String("tcp"), FromPort: &port, ToPort: &port}
	what, cidr := aws.String("ssh from where dlwb was started"), aws.String(from.String())
	if from.Addr().Is4() {
		r.IpRanges = []types.IpRange{{CidrIp: cidr, Description: what}}
	} else {
		r.Ipv6Ranges = []types.Ipv6Range{{CidrIpv6: cidr, Description: what}}
	}
	return r
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
