package options

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/cloud/about"
)

// Machines are the options that only instances of EC2 have.
type Machines struct {
	// Head is the type of one machine more, which leads; empty: there is none.
	Head         string
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

	// VPC and Subnet are ids, names, or KEY=VALUE of a tag. A name may be that of
	// several subnets, one in each zone.
	VPC string
	// Groups are security groups that exist: the nodes are in these alone.
	Groups []string
	// Reach is the way to the nodes; see the constants. Empty: public addresses
	// where the subnet has a route to the internet, else what there is.
	Reach string
	// Jump is the host through which ssh goes, as the user's own ssh knows it.
	Jump string

	Reservation    string  // of capacity: "cr-…", or a block of it
	SpotMaxPrice   float64 // of one machine and hour, US dollars; 0: the price on demand
	DiskIOPS       int     // of the root disk; 0: gp3's own
	DiskThroughput int     // of the root disk, MiB/s; 0: gp3's own
	KMSKey         string  // for the disks; empty: the account's own
	// Volumes are the data volumes by the path that they are mounted at; see Disks.
	Volumes map[string]string
	// Tags are put on everything besides dlwb's own.
	Tags map[string]string
	// UserData is what else the machines are told before they boot: a script, or a
	// document of cloud-init.
	UserData string
}

// The ways to the nodes.
const (
	ReachPublic   = "public"           // by the public address that each has
	ReachPrivate  = "private"          // by the private one: from within the VPC, or by a VPN
	ReachEndpoint = "instance-connect" // through an EC2 Instance Connect endpoint of the VPC
	ReachSSM      = "ssm"              // through Systems Manager, whose agent runs on the nodes
)

