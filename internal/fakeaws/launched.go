package fakeaws

import (
	"slices"
	"strconv"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// orderNetwork reads the interfaces; without any there is one in the default
// subnet.
func (q *request) orderNetwork(o *order) error {
	asked := q.each("NetworkInterface")
	groups, err := q.launchGroups(q.params)
	if err != nil {
		return err
	}
	if len(asked) == 0 {
		o.nics = []netInterface{{Groups: groups, Kind: "interface", Public: true, DeleteOnTermination: true}}
		return nil
	}
	if q.has("SecurityGroupId.1") || q.has("SecurityGroup.1") {
		return bad("InvalidParameterCombination", "Network interfaces and an instance-level security groups may not be specified on the same request")
	}
	efa := 0
	for _, p := range asked {
		n, err := q.orderInterface(o, p, len(asked))
		if err != nil {
			return err
		}
		if n.Kind == "efa" || n.Kind == "efa-only" {
			efa++
		}
		o.nics = append(o.nics, n)
	}
	if efa > o.kind.EFAs {
		return bad("AttachmentLimitExceeded", "EFA interfaces (%d) exceed the limit (%d) of instance type %s.", efa, o.kind.EFAs, o.kind.Name)
	}
	return nil
}

func (q *request) orderInterface(o *order, p params, of int) (n netInterface, err error) {
	n = netInterface{Kind: p.str("InterfaceType"), Card: p.num("NetworkCardIndex", 0), Device: p.num("DeviceIndex", -1),
		Description: p.str("Description"), DeleteOnTermination: p.flag("DeleteOnTermination", true)}
	orElse(&n.Kind, "interface")
	switch {
	case !slices.Contains([]string{"interface", "efa", "efa-only"}, n.Kind):
		return n, bad("InvalidParameterValue", "Value (%s) for parameter interfaceType is invalid.", n.Kind)
	case n.Kind != "interface" && !o.kind.EFA:
		return n, bad("InvalidParameterCombination", "EFA interfaces are not supported on %s", o.kind.Name)
	case n.Device < 0:
		return n, bad("MissingParameter", "Each network interface requires a device index.")
	case n.Kind == "efa-only" && n.Device == 0 && n.Card == 0:
		return n, bad("InvalidParameterCombination", "The primary network interface can not be of the type efa-only.")
	case n.Kind != "interface" && n.Card == 0 && o.kind.Cards > o.kind.EFAs:
		return n, bad("InvalidParameterCombination", "Network card 0 of %s does not support EFA.", o.kind.Name)
	case slices.ContainsFunc(o.nics, func(other netInterface) bool { return other.Card == n.Card && other.Device == n.Device }):
		return n, bad("InvalidParameterValue", "Each network interface requires a unique device index on its network card.")
	case n.Card >= o.kind.Cards:
		return n, bad("InvalidParameterValue", "The network card index %d is not valid for instance type %s.", n.Card, o.kind.Name)
	case p.is("AssociatePublicIpAddress") && of > 1:
		return n, bad("InvalidParameterCombination",
			"The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.")
	}
	if n.Sixes = p.num("Ipv6AddressCount", 0); n.Sixes > 0 && o.subnet.Six == "" {
		return n, bad("InvalidParameterValue", "The subnet does not have an IPv6 CIDR block associated with it.")
	}
	if o.subnet.only() {
		switch {
		case p.flag("AssociatePublicIpAddress", false):
			return n, bad("InvalidParameterCombination", "The associatePublicIPAddress parameter cannot be specified for an IPv6-only subnet.")
		case o.kind.Xen:
			return n, bad("InvalidParameterCombination", "IPv6-only subnets are not supported by the '%s' instance type.", o.kind.Name)
		}
		n.Groups, err = q.launchGroups(p)
		return n, err
	}
	n.Public = of == 1 && p.flag("AssociatePublicIpAddress", true)
	n.Groups, err = q.launchGroups(p)
	return n, err
}

// launchGroups are the security groups of an instance or an interface, by id
// or name; none: the default one.
func (q *request) launchGroups(p params) ([]string, error) {
	r := q.region
	var ids []string
	for _, id := range p.list("SecurityGroupId") {
		if _, ok := r.groups.usable(id); !ok {
			return nil, bad("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
		ids = append(ids, id)
	}
	for _, name := range p.list("SecurityGroup") {
		i := slices.IndexFunc(r.groups.listed(), func(g group) bool { return g.Name == name })
		if i < 0 {
			return nil, bad("InvalidGroup.NotFound", "The security group '%s' does not exist in default VPC '%s'", name, r.vpc)
		}
		ids = append(ids, r.groups.listed()[i].ID)
	}
	if len(ids) == 0 {
		ids = []string{wire.FixedID("sg", r.Name)}
	}
	return ids, nil
}

// orderDisks reads the disks: the image's root disk, changed as asked for, and
// others.
func (q *request) orderDisks(o *order) error {
	root := volume{Device: o.image.Root, Snapshot: o.image.Snapshot(), SizeGB: o.image.SizeGB, Type: "gp3", DeleteOnTermination: true}
	o.disks = []volume{root}
	for _, p := range q.each("BlockDeviceMapping") {
		if p.has("NoDevice") || p.has("VirtualName") {
			continue
		}
		at := slices.IndexFunc(o.disks, func(v volume) bool { return v.Device == p.str("DeviceName") })
		if at < 0 {
			o.disks = append(o.disks, volume{Device: p.str("DeviceName"), Type: "gp2"})
			at = len(o.disks) - 1
		}
		if err := o.disks[at].read(p.sub("Ebs"), o.image.SizeGB); err != nil {
			return err
		}
	}
	return nil
}

var diskTypes = []string{"gp3", "gp2", "io1", "io2", "st1", "sc1", "standard"}

func (v *volume) read(p params, least int) error {
	v.SizeGB = p.num("VolumeSize", v.SizeGB)
	if t := p.str("VolumeType"); t != "" {
		v.Type = t
	}
	v.Encrypted = p.flag("Encrypted", v.Encrypted)
	v.DeleteOnTermination = p.flag("DeleteOnTermination", v.DeleteOnTermination)
	v.KMSKey = p.str("KmsKeyId")
	v.IOPS, v.Throughput = p.num("Iops", 0), p.num("Throughput", 0)
	if v.Type == "gp3" {
		orElse(&v.IOPS, 3000)
		orElse(&v.Throughput, 125)
	}
	switch {
	case !slices.Contains(diskTypes, v.Type):
		return bad("InvalidParameterValue", "Invalid volume type: %s", v.Type)
	case v.SizeGB == 0:
		return bad("MissingParameter", "The request must contain the parameter size or snapshotId")
	case v.Type == "gp3" && (v.IOPS > 500*v.SizeGB && v.IOPS > 3000 || v.IOPS > 80000):
		return bad("InvalidParameterCombination", "Iops to volume size ratio of %f is too high; maximum is 500", float64(v.IOPS)/float64(v.SizeGB))
	case v.Type == "gp3" && v.Throughput*4 > v.IOPS:
		return bad("InvalidParameterCombination", "Throughput (MiBps) to iops ratio of %f is too high; maximum is 0.250000 MiBps per iops", float64(v.Throughput)/float64(v.IOPS))
	case v.KMSKey != "" && !v.Encrypted:
		return bad("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to be set.")
	case v.SizeGB > 65536:
		return bad("InvalidParameterValue", "Volume of size %dGB is too large", v.SizeGB)
	case v.Snapshot != "" && v.SizeGB < least:
		return bad("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot '%s', expect size>= %dGB", v.SizeGB, v.Snapshot, least)
	}
	return nil
}

// launch makes one instance with its disks and interfaces, and gives its id.
func (q *request) launch(o order, reservation string, index int) string {
	r, now := q.region, q.s.clock.Now()
	if o.zone == "" { // a dry run
		o.zone = r.zones()[0]
	}
	sub, _ := r.subnetOf(o.zone)
	if o.subnet.ID != "" {
		sub = o.subnet
	}
	i := instance{common: common{wire.NewID("i"), o.tags["instance"]}, Reservation: reservation, ClientToken: q.str("ClientToken"),
		Zone: o.zone, Subnet: sub.ID, Image: o.image.ID, Type: o.kind.Name, Arch: o.kind.Arch, Root: o.image.Root,
		Key: q.str("KeyName"), Profile: q.profile(), Placement: o.placement, Index: index,
		Groups: o.nics[0].Groups, Launched: now, Behaviour: q.str("InstanceInitiatedShutdownBehavior"),
		UserData: q.str("UserData"), Tokens: q.str("MetadataOptions.HttpTokens"), Hops: q.num("MetadataOptions.HttpPutResponseHopLimit", 1), Metadata6: q.str("MetadataOptions.HttpProtocolIpv6"),
		EbsOptimized: q.is("EbsOptimized"), Monitoring: q.is("Monitoring.Enabled"), Protect: q.is("DisableApiTermination"),
		Want: running, Since: now, Until: now.Add(q.s.opt.Pending), Code: "pending", Why: "pending",
		Price: r.price(o.kind, o.zone, o.spot), Reserved: o.reserved, m: &machine{}}
	orElse(&i.Behaviour, "stop")
	orElse(&i.Tokens, "optional")
	orElse(&i.Metadata6, "disabled")
	for n, nic := range o.nics {
		nic.common = common{wire.NewID("eni"), o.tags["network-interface"]}
		nic.Zone, nic.Subnet, nic.Instance, nic.Made = o.zone, sub.ID, i.ID, now
		nic.PrivateIP, nic.MAC = r.privateIP(o.zone), mac()
		if sub.only() {
			nic.PrivateIP = ""
		}
		if n == 0 {
			i.PrivateIP = nic.PrivateIP
		}
		if n == 0 && nic.Sixes > 0 {
			i.IPv6 = r.ipv6(sub)
		}
		r.interfaces.put(nic)
	}
	for _, disk := range o.disks {
		disk.common = common{wire.NewID("vol"), o.tags["volume"]}
		disk.Zone, disk.Instance, disk.Made = o.zone, i.ID, now
		r.volumes.put(disk)
	}
	if o.spot {
		i.Spot, i.OneTime = q.requestSpot(o, i)
	}
	r.instances.put(i)
	r.lasting[i.ID] = true
	q.s.undo = append(q.s.undo, func() { delete(r.lasting, i.ID) })
	q.s.after = append(q.s.after, func() { r.boot(i) })
	return i.ID
}

func mac() string {
	b, out := wire.Random(5), "0a"
	for _, c := range b {
		out += ":" + strconv.FormatUint(uint64(c)|256, 16)[1:]
	}
	return out
}

// relaunched is the reply to a launch, also when it is asked for again: the
// instances as they are now.
func (r *region) relaunched(l launch) reservationXML {
	out := reservationXML{ID: l.reservation, Owner: r.s.opt.Account}
	for _, id := range l.ids {
		if i, ok := r.instances.get(id); ok {
			out.Instances.Items = append(out.Instances.Items, r.instanceXML(i))
		}
	}
	return out
}
