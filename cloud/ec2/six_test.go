package ec2

import (
	"context"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// sixes is a region with subnets of IPv6: one that is reached by it, one that only
// goes out, and one with both families in which IPv6 alone leads in.
func sixes() fakeaws.Options {
	return fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1", NoDefaultVPC: true, VPCs: []fakeaws.VPC{
		{Name: "six", Subnets: []fakeaws.Subnet{{Name: "in", Zone: "a", IPv6: "only", In6: true}, {Name: "out", Zone: "b", IPv6: "only"}}},
		{Name: "two", Subnets: []fakeaws.Subnet{{Name: "mixed", Zone: "a", Private: true, IPv6: "also", In6: true}, {Name: "plain", Zone: "b", IPv6: "also", In6: true}}},
		{Name: "old", Endpoint: true, Subnets: []fakeaws.Subnet{{Name: "deep4", Zone: "a", IPv6: "only"}}},
		{Name: "new", Endpoint: true, Opens: "dualstack", Subnets: []fakeaws.Subnet{{Name: "deep6", Zone: "a", IPv6: "only"}}},
	}}}}
}

func sixRig(t *testing.T, m options.Machines) *rig {
	r := newRig(t, sixes())
	r.spec.Own = &m
	return r
}

func TestMachinesOfIPv6AreReachedByItAndReachEachOther(t *testing.T) {
	bastion := func(context.Context, string, bool) ([]cloud.Jump, error) {
		return []cloud.Jump{{Name: "bastion", Addr: "bastion.example.org:22", User: "ada", HostKey: "ssh-ed25519 AAAA"}}, nil
	}
	for name, c := range map[string]struct {
		own    options.Machines
		zone   string
		only   bool
		in     string // who the group lets in, by IPv6
		public string // what is asked of a public IPv4 address
		way    string
	}{
		"a subnet of IPv6 alone":      {own: options.Machines{Subnet: "in"}, zone: "us-east-1a", only: true, in: "::1/128"},
		"a VPC of IPv6 alone":         {own: options.Machines{VPC: "six"}, zone: "us-east-1a", only: true, in: "::1/128"},
		"IPv6 where it alone leads":   {own: options.Machines{Subnet: "mixed"}, zone: "us-east-1a", in: "::1/128", public: "false"},
		"a jump host":                 {own: options.Machines{Subnet: "out", Jump: "bastion"}, zone: "us-east-1b", only: true, in: "2600:1f18::/56"},
		"from within":                 {own: options.Machines{Subnet: "out", Reach: "private"}, zone: "us-east-1b", only: true, in: "2600:1f18::/56"},
		"an endpoint that opens both": {own: options.Machines{Subnet: "deep6"}, zone: "us-east-1a", only: true, way: "instance-connect:"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sixRig(t, c.own)
			p := r.provider()
			p.jumpTo = bastion
			got, err := p.Up(t.Context(), r.life, r.spec, r.say)
			if err != nil {
				t.Fatal(err)
			}
			launch := r.calls("RunInstances")[0].Params
			metadata := ""
			if c.only {
				metadata = "enabled"
			}
			for key, want := range map[string]string{"Placement.AvailabilityZone": c.zone, "NetworkInterface.1.Ipv6AddressCount": "1",
				"NetworkInterface.1.AssociatePublicIpAddress": c.public, "MetadataOptions.HttpProtocolIpv6": metadata} {
				if launch.Get(key) != want {
					t.Errorf("%s is %q, want %q", key, launch.Get(key), want)
				}
			}
			for _, n := range got.Nodes {
				if !strings.HasPrefix(n.Addr, "[2600:1f18:") || !strings.HasSuffix(n.Addr, "]:22") || n.PeerHost != strings.TrimSuffix(n.Addr[1:], "]:22") || !strings.HasPrefix(n.Way, c.way) {
					t.Errorf("the node is %+v", n)
				}
			}
			let := ""
			for _, call := range r.calls("AuthorizeSecurityGroupIngress") {
				let += call.Params.Get("IpPermissions.1.Ipv6Ranges.1.CidrIpv6")
			}
			if let != c.in {
				t.Errorf("ssh is let in from %q, want %q", let, c.in)
			}
			for _, cost := range got.Costs {
				if strings.Contains(cost.What, "address") && cost.PerHour != 0 {
					t.Errorf("it costs %+v", cost)
				}
			}
			r.down()
		})
	}
}

