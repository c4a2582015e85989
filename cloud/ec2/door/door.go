// Package door is from where ssh gets in to machines: the networks and security
// groups, the rules that say so, and what rules that exist let in.
package door

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Door is from where ssh gets in.
type Door struct {
	Nets   []netip.Prefix
	Groups []string // security groups of an endpoint that the tunnels come from
}

// Text says it to a person.
func (d Door) Text() string {
	var from []string
	if len(d.Nets) > 0 {
		from = append(from, Names(d.Nets))
	}
	if len(d.Groups) > 0 {
		from = append(from, "the endpoint's group "+strings.Join(d.Groups, ", "))
	}
	if len(from) == 0 {
		return "nothing gets in from outside; Systems Manager's agent goes out"
	}
	return "ssh from " + strings.Join(from, " and ") + " only"
}

// Rules are those by which somebody gets in, each for a call of its own: AWS
// refuses a whole call for one rule that is there already.
func (d Door) Rules(port int32) [][]types.IpPermission {
	var all [][]types.IpPermission
	for _, from := range d.Nets {
		all = append(all, []types.IpPermission{sshRule(from, port)})
	}
	for _, g := range d.Groups {
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

// Shut is who of a door the groups do not let in; empty: they let all in.
func (d Door) Shut(all []types.SecurityGroup, port int32) string {
	for _, from := range d.Nets {
		if !slices.ContainsFunc(all, func(g types.SecurityGroup) bool {
			return slices.ContainsFunc(g.IpPermissions, func(p types.IpPermission) bool { return covers(p, port) && admits(p, from) })
		}) {
			return from.String()
		}
	}
	for _, from := range d.Groups {
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

// Meshed reports whether members of the groups reach each other on all ports.
func Meshed(all []types.SecurityGroup, ids []string) bool {
	return slices.ContainsFunc(all, func(g types.SecurityGroup) bool {
		return slices.ContainsFunc(g.IpPermissions, func(p types.IpPermission) bool {
			return aws.ToString(p.IpProtocol) == "-1" && slices.ContainsFunc(ids, func(id string) bool { return admitsGroup(p, id) })
		})
	})
}

// LetIn names the networks of the groups' rules.
func LetIn(all []types.SecurityGroup) string {
	var from []string
	for _, g := range all {
		for _, p := range g.IpPermissions {
			for _, r := range p.IpRanges {
				from = append(from, aws.ToString(r.CidrIp))
			}
			for _, r := range p.Ipv6Ranges {
				from = append(from, aws.ToString(r.CidrIpv6))
			}
		}
	}
	if len(from) == 0 {
		return "nowhere"
	}
	slices.Sort(from)
	return strings.Join(slices.Compact(from), ", ")
}

// Parse reads addresses and networks; each is there once.
func Parse(texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		n, err := ParseOne(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all, nil
}

// Names names sources for a person.
func Names(all []netip.Prefix) string {
	var texts []string
	for _, n := range all {
		texts = append(texts, n.String())
	}
	return strings.Join(texts, ", ")
}

// ParseOne reads an address, or a network that is not everything.
func ParseOne(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	n, err := netip.ParsePrefix(s)
	if err != nil {
		return n, fmt.Errorf("%q is no address", s)
	}
	if n.Bits() < 8 {
		return n, fmt.Errorf("%s is too much of the internet to open ssh to", s)
	}
	return n.Masked(), nil
}
