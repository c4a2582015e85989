package fakeaws

import (
	"net/netip"
	"slices"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

func isCIDR(s string) bool {
	p, err := netip.ParsePrefix(s)
	return err == nil && p == p.Masked()
}

type groupXML struct {
	Owner       string                  `xml:"ownerId"`
	ID          string                  `xml:"groupId"`
	Name        string                  `xml:"groupName"`
	Description string                  `xml:"groupDescription"`
	VPC         string                  `xml:"vpcId"`
	In          wire.Set[permissionXML] `xml:"ipPermissions"`
	Out         wire.Set[permissionXML] `xml:"ipPermissionsEgress"`
	Tags        wire.Set[tagXML]        `xml:"tagSet"`
}

// permissionXML is all sources of the same protocol and ports.
type permissionXML struct {
	Proto  string                `xml:"ipProtocol"`
	From   *int                  `xml:"fromPort"`
	To     *int                  `xml:"toPort"`
	Groups wire.Set[pairXML]     `xml:"groups"`
	Ranges wire.Set[rangeXML]    `xml:"ipRanges"`
	V6     wire.Set[range6XML]   `xml:"ipv6Ranges"`
	Lists  wire.Set[prefixesXML] `xml:"prefixListIds"`
}

type pairXML struct {
	User        string `xml:"userId"`
	Group       string `xml:"groupId"`
	Description string `xml:"description,omitempty"`
}

type rangeXML struct {
	CIDR        string `xml:"cidrIp"`
	Description string `xml:"description,omitempty"`
}

type range6XML struct {
	CIDR        string `xml:"cidrIpv6"`
	Description string `xml:"description,omitempty"`
}

type prefixesXML struct {
	ID          string `xml:"prefixListId"`
	Description string `xml:"description,omitempty"`
}

func (r *region) permissions(rules []rule) wire.Set[permissionXML] {
	var out []permissionXML
	for _, x := range rules {
		at := slices.IndexFunc(out, func(p permissionXML) bool {
			return p.Proto == x.Proto && (p.From == nil || *p.From == x.From && *p.To == x.To)
		})
		if at < 0 {
			p := permissionXML{Proto: x.Proto}
			if x.Proto != "-1" {
				p.From, p.To = &x.From, &x.To
			}
			out = append(out, p)
			at = len(out) - 1
		}
		p := &out[at]
		switch {
		case x.Group != "":
			p.Groups.Items = append(p.Groups.Items, pairXML{r.s.opt.Account, x.Group, x.Description})
		case x.CIDR6 != "":
			p.V6.Items = append(p.V6.Items, range6XML{x.CIDR6, x.Description})
		case x.List != "":
			p.Lists.Items = append(p.Lists.Items, prefixesXML{x.List, x.Description})
		default:
			p.Ranges.Items = append(p.Ranges.Items, rangeXML{x.CIDR, x.Description})
		}
	}
	return wire.SetOf(out)
}

func describeSecurityGroups(q *request) (any, error) {
	r, ids, names := q.region, q.list("GroupId"), q.list("GroupName")
	all := r.groups.listed()
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(g group) bool { return g.ID == id }) {
			return nil, bad("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(g group) bool { return g.Name == name }) {
			return nil, bad("InvalidGroup.NotFound", "The security group '%s' does not exist in default VPC '%s'", name, r.vpc)
		}
	}
	var found []group
	for _, g := range all {
		ok, err := q.passes(g.Tags, fields{"group-id": one(g.ID), "group-name": one(g.Name), "vpc-id": one(g.VPC),
			"description": one(g.Description), "owner-id": one(q.s.opt.Account)})
		if err != nil {
			return nil, err
		}
		if ok && among(g.ID, ids) && among(g.Name, names) {
			found = append(found, g)
		}
	}
	found, next, err := page(q, found, 1000, func(g group) string { return sortable(r.groups.order(g)) })
	if err != nil {
		return nil, err
	}
	return struct {
		Groups wire.Set[groupXML] `xml:"securityGroupInfo"`
		listing
	}{wire.SetOf(each(found, func(g group) groupXML {
		return groupXML{q.s.opt.Account, g.ID, g.Name, g.Description, g.VPC, r.permissions(g.In), r.permissions(g.Out), g.Tags.xml()}
	})), listing{next}}, nil
}

type ruleXML struct {
	ID          string    `xml:"securityGroupRuleId"`
	Group       string    `xml:"groupId"`
	Owner       string    `xml:"groupOwnerId"`
	Egress      bool      `xml:"isEgress"`
	Proto       string    `xml:"ipProtocol"`
	From        int       `xml:"fromPort"`
	To          int       `xml:"toPort"`
	CIDR        string    `xml:"cidrIpv4,omitempty"`
	CIDR6       string    `xml:"cidrIpv6,omitempty"`
	Peer        *groupRef `xml:"referencedGroupInfo"`
	Description string    `xml:"description,omitempty"`
}

func (r *region) ruleXML(g group, x rule) ruleXML {
	out := ruleXML{x.ID, g.ID, r.s.opt.Account, x.Egress, x.Proto, x.From, x.To, x.CIDR, x.CIDR6, nil, x.Description}
	if x.Group != "" {
		out.Peer = &groupRef{ID: x.Group}
	}
	return out
}

func describeSecurityGroupRules(q *request) (any, error) {
	var found []ruleXML
	for _, g := range q.region.groups.listed() {
		for _, x := range slices.Concat(g.In, g.Out) {
			ok, err := q.passes(nil, fields{"group-id": one(g.ID), "security-group-rule-id": one(x.ID)})
			if err != nil {
				return nil, err
			}
			if ok && among(x.ID, q.list("SecurityGroupRuleId")) {
				found = append(found, q.region.ruleXML(g, x))
			}
		}
	}
	slices.SortFunc(found, func(a, b ruleXML) int { return slices.Compare([]string{a.ID}, []string{b.ID}) })
	found, next, err := page(q, found, 1000, func(x ruleXML) string { return x.ID })
	if err != nil {
		return nil, err
	}
	return struct {
		Rules wire.Set[ruleXML] `xml:"securityGroupRuleSet"`
		listing
	}{wire.SetOf(found), listing{next}}, nil
}