var table = []about.Option{
	{Key: "machines.spot_fallback", After: "machines.spot", Kind: about.Flag, Default: "false", Also: []string{"fallback"},
		Doc: "Whether to take machines on demand when there is no spare capacity in any zone.", Example: "true",
		Place: about.In(func(m *Machines) *bool { return &m.SpotFallback })},
	{Key: "machines.spot_max_price", Kind: about.Dollars, Also: []string{"bid", "spot_price"},
		Doc: "What a spot machine may cost per hour at most; without it, as much as on demand.", Example: "0.60",
		Place: about.In(func(m *Machines) *float64 { return &m.SpotMaxPrice })},
	{Key: "machines.reservation", Also: []string{"capacity_reservation", "capacity_block"},
		Doc: "The capacity reservation, or the capacity block for ML, that the machines use: its id. They stand in its zone.", Example: "cr-0123456789abcdef0",
		Place: about.In(func(m *Machines) *string { return &m.Reservation })},
	{Key: "machines.head_instance", After: "machines.disk", Also: []string{"head", "head_type"},
		Doc: "The type of one machine more, on demand, which leads the others and on which no rank trains: it has Ray's head and the driver of the job, or on EC2 the chief of TensorFlow's parameter servers, too. Without it: on EC2 none, on ECS `m5.xlarge`.", Example: "m5.2xlarge",
		Place: about.In(func(m *Machines) *string { return &m.Head })},
	{Key: "machines.disk_iops", After: "machines.disk", Kind: about.Count, Min: 0, Max: 80000, Default: "0", Also: []string{"iops"},
		Doc: "The operations a second of the disk; 0 means the 3000 that cost nothing more.", Example: "6000",
		Place: about.In(func(m *Machines) *int { return &m.DiskIOPS })},
	{Key: "machines.disk_throughput", Kind: about.Count, Min: 0, Max: 2000, Default: "0", Also: []string{"throughput"},
		Doc: "The throughput of the disk in MiB/s; 0 means the 125 that cost nothing more.", Example: "500",
		Place: about.In(func(m *Machines) *int { return &m.DiskThroughput })},
	{Key: "machines.kms_key", Also: []string{"kms", "encryption_key"},
		Doc: "The KMS key that the disks are encrypted with: an id, an alias or an ARN; without it, the account's key for EBS.", Example: "alias/training",
		Place: about.In(func(m *Machines) *string { return &m.KMSKey })},
	{Key: "machines.data_volumes", Kind: about.Pairs, Also: []string{"ebs", "disks"},
		Doc: "Disks for data, by the path that they are mounted at: `vol-…`, an EBS volume that exists, which is attached, formatted only when it is certainly blank, and stays " +
			"(one for each machine, with commas); a size, a new volume on each machine that is deleted with it; or `instance-store`, the NVMe disks of the type as one.",
		Example: "{/data: vol-0123456789abcdef0, /scratch: 500GB}",
		Place:   about.In(func(m *Machines) *map[string]string { return &m.Volumes })},
	{Key: "machines.vpc", Also: []string{"network"},
		Doc: "The VPC of the nodes: its id, its name, or a tag as KEY=VALUE; without it, that of the subnet, else the default VPC.", Example: "ml-lab",
		Place: about.In(func(m *Machines) *string { return &m.VPC })},
	{Key: "machines.subnet", Asked: true, Also: []string{"subnets"},
		Doc: "The subnet of the nodes: its id, its name, or a tag as KEY=VALUE, which may be that of one subnet in each zone; without it, those of the VPC.", Example: "subnet-0123456789abcdef0",
		Place: about.In(func(m *Machines) *string { return &m.Subnet })},
	{Key: "machines.security_groups", Kind: about.Words, Also: []string{"security_group", "sg", "groups"},
		Doc: "Security groups that exist, by id or name; the nodes are in these, and dlwb makes none. They have to let ssh in, and the nodes to each other.", Example: "[sg-0123456789abcdef0]",
		Place: about.In(func(m *Machines) *[]string { return &m.Groups })},
	{Key: "machines.reach", Asked: true, Also: []string{"connect", "access"},
		Doc: "The way to the nodes: `public`, `private` (from within the VPC, or by a VPN), `instance-connect` (through the VPC's EC2 Instance Connect endpoint; or the endpoint's id, eice-…), or `ssm`. " +
			"Without it, public addresses where the subnet has a route to the internet, else machines.jump, else an endpoint where the VPC has one.", Example: "instance-connect",
		Place: about.In(func(m *Machines) *string { return &m.Reach })},
	{Key: "machines.jump", Asked: true, Also: []string{"bastion", "proxy_jump", "proxyjump"},
		Doc: "The host through which ssh goes to the private addresses of the nodes, as your own ssh knows it: a name of ~/.ssh/config, or user@host:port.", Example: "ada@bastion.example.org",
		Place: about.In(func(m *Machines) *string { return &m.Jump })},
	{Key: "machines.user", Asked: true, Also: []string{"login", "ssh_user"},
		Doc: "Who logs in on the nodes; without it, the image's own user.", Example: "ubuntu",
		Place: about.In(func(m *Machines) *string { return &m.User })},
	{Key: "machines.ssh_port", Kind: about.Count, Min: 0, Max: 65535, Default: "0",
		Doc: "The port of sshd in the image; 0 means 22.", Example: "2222",
		Place: about.In(func(m *Machines) *int { return &m.SSHPort })},
	{Key: "machines.ssh_from", Kind: about.Networks, Also: []string{"source", "allowed_ips"},
		Doc: "The addresses and networks from which ssh to the nodes is allowed, for callers that go out by several (proxy, VPN, CGNAT); without it, the address that this machine has out there.", Example: "[203.0.113.0/24, 198.51.100.7]",
		Place: about.In(func(m *Machines) *[]string { return &m.SSHFrom })},
	{Key: "machines.instance_profile", Asked: true, Also: []string{"iam_role", "role"},
		Doc: "The IAM instance profile of the nodes, by which they save to `results.s3` themselves when their lease ends and nobody is attached; without it they have no credentials.", Example: "dlwb-results",
		Place: about.In(func(m *Machines) *string { return &m.InstanceProfile })},
	{Key: "machines.tags", Kind: about.Pairs, Also: []string{"labels"},
		Doc: "Tags for everything that is made, besides dlwb's own.", Example: "{project: charlm, cost-center: \"1234\"}",
		Place: about.In(func(m *Machines) *map[string]string { return &m.Tags })},
	{Key: "machines.user_data", Kind: about.Script, Also: []string{"cloud_init", "boot_script"},
		Doc:     "What the machines do at their first boot besides: a script that begins with #!, or a cloud-config document. It runs as root; what dlwb itself says to cloud-init stays as it is.",
		Example: `"#cloud-config\npackages: [nfs-common]"`,
		Place:   about.In(func(m *Machines) *string { return &m.UserData })},
}

