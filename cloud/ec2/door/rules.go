package door

import (
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Within is everything between the members of a group.
func Within(id string) []types.IpPermission {
	return []types.IpPermission{{IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &id}}}}
}

// OutBySix lets everything out by IPv6.
func OutBySix() types.IpPermission {
	return types.IpPermission{IpProtocol: aws.String("-1"), Ipv6Ranges: []types.Ipv6Range{{CidrIpv6: aws.String("::/0")}}}
}

// Elsewhere are the parts of rules that let in others than the sources.
func Elsewhere(all []types.IpPermission, sources []netip.Prefix) []types.IpPermission {
	var old []types.IpPermission
	ours := func(cidr *string) bool {
		return slices.ContainsFunc(sources, func(n netip.Prefix) bool { return n.String() == aws.ToString(cidr) })
	}
	for _, p := range all {
		r := types.IpPermission{IpProtocol: p.IpProtocol, FromPort: p.FromPort, ToPort: p.ToPort}
		for _, v4 := range p.IpRanges {
			if !ours(v4.CidrIp) {
				r.IpRanges = append(r.IpRanges, types.IpRange{CidrIp: v4.CidrIp})
			}
		}
		for _, v6 := range p.Ipv6Ranges {
			if !ours(v6.CidrIpv6) {
				r.Ipv6Ranges = append(r.Ipv6Ranges, types.Ipv6Range{CidrIpv6: v6.CidrIpv6})
			}
		}
		if len(r.IpRanges)+len(r.Ipv6Ranges) > 0 {
			old = append(old, r)
		}
	}
	return old
}
