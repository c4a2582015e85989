package fakeaws

import (
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

type reservationXML struct {
	ID        string                `xml:"reservationId"`
	Owner     string                `xml:"ownerId"`
	Groups    wire.Set[string]      `xml:"groupSet"`
	Instances wire.Set[instanceXML] `xml:"instancesSet"`
}

type stateXML struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type tagXML struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

type reasonXML struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type groupRef struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

type instanceXML struct {
	ID         string                `xml:"instanceId"`
	Image      string                `xml:"imageId"`
	State      stateXML              `xml:"instanceState"`
	PrivateDNS string                `xml:"privateDnsName"`
	DNS        string                `xml:"dnsName"`
	Reason     string                `xml:"reason"`
	Key        string                `xml:"keyName,omitempty"`
	Index      int                   `xml:"amiLaunchIndex"`
	Type       string                `xml:"instanceType"`
	Launched   string                `xml:"launchTime"`
	Placement  placementXML          `xml:"placement"`
	Monitoring string                `xml:"monitoring>state"`
	Subnet     string                `xml:"subnetId,omitempty"`
	VPC        string                `xml:"vpcId,omitempty"`
	PrivateIP  string                `xml:"privateIpAddress,omitempty"`
	PublicIP   string                `xml:"ipAddress,omitempty"`
	IPv6       string                `xml:"ipv6Address,omitempty"`
	Groups     wire.Set[groupRef]    `xml:"groupSet"`
	Why        *reasonXML            `xml:"stateReason"`
	Arch       string                `xml:"architecture"`
	RootType   string                `xml:"rootDeviceType"`
	Root       string                `xml:"rootDeviceName"`
	Disks      wire.Set[attachedXML] `xml:"blockDeviceMapping"`
	Virtual    string                `xml:"virtualizationType"`
	Token      string                `xml:"clientToken"`
	Lifecycle  string                `xml:"instanceLifecycle,omitempty"`
	Spot       string                `xml:"spotInstanceRequestId,omitempty"`
	Tags       wire.Set[tagXML]      `xml:"tagSet"`
	Hypervisor string                `xml:"hypervisor"`
	Interfaces wire.Set[nicXML]      `xml:"networkInterfaceSet"`
	Profile    *profileXML           `xml:"iamInstanceProfile"`
	Optimized  bool                  `xml:"ebsOptimized"`
	ENA        bool                  `xml:"enaSupport"`
	Metadata   metadataXML           `xml:"metadataOptions"`
	Platform   string                `xml:"platformDetails"`
}

type placementXML struct {
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
	Group   string `xml:"groupName"`
	Tenancy string `xml:"tenancy"`
}

type profileXML struct {
	ARN string `xml:"arn"`
	ID  string `xml:"id"`
}

type metadataXML struct {
	State    string `xml:"state"`
	Tokens   string `xml:"httpTokens"`
	Hops     int    `xml:"httpPutResponseHopLimit"`
	Endpoint string `xml:"httpEndpoint"`
	Six      string `xml:"httpProtocolIpv6"`
}

type attachedXML struct {
	Device string `xml:"deviceName"`
	Volume string `xml:"ebs>volumeId"`
	Status string `xml:"ebs>status"`
	At     string `xml:"ebs>attachTime"`
	Delete bool   `xml:"ebs>deleteOnTermination"`
}

type nicXML struct {
	ID          string             `xml:"networkInterfaceId"`
	Subnet      string             `xml:"subnetId"`
	VPC         string             `xml:"vpcId"`
	Description string             `xml:"description"`
	Owner       string             `xml:"ownerId"`
	Status      string             `xml:"status"`
	MAC         string             `xml:"macAddress"`
	PrivateIP   string             `xml:"privateIpAddress,omitempty"`
	Groups      wire.Set[groupRef] `xml:"groupSet"`
	Attachment  attachXML          `xml:"attachment"`
	Public      *publicXML         `xml:"association"`
	Kind        string             `xml:"interfaceType"`
}

type attachXML struct {
	ID     string `xml:"attachmentId"`
	Device int    `xml:"deviceIndex"`
	Card   int    `xml:"networkCardIndex"`
	Status string `xml:"status"`
	At     string `xml:"attachTime"`
	Delete bool   `xml:"deleteOnTermination"`
}

type publicXML struct {
	IP    string `xml:"publicIp"`
	DNS   string `xml:"publicDnsName"`
	Owner string `xml:"ipOwnerId"`
}

func (t tags) xml() wire.Set[tagXML] {
	var out []tagXML
	for k, v := range t {
		out = append(out, tagXML{k, v})
	}
	slices.SortFunc(out, func(a, b tagXML) int { return strings.Compare(a.Key, b.Key) })
	return wire.SetOf(out)
}

// instanceXML is how an instance looks now. One that is terminated has nothing
// any more but its name, its tags and the reason.
func (r *region) instanceXML(i instance) instanceXML {
	now := r.s.clock.Now()
	sub, _ := r.subnet(i.Subnet)
	x := instanceXML{ID: i.ID, Image: i.Image, State: i.stateXML(now), Reason: i.Transition, Key: i.Key, Index: i.Index, Type: i.Type,
		Launched: wire.Time(i.Launched), Placement: placementXML{i.Zone, sub.ZoneID, i.Placement, "default"}, Monitoring: "disabled",
		Arch: i.Arch, RootType: "ebs", Root: i.Root, Virtual: "hvm", Token: i.ClientToken, Spot: i.Spot, Tags: i.Tags.xml(),
		Hypervisor: "xen", Optimized: i.EbsOptimized, ENA: true, Platform: "Linux/UNIX",
		Metadata: metadataXML{"applied", i.Tokens, i.Hops, "enabled", i.Metadata6}}
	if i.Monitoring {
		x.Monitoring = "enabled"
	}
	if i.Spot != "" {
		x.Lifecycle = "spot"
	}
	if x.State.Name != running {
		x.Why = &reasonXML{i.Code, i.Why}
	}
	if i.Profile != "" {
		x.Profile = &profileXML{"arn:aws:iam::" + r.s.opt.Account + ":instance-profile/" + i.Profile, "AIPAFAKE0000DLWB0000"}
	}
	if x.State.Name != terminated {
		r.connected(&x, i, now)
	}
	return x
}

// connected adds the network and the disks.
func (r *region) connected(x *instanceXML, i instance, now time.Time) {
	x.Subnet, x.VPC, x.PrivateIP = i.Subnet, r.vpc, i.PrivateIP
	x.PrivateDNS = "ip-" + strings.ReplaceAll(i.PrivateIP, ".", "-") + ".ec2.internal"
	x.Groups, x.IPv6 = r.groupRefs(i.Groups), i.IPv6
	x.PublicIP = r.publicOf(i, now)
	x.DNS = publicDNS(x.PublicIP)
	for _, n := range r.interfaces.all() {
		if n.Instance == i.ID {
			x.Interfaces.Items = append(x.Interfaces.Items, r.nicXML(n, i, now))
		}
	}
	for _, v := range r.volumes.all() {
		if v.Instance == i.ID && x.State.Name != pending {
			x.Disks.Items = append(x.Disks.Items, attachedXML{v.Device, v.ID, "attached", wire.Time(v.Made), v.DeleteOnTermination})
		}
	}
}

func (r *region) groupRefs(ids []string) wire.Set[groupRef] {
	return wire.SetOf(each(ids, func(id string) groupRef {
		g, _ := r.groups.get(id)
		return groupRef{id, g.Name}
	}))
}

// publicOf is the public address of an instance: its Elastic IP, or the one
// that it has while it runs.
func (r *region) publicOf(i instance, now time.Time) string {
	for _, n := range r.interfaces.all() {
		if n.Instance == i.ID {
			if ip := r.publicOfInterface(n, i, now); ip != "" {
				return ip
			}
		}
	}
	return ""
}

func (r *region) publicOfInterface(n netInterface, i instance, now time.Time) string {
	for _, a := range r.addresses.all() {
		if a.Interface == n.ID {
			return a.IP
		}
	}
	if n.Public && i.m != nil && i.state(now) == running {
		return i.m.publicIP
	}
	return ""
}

func publicDNS(ip string) string {
	if ip == "" {
		return ""
	}
	return "ec2-" + strings.ReplaceAll(ip, ".", "-") + ".compute-1.amazonaws.com"
}

func (r *region) nicXML(n netInterface, i instance, now time.Time) nicXML {
	x := nicXML{ID: n.ID, Subnet: n.Subnet, VPC: r.vpc, Description: n.Description, Owner: r.s.opt.Account, Status: "in-use", MAC: n.MAC,
		PrivateIP: n.PrivateIP, Groups: r.groupRefs(n.Groups), Kind: n.Kind,
		Attachment: attachXML{attachment(n.ID), n.Device, n.Card, "attached", wire.Time(n.Made), n.DeleteOnTermination}}
	if ip := r.publicOfInterface(n, i, now); ip != "" {
		x.Public = &publicXML{ip, publicDNS(ip), "amazon"}
	}
	return x
}

// attachment is the id of what ties an interface to its instance.
func attachment(id string) string { return wire.FixedID("eni-attach", id) }
