package fakeaws

import (
	"slices"
	"strings"
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
		Regions set[regionXML] `xml:"regionInfo"`
	}{setOf(out)}, nil
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
		Zones set[zoneXML] `xml:"availabilityZoneInfo"`
	}{setOf(out)}, nil
}

// among reports whether a value is wanted; no list wants all.
func among(v string, wanted []string) bool { return len(wanted) == 0 || slices.Contains(wanted, v) }

type vpcXML struct {
	ID      string `xml:"vpcId"`
	State   string `xml:"state"`
	CIDR    string `xml:"cidrBlock"`
	Default bool   `xml:"isDefault"`
	Owner   string `xml:"ownerId"`
}

func describeVpcs(q *request) (any, error) {
	v := vpcXML{q.region.vpc, "available", "172.31.0.0/16", true, q.s.opt.Account}
	for _, id := range q.list("VpcId") {
		if id != v.ID {
			return nil, bad("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", id)
		}
	}
	ok, err := q.passes(nil, fields{"vpc-id": one(v.ID), "is-default": one("true"), "isDefault": one("true"), "state": one(v.State),
		"cidr": one(v.CIDR), "owner-id": one(v.Owner)})
	if err != nil {
		return nil, err
	}
	var found []vpcXML
	if ok && !q.region.NoDefaultVPC {
		found = []vpcXML{v}
	}
	found, next, err := page(q, found, 1000, func(v vpcXML) string { return v.ID })
	if err != nil {
		return nil, err
	}
	return struct {
		VPCs set[vpcXML] `xml:"vpcSet"`
		listing
	}{setOf(found), listing{next}}, nil
}

type subnetXML struct {
	ID      string `xml:"subnetId"`
	State   string `xml:"state"`
	VPC     string `xml:"vpcId"`
	CIDR    string `xml:"cidrBlock"`
	Free    int    `xml:"availableIpAddressCount"`
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
	Default bool   `xml:"defaultForAz"`
	Public  bool   `xml:"mapPublicIpOnLaunch"`
	Owner   string `xml:"ownerId"`
}

func describeSubnets(q *request) (any, error) {
	r, ids := q.region, q.list("SubnetId")
	for _, id := range ids {
		if _, ok := r.subnet(id); !ok {
			return nil, bad("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
	}
	var found []subnetXML
	for _, s := range r.subnets {
		x := subnetXML{s.ID, "available", r.vpc, s.CIDR, 4091, s.Zone, s.ZoneID, true, true, q.s.opt.Account}
		ok, err := q.passes(nil, fields{"subnet-id": one(s.ID), "vpc-id": one(r.vpc), "availability-zone": one(s.Zone), "availabilityZone": one(s.Zone),
			"availability-zone-id": one(s.ZoneID), "default-for-az": one("true"), "defaultForAz": one("true"), "state": one("available"),
			"map-public-ip-on-launch": one("true"), "cidr-block": one(s.CIDR)})
		if err != nil {
			return nil, err
		}
		if ok && among(s.ID, ids) && !r.NoDefaultVPC {
			found = append(found, x)
		}
	}
	slices.SortFunc(found, func(a, b subnetXML) int { return strings.Compare(a.ID, b.ID) })
	found, next, err := page(q, found, 1000, func(s subnetXML) string { return s.ID })
	if err != nil {
		return nil, err
	}
	return struct {
		Subnets set[subnetXML] `xml:"subnetSet"`
		listing
	}{setOf(found), listing{next}}, nil
}
