package ec2

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// lab is a region with VPCs as companies have them: one with a public and private
// subnets and an endpoint, one that nobody gets into.
func lab() fakeaws.Options {
	return fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1", NoDefaultVPC: true, VPCs: []fakeaws.VPC{
		{Name: "ml-lab", Endpoint: true, Subnets: []fakeaws.Subnet{
			{Name: "private-a", Zone: "a", Private: true}, {Name: "private-b", Zone: "b", Private: true}, {Name: "public-c", Zone: "c"}}},
		{Name: "vault", Subnets: []fakeaws.Subnet{{Name: "deep", Zone: "a", Private: true}}},
		{Name: "shown", Endpoint: true, ShowsClient: true, Subnets: []fakeaws.Subnet{{Name: "inner", Zone: "b", Private: true}}},
	}}}}
}

// labRig is a rig in such a region.
func labRig(t *testing.T, m options.Machines) *rig {
	r := newRig(t, lab())
	m.SSHFrom = nil
	r.spec.Count, r.spec.Own = 1, &m
	return r
}

// rulesOf are the sources that the cluster's own security group lets in.
func (r *rig) rulesOf() (in []string) {
	r.Helper()
	for _, c := range r.calls("AuthorizeSecurityGroupIngress") {
		for _, name := range []string{"IpRanges.1.CidrIp", "Groups.1.GroupId"} {
			if v := c.Params.Get("IpPermissions.1." + name); v != "" && c.Params.Get("IpPermissions.1.IpProtocol") == "tcp" {
				in = append(in, v)
			}
		}
	}
	return in
}

func TestMachinesOfAPrivateSubnetAreReachedByWhatThereIs(t *testing.T) {
	bastion := func(context.Context, string, bool) ([]cloud.Jump, error) {
		return []cloud.Jump{{Name: "bastion", Addr: "bastion.example.org:22", User: "ada", HostKey: "ssh-ed25519 AAAA"}}, nil
	}
	endpoint := fakeaws.EndpointID("us-east-1", "ml-lab")
	for name, c := range map[string]struct {
		own    options.Machines
		zone   string
		public bool
		way    string
		in     string
		jumps  int
	}{
		"the endpoint by itself":  {own: options.Machines{Subnet: "private-b"}, zone: "us-east-1b", way: "instance-connect:" + endpoint, in: fakeaws.EndpointGroup("us-east-1", "ml-lab")},
		"the endpoint, asked for": {own: options.Machines{VPC: "ml-lab", Reach: "instance-connect"}, zone: "us-east-1a", way: "instance-connect:" + endpoint, in: fakeaws.EndpointGroup("us-east-1", "ml-lab")},
		"the endpoint by its id":  {own: options.Machines{VPC: "ml-lab", Reach: endpoint}, zone: "us-east-1a", way: "instance-connect:" + endpoint, in: fakeaws.EndpointGroup("us-east-1", "ml-lab")},
		"an endpoint that shows":  {own: options.Machines{VPC: "shown"}, zone: "us-east-1b", way: "instance-connect:" + fakeaws.EndpointID("us-east-1", "shown"), in: "127.0.0.1/32"},
		"the public subnet first": {own: options.Machines{VPC: "ml-lab"}, zone: "us-east-1c", public: true, in: "127.0.0.1/32"},
		"a VPC by its id":         {own: options.Machines{VPC: fakeaws.VPCID("us-east-1", "ml-lab")}, zone: "us-east-1c", public: true, in: "127.0.0.1/32"},
		"a VPC by a tag":          {own: options.Machines{VPC: "Name=ml-lab"}, zone: "us-east-1c", public: true, in: "127.0.0.1/32"},
		"a jump host":             {own: options.Machines{Subnet: "deep", Jump: "bastion"}, zone: "us-east-1a", in: "10.1.0.0/16", jumps: 1},
		"from within":             {own: options.Machines{Subnet: "deep", Reach: "private"}, zone: "us-east-1a", in: "10.1.0.0/16"},
		"Systems Manager":         {own: options.Machines{Subnet: "deep", Reach: "ssm"}, zone: "us-east-1a", way: "ssm"},
	} {
		t.Run(name, func(t *testing.T) {
			r := labRig(t, c.own)
			p := r.provider()
			p.jumpTo = bastion
			got, err := p.Up(t.Context(), r.life, r.spec, r.say)
			if err != nil {
				t.Fatal(err)
			}
			n := got.Nodes[0]
			host, _, _ := net.SplitHostPort(n.Addr)
			if got.Zone != c.zone || (host != n.PeerHost) != c.public || !strings.HasPrefix(n.Way, c.way) || (n.Way == "") != (c.way == "") || len(n.Jumps) != c.jumps {
				t.Errorf("%s: %+v", got.Zone, n)
			}
			if in := r.rulesOf(); strings.Join(in, " ") != c.in {
				t.Errorf("ssh is let in from %v, want %s", in, c.in)
			}
			launched := r.calls("RunInstances")[0].Params
			if said := launched.Get("NetworkInterface.1.AssociatePublicIpAddress"); said != fmt.Sprint(c.public) {
				t.Errorf("a public address: %s", said)
			}
			if paid := slices.ContainsFunc(got.Costs, func(c cloud.Cost) bool { return strings.Contains(c.What, "address") && c.PerHour > 0 }); paid != c.public {
				t.Errorf("costs %+v", got.Costs)
			}
			r.down()
		})
	}
}

