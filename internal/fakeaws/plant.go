package fakeaws

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// Planted is something that is there without a call: somebody else's, or what
// an earlier life has left.
type Planted struct {
	// Kind is AWS's word for it: "instance", "volume", "network-interface",
	// "security-group", "key-pair", "placement-group", "elastic-ip",
	// "spot-instances-request".
	Kind   string
	Region string
	Name   string // of a group, a key pair or a placement group; empty: a random one
	Tags   map[string]string
	// State is an instance's: "running" (if empty), "stopped" or
	// "terminated"; or a spot request's: "active" (if empty), "open",
	// "closed".
	State string
	Type  string // of an instance; empty: "c5.large"
	Token string // the client token that launched an instance
	// Instance is what a volume, an interface or a spot request belongs to;
	// empty: to none.
	Instance  string
	Groups    []string // ids, of an instance or an interface
	Placement string   // name, of an instance's placement group
	// Age is how long ago it was made.
	Age time.Duration
}

// Plant puts something there and gives its id.
func (s *Server) Plant(p Planted) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.must(p.Region)
	orElse(&p.Name, fmt.Sprintf("planted-%x", wire.Random(4)))
	made := s.clock.Now().Add(-p.Age)
	zone := r.zones()[0]
	own := func(prefix string) common { return common{wire.NewID(prefix), maps.Clone(p.Tags)} }
	switch p.Kind {
	case "instance":
		return r.plantInstance(p, own("i"), made)
	case "volume":
		c := own("vol")
		r.volumes.plant(volume{common: c, Zone: zone, Type: "gp3", SizeGB: 100, IOPS: 3000, Instance: p.Instance, Device: "/dev/sdf", Made: made})
		return c.ID
	case "network-interface":
		c := own("eni")
		r.interfaces.plant(netInterface{common: c, Zone: zone, Subnet: r.subnets[0].ID, Kind: "interface", PrivateIP: r.privateIP(zone), MAC: mac(),
			Groups: p.Groups, Instance: p.Instance, Device: 1, Made: made})
		return c.ID
	case "security-group":
		c := own("sg")
		r.groups.plant(group{common: c, Name: p.Name, Description: "planted", VPC: r.vpc, Out: []rule{anywhere(wire.NewID("sgr"))}})
		return c.ID
	case "key-pair":
		c := own("key")
		r.keys.plant(keyPair{common: c, Name: p.Name, Type: "ed25519", Fingerprint: "planted", Made: made})
		return c.ID
	case "placement-group":
		c := own("pg")
		r.placements.plant(placement{common: c, Name: p.Name, Strategy: "cluster"})
		return c.ID
	case "elastic-ip":
		c := own("eipalloc")
		r.addresses.plant(address{common: c, IP: s.publicIP()})
		return c.ID
	case "spot-instances-request":
		c := common{newSpotID(), maps.Clone(p.Tags)}
		orElse(&p.State, "active")
		r.spots.plant(spotRequest{common: c, Instance: p.Instance, Zone: zone, Type: "c5.large", Image: r.images[0].ID, Price: "0.085", State: p.State,
			Status: "fulfilled", Made: made, Updated: made, Interruption: "terminate"})
		return c.ID
	}
	panic("fakeaws: can not plant a " + p.Kind)
}

func (r *region) plantInstance(p Planted, c common, made time.Time) string {
	orElse(&p.Type, "c5.large")
	orElse(&p.State, running)
	zone := r.zones()[0]
	t, ok := r.s.byName[p.Type]
	if !ok {
		panic("fakeaws: no instance type " + p.Type)
	}
	if len(p.Groups) == 0 {
		p.Groups = []string{wire.FixedID("sg", r.Name)}
	}
	m := &machine{none: true, up: p.State == running, publicIP: r.s.publicIP(), runs: []span{{from: made}}}
	i := instance{common: c, Reservation: wire.NewID("r"), ClientToken: p.Token, Zone: zone, Subnet: r.subnets[0].ID, Image: r.images[0].ID, Type: p.Type,
		Arch: t.Arch, Root: "/dev/sda1", Groups: p.Groups, Placement: p.Placement, PrivateIP: r.privateIP(zone), Launched: made, Behaviour: "stop",
		Tokens: "optional", Hops: 1, Want: p.State, Since: made, Until: made.Add(time.Second), Price: r.price(t, zone, false), m: m}
	if i.Want != running {
		i.Code, i.Why, i.Transition = byUser, byUser+": User initiated shutdown", "User initiated"
		m.runs[0].to = made
	}
	r.instances.plant(i)
	r.lasting[i.ID] = true
	if i.Want != terminated {
		r.interfaces.plant(netInterface{common: common{wire.NewID("eni"), maps.Clone(p.Tags)}, Zone: zone, Subnet: i.Subnet, Kind: "interface", PrivateIP: i.PrivateIP,
			MAC: mac(), Groups: p.Groups, Instance: i.ID, Public: true, DeleteOnTermination: true, Made: made})
		r.volumes.plant(volume{common: common{wire.NewID("vol"), maps.Clone(p.Tags)}, Zone: zone, Device: "/dev/sda1", Type: "gp3", SizeGB: 65, IOPS: 3000,
			DeleteOnTermination: true, Instance: i.ID, Made: made})
	}
	return i.ID
}

// kinds are all that can be planted.
var kinds = []string{"instance", "volume", "network-interface", "security-group", "key-pair", "placement-group", "elastic-ip", "spot-instances-request"}

// PlantAccount fills the enabled regions with up to most things of all kinds,
// with the tags that a function gives to each; instances use some of the
// groups. It gives their ids.
func (s *Server) PlantAccount(rnd *rand.Rand, most int, tagsOf func(kind string) map[string]string) []string {
	var regions []string
	for _, r := range s.regions {
		if !r.Disabled {
			regions = append(regions, r.Name)
		}
	}
	var ids []string
	groups := map[string][]string{}
	for range rnd.IntN(most + 1) {
		p := Planted{Kind: kinds[rnd.IntN(len(kinds))], Region: regions[rnd.IntN(len(regions))], Age: time.Duration(rnd.Int64N(int64(100 * time.Hour)))}
		p.Tags = tagsOf(p.Kind)
		if p.Kind == "instance" {
			p.State = []string{running, running, stopped, terminated}[rnd.IntN(4)]
			p.Groups = groups[p.Region]
		}
		id := s.Plant(p)
		if p.Kind == "security-group" && len(groups[p.Region]) < 5 {
			groups[p.Region] = append(slices.Clone(groups[p.Region]), id)
		}
		ids = append(ids, id)
	}
	return ids
}
