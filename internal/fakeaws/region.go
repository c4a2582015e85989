package fakeaws

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws/image"
	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// region has all that exists in one region.
type region struct {
	Region
	s *Server

	instances  *table[instance]
	volumes    *table[volume]
	interfaces *table[netInterface]
	groups     *table[group]
	keys       *table[keyPair]
	placements *table[placement]
	addresses  *table[address]
	spots      *table[spotRequest]

	vpc      string
	subnets  []subnet
	others   []subnet // of VPCs that somebody has made
	images   []image.AMI
	tokens   map[string]launch // of RunInstances, by client token
	capacity map[place]int     // that there is; no entry: no end of it
	quotas   map[string]float64
	lasting  map[string]bool // ids of the instances that have not ended
	nextIP   int
}

// place is a type in a zone, for one way to pay.
type place struct {
	zone, kind string
	spot       bool
}

// launch is what a client token was used for.
type launch struct {
	params      string
	reservation string
	ids         []string
}

// subnet is a part of a VPC in one zone.
type subnet struct {
	ID, Zone, ZoneID, CIDR string
	VPC, Name              string
	Private                bool
	Default                bool // the default VPC's of that zone
	Six, CIDR6             string
	In6                    bool
}

// only reports whether machines in it have no IPv4 address.
func (s subnet) only() bool { return s.Six == "only" }

func newRegion(s *Server, o Region) *region {
	if len(o.Zones) == 0 {
		o.Zones = []string{"a", "b", "c"}
	}
	r := &region{Region: o, s: s,
		instances: newTable[instance](s), volumes: newTable[volume](s), interfaces: newTable[netInterface](s),
		groups: newTable[group](s), keys: newTable[keyPair](s), placements: newTable[placement](s),
		addresses: newTable[address](s), spots: newTable[spotRequest](s),
		vpc: wire.FixedID("vpc", o.Name), tokens: map[string]launch{}, capacity: map[place]int{},
		quotas: map[string]float64{}, lasting: map[string]bool{}}
	for i, letter := range o.Zones {
		r.subnets = append(r.subnets, subnet{ID: wire.FixedID("subnet", o.Name+letter), Zone: o.Name + letter, VPC: r.vpc,
			ZoneID: zoneID(o.Name, i), CIDR: fmt.Sprintf("172.31.%d.0/20", i*16), Default: true, Private: slices.Contains(o.Private, letter)})
	}
	for v, vpc := range o.VPCs {
		for i, made := range vpc.Subnets {
			zone, _ := r.subnetOf(o.Name + made.Zone)
			r.others = append(r.others, subnet{ID: SubnetID(o.Name, vpc.Name, made.Name), Zone: zone.Zone, ZoneID: zone.ZoneID,
				CIDR: fmt.Sprintf("10.%d.%d.0/24", v, i), VPC: VPCID(o.Name, vpc.Name), Name: made.Name, Private: made.Private, Six: made.IPv6, In6: made.In6})
			if s := &r.others[len(r.others)-1]; s.Six != "" {
				s.CIDR6 = fmt.Sprintf("2600:1f18:%x:%x::/64", v, i)
				if s.only() {
					s.CIDR = ""
				}
			}
		}
	}
	r.images = image.In(o.Name)
	for _, vpc := range o.VPCs {
		if vpc.Endpoint {
			r.groups.plant(group{common: common{ID: EndpointGroup(o.Name, vpc.Name)}, Name: "endpoint", Description: "of the endpoint",
				VPC: VPCID(o.Name, vpc.Name), Out: []rule{anywhere(wire.FixedID("sgr", o.Name+vpc.Name))}})
		}
	}
	r.groups.plant(group{common: common{ID: wire.FixedID("sg", o.Name)}, Name: "default",
		Description: "default VPC security group", VPC: r.vpc,
		In:  []rule{{Egress: false, Proto: "-1", From: -1, To: -1, Group: wire.FixedID("sg", o.Name), ID: wire.FixedID("sgr", o.Name)}},
		Out: []rule{anywhere(wire.FixedID("sgr", o.Name+"out"))}})
	return r
}

