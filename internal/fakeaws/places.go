package fakeaws

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

func getCallerIdentity(q *request) (any, error) {
	return struct{ UserId, Account, Arn string }{"AIDAFAKE0000DLWB0000", q.s.opt.Account, q.s.opt.ARN}, nil
}

type regionXML struct {
	Name     string `xml:"regionName"`
	Endpoint string `xml:"regionEndpoint"`
	OptIn    string `xml:"optInStatus"`
}

func describeRegions(q *request) (any, error) {
	names, out := q.list("RegionName"), []regionXML{}
	for _, name := range names {
		if !slices.ContainsFunc(q.s.regions, func(r *region) bool { return r.Name == name }) {
			return nil, bad("InvalidParameterValue", "Invalid region name: %s", name)
		}
	}
	for _, r := range q.s.regions {
		v := regionXML{r.Name, "ec2." + r.Name + ".amazonaws.com", "opt-in-not-required"}
		if r.Disabled {
			v.OptIn = "not-opted-in"
		}
		ok, err := q.passes(nil, fields{"region-name": one(v.Name), "endpoint": one(v.Endpoint), "opt-in-status": one(v.OptIn)})
		if err != nil {
			return nil, err
		}
		wanted := len(names) == 0 && (!r.Disabled || q.is("AllRegions")) || slices.Contains(names, r.Name)
		if ok && wanted {
			out = append(out, v)
		}
	}
	return struct {
		Regions wire.Set[regionXML] `xml:"regionInfo"`
	}{wire.SetOf(out)}, nil
}

type zoneXML struct {
	Name   string `xml:"zoneName"`
	ID     string `xml:"zoneId"`
	State  string `xml:"zoneState"`
	Region string `xml:"regionName"`
	Group  string `xml:"groupName"`
	Border string `xml:"networkBorderGroup"`
	OptIn  string `xml:"optInStatus"`
	Type   string `xml:"zoneType"`
}

func describeZones(q *request) (any, error) {
	var out []zoneXML
	r := q.region
	names, ids := q.list("ZoneName"), q.list("ZoneId")
	for _, s := range r.subnets {
		v := zoneXML{s.Zone, s.ZoneID, "available", r.Name, r.Name + "-zg-1", r.Name, "opt-in-not-required", "availability-zone"}
		ok, err := q.passes(nil, fields{"zone-name": one(v.Name), "zone-id": one(v.ID), "state": one(v.State),
			"region-name": one(v.Region), "zone-type": one(v.Type), "opt-in-status": one(v.OptIn), "group-name": one(v.Group)})
		if err != nil {
			return nil, err
		}
		if ok && among(v.Name, names) && among(v.ID, ids) {
			out = append(out, v)
		}
	}
	if missing := len(names) + len(ids) - len(out); missing > 0 && !q.has("Filter.1.Name") {
		return nil, bad("InvalidParameterValue", "Invalid availability zone: %v%v", names, ids)
	}
	return struct {
		Zones wire.Set[zoneXML] `xml:"availabilityZoneInfo"`
	}{wire.SetOf(out)}, nil
}

// among reports whether a value is wanted; no list wants all.
func among(v string, wanted []string) bool { return len(wanted) == 0 || slices.Contains(wanted, v) }

type vpcXML struct {
	ID      string           `xml:"vpcId"`
	State   string           `xml:"state"`
	CIDR    string           `xml:"cidrBlock"`
	Default bool             `xml:"isDefault"`
	Owner   string           `xml:"ownerId"`
	Tags    wire.Set[tagXML] `xml:"tagSet"`
	Sixes   wire.Set[sixXML] `xml:"ipv6CidrBlockAssociationSet"`
}