func effects(own any) (all []about.Effect) {
	m := about.Own[Machines](own)
	add := func(kind string, unusual bool, text, value string) {
		if value != "" {
			all = append(all, about.Effect{Kind: kind, Unusual: unusual, Text: text + value})
		}
	}
	add(about.Pays, true, "the machines get the IAM instance profile ", m.InstanceProfile)
	add(about.Runs, true, "at the first boot of the machines, as root: ", strings.Join(strings.Fields(m.UserData), " "))
	add(about.Connects, true, "to the machines through ", m.Jump)
	if m.Reach == ReachSSM {
		add(about.Runs, false, "on this machine, AWS's own ", "session-manager-plugin")
	}
	add(about.Pays, false, "one machine more, on demand, to lead the others: ", m.Head)
	add(about.Pays, true, "the machines use the capacity reservation ", m.Reservation)
	add(about.Connects, true, "ssh to the machines is allowed from ", strings.Join(m.SSHFrom, ", "))
	// What runs there gets to whatever these let it.
	add(about.Pays, true, "the machines are in your security groups ", strings.Join(m.Groups, ", "))
	add(about.Pays, true, "the machines stand in your VPC ", m.VPC)
	add(about.Pays, true, "the machines stand in your subnet ", m.Subnet)
	add(about.Pays, true, "the disks are encrypted with the KMS key ", m.KMSKey)
	for _, p := range slices.Sorted(maps.Keys(m.Volumes)) {
		add(about.Pays, true, "the machines mount at "+p+": ", m.Volumes[p])
	}
	add(about.Pays, false, "everything gets the tags ", tagsText(m.Tags))
	return all
}

func tagsText(tags map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, key+"="+tags[key])
	}
	return strings.Join(all, ", ")
}

func paysAlso(own any) string {
	if about.Own[Machines](own).SpotFallback {
		return ", on demand where there is none"
	}
	return ""
}

func check(own any) (all []about.Fault) {
	m := about.Own[Machines](own)
	fault := func(key, why, next string) {
		all = append(all, about.Fault{Key: "machines." + key, Why: why, Next: next})
	}
	switch m.Reach {
	case "", ReachPublic, ReachPrivate, ReachEndpoint, ReachSSM:
	default:
		if !strings.HasPrefix(m.Reach, "eice-") {
			fault("reach", "there is no such way", "public, private, instance-connect, eice-… or ssm")
		}
	}
	if m.Reach != "" && m.Jump != "" {
		fault("jump", "machines.reach names another way", "keep one of the two")
	}
	if len(m.Groups) > 0 && len(m.SSHFrom) > 0 {
		fault("ssh_from", "dlwb changes nothing in security groups that exist", "leave out machines.ssh_from or machines.security_groups")
	}
	if most := max(m.DiskIOPS, defaultIOPS) / 4; m.DiskThroughput > most {
		fault("disk_throughput", "gp3 has at most 1 MiB/s for each 4 operations a second", "machines.disk_iops: "+strconv.Itoa(4*m.DiskThroughput))
	}
	for _, p := range slices.Sorted(maps.Keys(m.Volumes)) {
		if why := badVolume(p, m.Volumes[p]); why != "" {
			fault("data_volumes", why, "{/data: vol-0123456789abcdef0}, {/scratch: 500GB} or {/scratch: instance-store}")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Tags)) {
		if strings.HasPrefix(key, "aws:") || strings.HasPrefix(key, "dlwb:") || len(key) > 128 || len(m.Tags[key]) > 256 {
			fault("tags", "AWS and dlwb have the keys that begin with aws: and dlwb:, and a key has 128 characters at most, its value 256", "another key than "+key)
		}
	}
	if len(m.Tags) > 40 {
		fault("tags", "AWS puts 50 tags on a thing at most, of which dlwb needs some", "40 or fewer")
	}
	if u := m.UserData; u != "" && !strings.HasPrefix(u, "#!") && !strings.HasPrefix(u, "#cloud-config") {
		fault("user_data", "cloud-init would not know what it is", "begin it with #!/bin/sh or #cloud-config")
	}
	return all
}

// defaultIOPS is what a gp3 disk has by itself.
const defaultIOPS = 3000