func TestWhereIPv4LeadsInItIsUsed(t *testing.T) {
	r := sixRig(t, options.Machines{Subnet: "plain"})
	c := r.up()
	if strings.HasPrefix(c.Nodes[0].Addr, "[") || r.calls("RunInstances")[0].Params.Get("NetworkInterface.1.Ipv6AddressCount") != "" {
		t.Errorf("the node is %+v", c.Nodes[0])
	}
	r.down()
}

// Machines with several cards for EFA have a way to the internet all the same: AWS
// gives them no public IPv4 address, and an IPv6 one it does.
func TestAllCardsForEFAAreUsedByIPv6(t *testing.T) {
	r := sixRig(t, options.Machines{Subnet: "in"})
	r.spec.Instance = "p5.48xlarge"
	r.aws.SetQuota("us-east-1", "L-417A185B", 10000)
	c := r.up()
	if efa := r.calls("RunInstances")[0].Params.Get("NetworkInterface.32.InterfaceType"); efa != efaOnly || !strings.HasPrefix(c.Nodes[0].Addr, "[") {
		t.Errorf("%q, %+v", efa, c.Nodes[0])
	}
	r.down()
}

func TestWhatIPv6LacksIsFoundBeforeAnythingIsPaid(t *testing.T) {
	for name, c := range map[string]struct {
		own      options.Machines
		instance string
		what     string
		words    []string
	}{
		"no way in":                {own: options.Machines{Subnet: "out"}, what: "network", words: []string{"no route ::/0 to an internet gateway", "machines.jump"}},
		"no public way in":         {own: options.Machines{Subnet: "out", Reach: "public"}, what: "network", words: []string{"::/0"}},
		"an endpoint of IPv4":      {own: options.Machines{Subnet: "deep4", Reach: "instance-connect"}, what: "network", words: []string{"no EC2 Instance Connect endpoint that can be used"}},
		"an old machine":           {own: options.Machines{Subnet: "in"}, instance: "m4.xlarge", what: "network", words: []string{"m4.xlarge is none", "Nitro"}},
		"a caller without IPv6":    {own: options.Machines{Subnet: "in", SSHFrom: []string{"203.0.113.7"}}, what: "address", words: []string{"203.0.113.7/32 has no IPv6 address", "machines.jump"}},
		"a caller with IPv6 alone": {own: options.Machines{Subnet: "plain", SSHFrom: []string{"2001:db8::7"}}, what: "address", words: []string{"2001:db8::7/128 has no IPv4 address", "machines.ssh_from"}},
		"what Systems Manager's":   {own: options.Machines{Subnet: "out", Reach: "ssm"}, what: "network", words: []string{"session-manager-plugin"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := sixRig(t, c.own)
			if c.instance != "" {
				r.spec.Instance = c.instance
			}
			found := r.provider().Check(t.Context(), r.spec)
			said := ""
			for _, f := range found.Findings {
				if f.What == c.what {
					said = f.Text + "\n" + f.Next
					if f.OK {
						t.Errorf("it is fine: %s", said)
					}
				}
			}
			for _, w := range c.words {
				if !strings.Contains(said, w) {
					t.Errorf("%s does not say %q: %s", c.what, w, said)
				}
			}
			if _, err := r.provider().Up(t.Context(), r.life, r.spec, r.say); err == nil && c.own.Reach != "ssm" || r.aws.Launched() > 0 && c.own.Reach != "ssm" {
				t.Errorf("machines were made: %v", err)
			}
			r.down()
		})
	}
}