// A plan says what is missing before anything is paid.
func TestAPlanSaysWhichWayLeadsToAPrivateSubnet(t *testing.T) {
	for name, c := range map[string]struct {
		own  options.Machines
		ok   bool
		says []string
	}{
		"an endpoint":      {options.Machines{Subnet: "private-a"}, true, []string{"Instance Connect endpoint eice-", "us-east-1a"}},
		"nothing":          {options.Machines{Subnet: "deep"}, false, []string{"no route to an internet gateway", "create-instance-connect-endpoint", "machines.jump", "ssm"}},
		"no endpoint":      {options.Machines{Subnet: "deep", Reach: "instance-connect"}, false, []string{"has no EC2 Instance Connect endpoint"}},
		"public, asked":    {options.Machines{Subnet: "deep", Reach: "public"}, false, []string{"no route to an internet gateway"}},
		"no such VPC":      {options.Machines{VPC: "lab"}, false, []string{"no VPC lab", "describe-vpcs"}},
		"no such subnet":   {options.Machines{Subnet: "lab"}, false, []string{"no subnet lab", "describe-subnets"}},
		"no default VPC":   {options.Machines{}, false, []string{"no default VPC", "machines.vpc"}},
		"a jump host lost": {options.Machines{Subnet: "deep", Jump: "nobody"}, false, []string{"nobody: there is no such host"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := labRig(t, c.own)
			p := r.provider()
			p.jumpTo = func(_ context.Context, name string, _ bool) ([]cloud.Jump, error) {
				return nil, fmt.Errorf("%s: there is no such host", name)
			}
			f := findingOf(t, p.Check(t.Context(), r.spec), "network")
			if f.OK != c.ok {
				t.Errorf("%+v", f)
			}
			for _, want := range c.says {
				if !strings.Contains(f.Text+f.Next, want) {
					t.Errorf("%q is not in %+v", want, f)
				}
			}
			if n := r.aws.Launched(); n > 0 || len(r.aws.Left()) > 0 {
				t.Error("a plan has made something")
			}
		})
	}
}

// echo is the machine of an instance: it sends back what it gets.
type echo struct{ at string }

func (e echo) Boot(*fakeaws.Instance) (*fakeaws.Machine, error) {
	host, _, err := net.SplitHostPort(e.at)
	return &fakeaws.Machine{PrivateIP: host}, err
}
func (echo) Halt(string, bool) {}
func (echo) Remove(string)     {}

// The bytes go through the endpoint, by a request that is signed, and only because
// the security group lets the endpoint in.
func TestATunnelLeadsToTheMachine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	o := lab()
	o.Boot = echo{l.Addr().String()}
	r := newRig(t, o)
	r.spec.Count, r.spec.Own = 1, &options.Machines{Subnet: "private-a", SSHPort: l.Addr().(*net.TCPAddr).Port}
	c := r.up()
	p := r.provider()
	conn, err := p.Reach(t.Context(), c, c.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" || r.aws.Tunnels() != 1 {
		t.Errorf("%q %v, %d tunnels", got, err, r.aws.Tunnels())
	}
	other := c.Nodes[0]
	other.Addr = "127.0.0.1:1" // the group lets nobody in there
	if _, err := p.Reach(t.Context(), c, other); err == nil || !strings.Contains(err.Error(), "do not let the endpoint in") {
		t.Error(err)
	}
	r.down()
}

// Groups that exist are used as they are, none is made, and they stay.
func TestSecurityGroupsThatExistAreUsedAndStay(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Own = &options.Machines{Groups: []string{"default"}}
	f := findingOf(t, r.provider().Check(t.Context(), r.spec), "address")
	if !f.OK || !strings.Contains(f.Text, "let no ssh in from 127.0.0.1/32") { // a warning: a prefix list or a VPN may do it
		t.Errorf("%+v", f)
	}
	r.up()
	if made := r.calls("CreateSecurityGroup"); slices.ContainsFunc(made, func(c fakeaws.Call) bool { return !c.DryRun }) {
		t.Error("a group was made")
	}
	if got := r.calls("RunInstances"); got[len(got)-1].Params.Get("NetworkInterface.1.SecurityGroupId.1") == "" {
		t.Error("no group at the launch")
	}
	r.down()
	r.spec.Own = &options.Machines{Groups: []string{"nobody"}}
	if f := findingOf(t, r.provider().Check(t.Context(), r.spec), "address"); f.OK || !strings.Contains(f.Text, "no security group nobody") {
		t.Errorf("%+v", f)
	}
}
