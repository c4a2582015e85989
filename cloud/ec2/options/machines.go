package options

import (
	"strings"

	"github.com/dlwb/dlwb/cloud/about"
)

// Machines are the options that only instances of EC2 have.
type Machines struct {
	SpotFallback bool // machines on demand when there is no spare capacity anywhere
	// Subnet is where the nodes stand; empty: the default VPC's, in the zone
	// that has room.
	Subnet  string
	User    string // who logs in; empty: the image's own
	SSHPort int    // 0: 22
	// SSHFrom are the addresses and networks from which ssh is allowed; none: the
	// caller's address alone.
	SSHFrom []string
	// InstanceProfile lets the nodes write to S3; empty: they have no
	// credentials at all.
	InstanceProfile string
}

var table = []about.Option{
	{Key: "machines.spot_fallback", After: "machines.spot", Kind: about.Flag, Default: "false", Also: []string{"fallback"},
		Doc: "Whether to take machines on demand when there is no spare capacity in any zone.", Example: "true",
		Place: about.In(func(m *Machines) *bool { return &m.SpotFallback })},
	{Key: "machines.subnet", After: "machines.disk", Also: []string{"vpc"},
		Doc: "The subnet of the nodes; without it, the default VPC's, in a zone that has room.", Example: "subnet-0123456789abcdef0",
		Place: about.In(func(m *Machines) *string { return &m.Subnet })},
	{Key: "machines.user", Also: []string{"login", "ssh_user"},
		Doc: "Who logs in on the nodes; without it, the image's own user.", Example: "ubuntu",
		Place: about.In(func(m *Machines) *string { return &m.User })},
	{Key: "machines.ssh_port", Kind: about.Count, Min: 0, Max: 65535, Default: "0",
		Doc: "The port of sshd in the image; 0 means 22.", Example: "2222",
		Place: about.In(func(m *Machines) *int { return &m.SSHPort })},
	{Key: "machines.ssh_from", Kind: about.Networks, Also: []string{"source", "allowed_ips"},
		Doc: "The addresses and networks from which ssh to the nodes is allowed, for callers that go out by several (proxy, VPN, CGNAT); without it, the address that this machine has out there.", Example: "[203.0.113.0/24, 198.51.100.7]",
		Place: about.In(func(m *Machines) *[]string { return &m.SSHFrom })},
	{Key: "machines.instance_profile", Also: []string{"iam_role", "role"},
		Doc: "The IAM instance profile that lets the nodes write to `results.s3`; without it they have no credentials.", Example: "dlwb-results",
		Place: about.In(func(m *Machines) *string { return &m.InstanceProfile })},
}

func effects(own any) (all []about.Effect) {
	m := about.Own[Machines](own)
	if m.InstanceProfile != "" {
		all = append(all, about.Effect{Kind: about.Pays, Unusual: true, Text: "the machines get the IAM instance profile " + m.InstanceProfile})
	}
	if len(m.SSHFrom) > 0 {
		all = append(all, about.Effect{Kind: about.Connects, Unusual: true, Text: "ssh to the machines is allowed from " + strings.Join(m.SSHFrom, ", ")})
	}
	return all
}

func paysAlso(own any) string {
	if about.Own[Machines](own).SpotFallback {
		return ", on demand where there is none"
	}
	return ""
}
