package fakeaws

import "github.com/dlwb/dlwb/internal/fakeaws/wire"

type routeXML struct {
	CIDR    string `xml:"destinationCidrBlock,omitempty"`
	CIDR6   string `xml:"destinationIpv6CidrBlock,omitempty"`
	Egress  string `xml:"egressOnlyInternetGatewayId,omitempty"`
	Gateway string `xml:"gatewayId,omitempty"`
	NAT     string `xml:"natGatewayId,omitempty"`
	State   string `xml:"state"`
	Origin  string `xml:"origin"`
}

type associationXML struct {
	ID     string `xml:"routeTableAssociationId"`
	Table  string `xml:"routeTableId"`
	Subnet string `xml:"subnetId,omitempty"`
	Main   bool   `xml:"main"`
}

type routeTableXML struct {
	ID           string                   `xml:"routeTableId"`
	VPC          string                   `xml:"vpcId"`
	Routes       wire.Set[routeXML]       `xml:"routeSet"`
	Associations wire.Set[associationXML] `xml:"associationSet"`
	Owner        string                   `xml:"ownerId"`
}

// describeRouteTables shows the main table, which leads to the internet, and one
// for each private subnet, which goes out by a NAT gateway and lets nobody in.
func describeRouteTables(q *request) (any, error) {
	r := q.region
	local := routeXML{CIDR: "172.31.0.0/16", Gateway: "local", State: "active", Origin: "CreateRouteTable"}
	table := func(vpc, of, subnet string, out routeXML) routeTableXML {
		id := wire.FixedID("rtb", r.Name+of)
		out.CIDR, out.State, out.Origin = "0.0.0.0/0", "active", "CreateRoute"
		return routeTableXML{id, vpc, wire.SetOf([]routeXML{local, out}),
			wire.SetOf([]associationXML{{wire.FixedID("rtbassoc", r.Name+of), id, subnet, subnet == ""}}), q.s.opt.Account}
	}
	all := []routeTableXML{table(r.vpc, "", "", routeXML{Gateway: wire.FixedID("igw", r.Name)})}
	for _, v := range r.VPCs {
		all = append(all, table(VPCID(r.Name, v.Name), v.Name, "", routeXML{Gateway: wire.FixedID("igw", r.Name+v.Name)}))
	}
	for _, s := range r.allSubnets() {
		if s.Private {
			all = append(all, table(s.VPC, s.ID, s.ID, routeXML{NAT: wire.FixedID("nat", r.Name)}))
		}
		if s.Six == "" {
			continue
		}
		out := routeXML{CIDR6: "::/0", Egress: wire.FixedID("eigw", r.Name), State: "active", Origin: "CreateRoute"}
		if s.In6 {
			out.Egress, out.Gateway = "", wire.FixedID("igw", r.Name)
		}
		if !s.Private { // it has a table of its own, then
			all = append(all, table(s.VPC, s.ID, s.ID, routeXML{Gateway: wire.FixedID("igw", r.Name)}))
		}
		at := &all[len(all)-1].Routes
		if at.Items = append(at.Items, out); s.only() {
			at.Items = at.Items[2:] // nothing there goes by IPv4
		}
	}
	var found []routeTableXML
	for _, t := range all {
		ok, err := q.passes(nil, fields{"vpc-id": one(t.VPC), "route-table-id": one(t.ID)})
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, t)
		}
	}
	found, next, err := page(q, found, 100, func(t routeTableXML) string { return t.ID })
	if err != nil {
		return nil, err
	}
	return struct {
		Tables wire.Set[routeTableXML] `xml:"routeTableSet"`
		listing
	}{wire.SetOf(found), listing{next}}, nil
}
