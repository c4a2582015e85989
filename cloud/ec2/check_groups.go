package ec2

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
)

// existing says whether the security groups that the profile names let in whom the
// nodes need: ssh by the way to them, and the nodes each other.
func (c *preflight) existing(ctx context.Context, named []string) cloud.Finding {
	const what = "address"
	ec2, err := c.p.connect(ctx, c.region)
	if err != nil {
		return failed(what, err, "")
	}
	ids, err := existingGroups(ctx, ec2, c.region, c.net.VPC, named)
	if err != nil {
		return failed(what, err, "machines.security_groups: groups of "+c.net.VPC+", or leave the key out")
	}
	all, err := describeGroups(ctx, ec2, c.region, c.net.VPC)
	if err != nil {
		return failed(what, err, "")
	}
	all = slices.DeleteFunc(all, func(g types.SecurityGroup) bool { return !slices.Contains(ids, aws.ToString(g.GroupId)) })
	text := "security groups " + strings.Join(ids, ", ")
	port := (&up{spec: c.spec}).port()
	next := "aws ec2 authorize-security-group-ingress --region " + c.region + " --group-id " + ids[0]
	d, err := c.p.door(ctx, c.spec, c.net)
	if err != nil {
		return cloud.Unchecked(what, text+"; whether they let ssh in is not known: "+err.Error(), "")
	}
	if from := d.shut(all, port); from != "" {
		return cloud.Warning(what, fmt.Sprintf("%s let no ssh in from %s, unless by a prefix list", text, from), fmt.Sprintf("%s --protocol tcp --port %d --cidr …", next, port))
	}
	if c.spec.Count > 1 && !meshed(all, ids) {
		return cloud.Warning(what, text+" do not let the nodes reach each other on all ports", next+" --protocol all --source-group "+ids[0])
	}
	return found(what, text+", which let ssh in")
}

// shut is who of a door the groups do not let in; empty: they let all in.
func (d door) shut(all []types.SecurityGroup, port int32) string {
	for _, from := range d.nets {
		if !slices.ContainsFunc(all, func(g types.SecurityGroup) bool {
			return slices.ContainsFunc(g.IpPermissions, func(p types.IpPermission) bool { return covers(p, port) && admits(p, from) })
		}) {
			return from.String()
		}
	}
	for _, from := range d.groups {
		if !slices.ContainsFunc(all, func(g types.SecurityGroup) bool {
			return slices.ContainsFunc(g.IpPermissions, func(p types.IpPermission) bool { return covers(p, port) && admitsGroup(p, from) })
		}) {
			return "the endpoint's group " + from
		}
	}
	return ""
}

// covers reports whether a rule is about a port of TCP.
func covers(p types.IpPermission, port int32) bool {
	switch aws.ToString(p.IpProtocol) {
	case "-1":
		return true
	case "tcp", "6":
		return aws.ToInt32(p.FromPort) <= port && port <= aws.ToInt32(p.ToPort)
	}
	return false
}

// admits reports whether a rule lets in all of a network.
func admits(p types.IpPermission, from netip.Prefix) bool {
	var cidrs []string
	for _, r := range p.IpRanges {
		cidrs = append(cidrs, aws.ToString(r.CidrIp))
	}
	for _, r := range p.Ipv6Ranges {
		cidrs = append(cidrs, aws.ToString(r.CidrIpv6))
	}
	return len(p.PrefixListIds) > 0 || slices.ContainsFunc(cidrs, func(text string) bool {
		n, err := netip.ParsePrefix(text)
		return err == nil && n.Bits() <= from.Bits() && n.Contains(from.Addr())
	})
}

func admitsGroup(p types.IpPermission, group string) bool {
	return slices.ContainsFunc(p.UserIdGroupPairs, func(g types.UserIdGroupPair) bool { return aws.ToString(g.GroupId) == group })
}

// meshed reports whether members of the groups reach each other on all ports.
func meshed(all []types.SecurityGroup, ids []string) bool {
	return slices.ContainsFunc(all, func(g types.SecurityGroup) bool {
		return slices.ContainsFunc(g.IpPermissions, func(p types.IpPermission) bool {
			return aws.ToString(p.IpProtocol) == "-1" && slices.ContainsFunc(ids, func(id string) bool { return admitsGroup(p, id) })
		})
	})
}
