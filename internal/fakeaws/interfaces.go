package fakeaws

import (
	"slices"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// detach frees the addresses of an interface.
func (r *region) detach(id string) {
	for _, a := range r.addresses.all() {
		if a.Interface == id {
			a.Interface, a.Instance, a.Association = "", "", ""
			r.addresses.put(a)
		}
	}
}

type eniXML struct {
	nicXML
	Zone     string             `xml:"availabilityZone"`
	Attached *attachedENI       `xml:"attachment"`
	Tags     wire.Set[tagXML]   `xml:"tagSet"`
	Groups   wire.Set[groupRef] `xml:"groupSet"`
}

type attachedENI struct {
	attachXML
	Instance string `xml:"instanceId"`
	Owner    string `xml:"instanceOwnerId"`
}

func (r *region) eniXML(n netInterface) eniXML {
	i, _ := r.instances.get(n.Instance)
	x := eniXML{nicXML: r.nicXML(n, i, r.s.clock.Now()), Zone: n.Zone, Tags: n.Tags.xml(), Groups: r.groupRefs(n.Groups)}
	x.Status = "available"
	if n.Instance != "" {
		x.Status = "in-use"
		x.Attached = &attachedENI{x.nicXML.Attachment, n.Instance, r.s.opt.Account}
	}
	return x
}

func describeNetworkInterfaces(q *request) (any, error) {
	r, ids := q.region, q.list("NetworkInterfaceId")
	for _, id := range ids {
		if _, ok := r.interfaces.look(id); !ok {
			return nil, bad("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", id)
		}
	}
	var found []netInterface
	for _, n := range r.interfaces.listed() {
		x := r.eniXML(n)
		f := fields{"network-interface-id": one(n.ID), "status": one(x.Status), "vpc-id": one(r.vpc), "subnet-id": one(n.Subnet), "group-id": n.Groups,
			"availability-zone": one(n.Zone), "attachment.instance-id": nil, "description": one(n.Description), "private-ip-address": one(n.PrivateIP),
			"interface-type": one(n.Kind)}
		if n.Instance != "" {
			f["attachment.instance-id"] = one(n.Instance)
		}
		ok, err := q.passes(n.Tags, f)
		if err != nil {
			return nil, err
		}
		if ok && among(n.ID, ids) {
			found = append(found, n)
		}
	}
	found, next, err := page(q, found, 1000, func(n netInterface) string { return sortable(r.interfaces.order(n)) })
	if err != nil {
		return nil, err
	}
	return struct {
		Interfaces wire.Set[eniXML] `xml:"networkInterfaceSet"`
		listing
	}{wire.SetOf(each(found, r.eniXML)), listing{next}}, nil
}

func deleteNetworkInterface(q *request) (any, error) {
	id := q.str("NetworkInterfaceId")
	n, ok := q.region.interfaces.usable(id)
	switch {
	case !ok:
		return nil, bad("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", id)
	case n.Instance != "":
		return nil, bad("InvalidParameterValue", "Network interface '%s' is currently in use.", id)
	}
	q.region.interfaces.remove(id)
	return done{true}, nil
}

type addressXML struct {
	IP          string           `xml:"publicIp"`
	ID          string           `xml:"allocationId"`
	Domain      string           `xml:"domain"`
	Association string           `xml:"associationId,omitempty"`
	Instance    string           `xml:"instanceId,omitempty"`
	Interface   string           `xml:"networkInterfaceId,omitempty"`
	Tags        wire.Set[tagXML] `xml:"tagSet"`
}

// mostAddresses is the quota of Elastic IPs in a region.
const mostAddresses = 5

func allocateAddress(q *request) (any, error) {
	if len(q.region.addresses.all()) >= mostAddresses {
		return nil, bad("AddressLimitExceeded", "The maximum number of addresses has been reached.")
	}
	if err := q.onlyTags("elastic-ip"); err != nil {
		return nil, err
	}
	t, err := q.tagsFor("elastic-ip")
	if err != nil {
		return nil, err
	}
	a := address{common: common{wire.NewID("eipalloc"), t}, IP: q.s.publicIP()}
	q.region.addresses.put(a)
	return addressXML{IP: a.IP, ID: a.ID, Domain: "vpc"}, nil
}

func describeAddresses(q *request) (any, error) {
	ids, ips := q.list("AllocationId"), q.list("PublicIp")
	for _, id := range ids {
		if _, ok := q.region.addresses.look(id); !ok {
			return nil, bad("InvalidAllocationID.NotFound", "The allocation ID '%s' does not exist", id)
		}
	}
	var found []addressXML
	for _, a := range q.region.addresses.listed() {
		ok, err := q.passes(a.Tags, fields{"allocation-id": one(a.ID), "public-ip": one(a.IP), "instance-id": one(a.Instance), "domain": one("vpc"),
			"association-id": one(a.Association), "network-interface-id": one(a.Interface)})
		if err != nil {
			return nil, err
		}
		if ok && among(a.ID, ids) && among(a.IP, ips) {
			found = append(found, addressXML{a.IP, a.ID, "vpc", a.Association, a.Instance, a.Interface, a.Tags.xml()})
		}
	}
	return struct {
		Addresses wire.Set[addressXML] `xml:"addressesSet"`
	}{wire.SetOf(found)}, nil
}

// associateAddress gives an address to an instance's first interface, or to an
// interface.
func associateAddress(q *request) (any, error) {
	r := q.region
	a, ok := r.addresses.usable(q.str("AllocationId"))
	if !ok {
		return nil, bad("InvalidAllocationID.NotFound", "The allocation ID '%s' does not exist", q.str("AllocationId"))
	}
	nics := r.interfaces.all()
	at := slices.IndexFunc(nics, func(n netInterface) bool {
		return n.ID == q.str("NetworkInterfaceId") || n.Instance != "" && n.Instance == q.str("InstanceId")
	})
	if at < 0 {
		return nil, bad("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", q.str("InstanceId"))
	}
	if i, ok := r.instances.get(nics[at].Instance); ok && i.state(q.s.clock.Now()) == pending {
		return nil, bad("InvalidInstanceID", "The pending instance '%s' is not in a valid state for this operation.", i.ID)
	}
	if a.Interface != "" && !q.flag("AllowReassociation", true) {
		return nil, bad("Resource.AlreadyAssociated", "resource %s is already associated with associate-id %s", a.ID, a.Association)
	}
	a.Interface, a.Instance, a.Association = nics[at].ID, nics[at].Instance, wire.NewID("eipassoc")
	r.addresses.put(a)
	return struct {
		Return bool   `xml:"return"`
		ID     string `xml:"associationId"`
	}{true, a.Association}, nil
}

func disassociateAddress(q *request) (any, error) {
	for _, a := range q.region.addresses.all() {
		if a.Association != "" && a.Association == q.str("AssociationId") {
			q.region.detach(a.Interface)
			return done{true}, nil
		}
	}
	return nil, bad("InvalidAssociationID.NotFound", "The association ID '%s' does not exist", q.str("AssociationId"))
}

func releaseAddress(q *request) (any, error) {
	id := q.str("AllocationId")
	a, ok := q.region.addresses.usable(id)
	switch {
	case !ok:
		return nil, bad("InvalidAllocationID.NotFound", "The allocation ID '%s' does not exist", id)
	case a.Association != "":
		return nil, bad("InvalidIPAddress.InUse", "Address %s is in use.", a.IP)
	}
	q.region.addresses.remove(id)
	return done{true}, nil
}