func describeVpcs(q *request) (any, error) {
	r := q.region
	all := []vpcXML{{ID: r.vpc, CIDR: "172.31.0.0/16", Default: true}}
	if r.NoDefaultVPC {
		all = nil
	}
	for i, v := range r.VPCs {
		x := vpcXML{ID: VPCID(r.Name, v.Name), CIDR: fmt.Sprintf("10.%d.0.0/16", i), Tags: tags{"Name": v.Name}.xml()}
		if slices.ContainsFunc(v.Subnets, func(s Subnet) bool { return s.IPv6 != "" }) {
			x.Sixes.Items = append(x.Sixes.Items, sixXML{wire.FixedID("vpc-cidr-assoc", v.Name), fmt.Sprintf("2600:1f18:%x::/56", i), "associated"})
		}
		all = append(all, x)
	}
	for _, id := range q.list("VpcId") {
		if !r.hasVPC(id) {
			return nil, bad("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", id)
		}
	}
	var found []vpcXML
	for _, v := range all {
		v.State, v.Owner = "available", q.s.opt.Account
		ok, err := q.passes(tagsOf(v.Tags), fields{"vpc-id": one(v.ID), "is-default": one(strconv.FormatBool(v.Default)), "isDefault": one(strconv.FormatBool(v.Default)),
			"state": one(v.State), "cidr": one(v.CIDR), "owner-id": one(v.Owner)})
		if err != nil {
			return nil, err
		}
		if ok && among(v.ID, q.list("VpcId")) {
			found = append(found, v)
		}
	}
	found, next, err := page(q, found, 1000, func(v vpcXML) string { return v.ID })
	if err != nil {
		return nil, err
	}
	return struct {
		VPCs wire.Set[vpcXML] `xml:"vpcSet"`
		listing
	}{wire.SetOf(found), listing{next}}, nil
}

// tagsOf are tags as they were before they were written.
func tagsOf(x wire.Set[tagXML]) tags {
	t := tags{}
	for _, one := range x.Items {
		t[one.Key] = one.Value
	}
	return t
}

type subnetXML struct {
	ID      string           `xml:"subnetId"`
	State   string           `xml:"state"`
	VPC     string           `xml:"vpcId"`
	CIDR    string           `xml:"cidrBlock"`
	Free    int              `xml:"availableIpAddressCount"`
	Zone    string           `xml:"availabilityZone"`
	ZoneID  string           `xml:"availabilityZoneId"`
	Default bool             `xml:"defaultForAz"`
	Public  bool             `xml:"mapPublicIpOnLaunch"`
	Owner   string           `xml:"ownerId"`
	Tags    wire.Set[tagXML] `xml:"tagSet"`
	Native  bool             `xml:"ipv6Native"`
	Sixes   wire.Set[sixXML] `xml:"ipv6CidrBlockAssociationSet"`
}

// sixXML is an IPv6 network of a subnet or a VPC.
type sixXML struct {
	ID    string `xml:"associationId"`
	CIDR  string `xml:"ipv6CidrBlock"`
	State string `xml:"ipv6CidrBlockState>state"`
}

func describeSubnets(q *request) (any, error) {
	r, ids := q.region, q.list("SubnetId")
	for _, id := range ids {
		if _, ok := r.subnet(id); !ok {
			return nil, bad("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
	}
	var found []subnetXML
	for _, s := range r.allSubnets() {
		of := tags{}
		if s.Name != "" {
			of["Name"] = s.Name
		}
		is := strconv.FormatBool(s.Default)
		x := subnetXML{s.ID, "available", s.VPC, s.CIDR, 4091, s.Zone, s.ZoneID, s.Default, s.Default, q.s.opt.Account, of.xml(), s.only(), wire.SetOf([]sixXML{})}
		if s.CIDR6 != "" {
			x.Sixes.Items = append(x.Sixes.Items, sixXML{wire.FixedID("subnet-cidr-assoc", s.ID), s.CIDR6, "associated"})
		}
		if s.only() {
			x.Free = 0
		}
		ok, err := q.passes(of, fields{"subnet-id": one(s.ID), "vpc-id": one(s.VPC), "availability-zone": one(s.Zone), "availabilityZone": one(s.Zone),
			"availability-zone-id": one(s.ZoneID), "default-for-az": one(is), "defaultForAz": one(is), "state": one("available"),
			"map-public-ip-on-launch": one(is), "cidr-block": one(s.CIDR)})
		if err != nil {
			return nil, err
		}
		if ok && among(s.ID, ids) && (!s.Default || !r.NoDefaultVPC) {
			found = append(found, x)
		}
	}
	slices.SortFunc(found, func(a, b subnetXML) int { return strings.Compare(a.ID, b.ID) })
	found, next, err := page(q, found, 1000, func(s subnetXML) string { return s.ID })
	if err != nil {
		return nil, err
	}
	return struct {
		Subnets wire.Set[subnetXML] `xml:"subnetSet"`
		listing
	}{wire.SetOf(found), listing{next}}, nil
}