// tables are all kinds of things of the region, by what AWS calls them.
func (r *region) tables() map[string]anyTable {
	return map[string]anyTable{"instance": r.instances, "volume": r.volumes, "network-interface": r.interfaces,
		"security-group": r.groups, "key-pair": r.keys, "placement-group": r.placements,
		"elastic-ip": r.addresses, "spot-instances-request": r.spots}
}

// zoneID is a zone's name that is the same in all accounts. As in real
// accounts the letters do not tell it: zone a is not the first one.
func zoneID(region string, i int) string {
	short := map[string]string{"us-east-1": "use1", "us-east-2": "use2", "us-west-2": "usw2",
		"eu-central-1": "euc1", "ap-east-1": "ape1"}[region]
	orElse(&short, region)
	return fmt.Sprintf("%s-az%d", short, (i+2)%6+1)
}

func (r *region) zones() []string {
	var out []string
	for _, s := range r.subnets {
		out = append(out, s.Zone)
	}
	return out
}

func (r *region) subnetOf(zone string) (subnet, bool) {
	i := slices.IndexFunc(r.subnets, func(s subnet) bool { return s.Zone == zone })
	if i < 0 {
		return subnet{}, false
	}
	return r.subnets[i], true
}

func (r *region) subnet(id string) (subnet, bool) {
	all := r.allSubnets()
	i := slices.IndexFunc(all, func(s subnet) bool { return s.ID == id })
	if i < 0 {
		return subnet{}, false
	}
	return all[i], true
}

// allSubnets are those of all VPCs.
func (r *region) allSubnets() []subnet { return slices.Concat(r.subnets, r.others) }

// hasVPC reports whether there is a VPC of that id.
func (r *region) hasVPC(id string) bool {
	return id == r.vpc || slices.ContainsFunc(r.VPCs, func(v VPC) bool { return VPCID(r.Name, v.Name) == id })
}

// privateIP is a free address in a zone.
func (r *region) privateIP(zone string) string {
	r.nextIP++
	i := slices.Index(r.zones(), zone)
	return fmt.Sprintf("172.31.%d.%d", i*16+(r.nextIP/250)%16, r.nextIP%250+4)
}

// ipv6 is a free address of a subnet.
func (r *region) ipv6(s subnet) string {
	r.nextIP++
	return strings.TrimSuffix(s.CIDR6, "/64") + fmt.Sprintf("%x", 16+r.nextIP)
}

// publicIP is an address of the documentation's nets: nobody's.
func (s *Server) publicIP() string {
	s.orders++
	return fmt.Sprintf("203.0.%d.%d", 113+s.orders/250%100, s.orders%250+2)
}

// settle brings the records up to the virtual now: what ended instances leave.
func (s *Server) settle() {
	now := s.clock.Now()
	for _, r := range s.regions {
		for id := range r.lasting {
			if i, ok := r.instances.get(id); ok && i.state(now) == terminated {
				delete(r.lasting, id)
				r.clean(i)
			}
		}
		for _, t := range r.tables() {
			t.purge(now)
		}
	}
}

// clean ends what an instance takes with it.
func (r *region) clean(i instance) {
	for _, v := range r.volumes.all() {
		if v.Instance != i.ID {
			continue
		}
		if v.DeleteOnTermination {
			r.volumes.remove(v.ID)
			continue
		}
		v.Instance = ""
		r.volumes.put(v)
	}
	for _, n := range r.interfaces.all() {
		if n.Instance != i.ID {
			continue
		}
		r.detach(n.ID)
		if n.DeleteOnTermination {
			r.interfaces.remove(n.ID)
			continue
		}
		n.Instance = ""
		r.interfaces.put(n)
	}
	r.endRequest(i)
}

// forgotten reports whether an instance ended so long ago that it is no longer
// listed.
func (r *region) forgotten(i instance, now time.Time) bool {
	return i.state(now) == terminated && now.After(i.endedAt().Add(r.s.opt.Linger))
}
