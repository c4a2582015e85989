package fakeaws

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/fakeaws/image"
	"github.com/dlwb/dlwb/internal/fakeaws/machinetype"
	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// order is what a RunInstances asks for, found to make sense.
type order struct {
	min, max  int
	kind      machinetype.Type
	image     image.AMI
	zone      string // empty: any
	subnet    subnet // its ID is empty: the zone's default one
	block     bool   // it is paid by a capacity block
	reserved  string // the reservation that it asks for
	spot      bool
	market    params
	disks     []volume
	nics      []netInterface
	placement string
	tags      map[string]tags
}

// runInstances launches all that were asked for, or as many as there is room
// for, but at least the MinCount; or none.
func runInstances(q *request) (any, error) {
	asked := fingerprint(q.form)
	token := q.str("ClientToken")
	if l, ok := q.region.tokens[token]; ok && token != "" {
		if l.params != asked {
			return nil, bad("IdempotentParameterMismatch",
				"Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
		}
		return q.region.relaunched(l), nil
	}
	o, err := q.order()
	if err != nil {
		return nil, err
	}
	n := o.max
	if !q.call.DryRun {
		if n, err = q.fit(&o); err != nil {
			return nil, err
		}
	}
	l := launch{params: asked, reservation: wire.NewID("r")}
	for index := range n {
		l.ids = append(l.ids, q.launch(o, l.reservation, index))
	}
	if token != "" {
		q.region.tokens[token] = l
		q.s.undo = append(q.s.undo, func() { delete(q.region.tokens, token) })
	}
	return q.region.relaunched(l), nil
}

// fingerprint is the same for the same request.
func fingerprint(form url.Values) string {
	f := url.Values{}
	for k, v := range form {
		if k != "ClientToken" && k != "DryRun" {
			f[k] = v
		}
	}
	return f.Encode()
}

// order reads and checks what is asked for.
func (q *request) order() (o order, err error) {
	r := q.region
	if o.min, o.max = q.num("MinCount", 0), q.num("MaxCount", 0); o.min < 1 || o.max < o.min {
		return o, bad("InvalidParameterValue", "Value (%s) for parameter minCount is invalid. It must be at least 1 and at most maxCount.", q.str("MinCount"))
	}
	if len(q.str("ClientToken")) > 64 {
		return o, bad("InvalidParameterValue", "Value for parameter clientToken is invalid. The maximum length is 64 characters.")
	}
	kind := q.str("InstanceType")
	orElse(&kind, "m1.small")
	var ok bool
	if o.kind, ok = q.s.byName[kind]; !ok {
		return o, bad("InvalidParameterValue", "Invalid value '%s' for InstanceType.", kind)
	}
	if !q.has("ImageId") {
		return o, bad("MissingParameter", "The request must contain the parameter ImageId")
	}
	if o.image, err = r.image(q.str("ImageId")); err != nil {
		return o, err
	}
	if o.image.Arch != o.kind.Arch {
		return o, bad("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. "+
			"Specify an instance type and an AMI that have matching architectures, and try again.", o.kind.Arch, o.image.Arch)
	}
	if _, ok := r.usableKey(q.str("KeyName")); !ok && q.has("KeyName") {
		return o, bad("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", q.str("KeyName"))
	}
	for _, check := range []func(*order) error{q.orderMarket, q.orderPlace, q.orderNetwork, q.orderDisks, q.orderTags, q.orderRest} {
		if err := check(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (q *request) orderMarket(o *order) error {
	o.market = q.sub("InstanceMarketOptions").sub("SpotOptions")
	switch m := q.str("InstanceMarketOptions.MarketType"); m {
	case "":
		return nil
	case "spot":
		o.spot = true
		return nil
	case "capacity-block":
		o.block = true
		return nil
	default:
		return bad("InvalidParameterValue", "The market type '%s' is not supported for this instance type.", m)
	}
}

// orderPlace finds the zone, if one is asked for.
func (q *request) orderPlace(o *order) error {
	r := q.region
	o.zone = q.str("Placement.AvailabilityZone")
	id := q.str("SubnetId")
	if first := q.str("NetworkInterface.1.SubnetId"); first != "" {
		if id != "" {
			return bad("InvalidParameterCombination", "Network interfaces and an instance-level subnet ID may not be specified on the same request")
		}
		id = first
	}
	if id != "" {
		s, ok := r.subnet(id)
		if !ok {
			return bad("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
		if o.zone != "" && o.zone != s.Zone {
			return bad("InvalidParameterValue", "Value (%s) for parameter availabilityZone does not match the subnet's zone (%s).", o.zone, s.Zone)
		}
		o.zone, o.subnet = s.Zone, s
	}
	if err := q.orderReserved(o); err != nil {
		return err
	}
	if o.zone != "" {
		if _, ok := r.subnetOf(o.zone); !ok {
			return bad("InvalidParameterValue", "Invalid availability zone: [%s]", o.zone)
		}
		if !r.offeredIn(o.kind, o.zone) {
			return q.unsupported(o)
		}
	} else if r.NoDefaultVPC {
		return bad("VPCIdNotSpecified", "No default VPC for this user. GroupName is only supported for EC2-Classic and default VPC.")
	} else if !slices.ContainsFunc(r.zones(), func(z string) bool { return r.offeredIn(o.kind, z) }) {
		return bad("Unsupported", "The requested configuration is currently not supported. Please check the documentation for supported configurations.")
	}
	return q.orderGroup(o)
}

func (q *request) unsupported(o *order) error {
	var others []string
	for _, z := range q.region.zones() {
		if q.region.offeredIn(o.kind, z) {
			others = append(others, z)
		}
	}
	return bad("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s). "+
		"Please retry your request by not specifying an Availability Zone or choosing %s.", o.kind.Name, o.zone, strings.Join(others, ", "))
}

// orderGroup checks the placement group.
func (q *request) orderGroup(o *order) error {
	name, id := q.str("Placement.GroupName"), q.str("Placement.GroupId")
	if name == "" && id == "" {
		return nil
	}
	for _, g := range q.region.placements.listed() {
		if g.Name != name && g.ID != id || !q.region.placements.exists(g.ID) {
			continue
		}
		if !slices.Contains(o.kind.Strategies, g.Strategy) {
			return bad("InvalidParameterCombination", "%s placement groups are not supported by the '%s' instance type. "+
				"Specify a supported instance type or change the placement group strategy, and try again.",
				strings.ToUpper(g.Strategy[:1])+g.Strategy[1:], o.kind.Name)
		}
		o.placement = g.Name
		return nil
	}
	return bad("InvalidPlacementGroup.Unknown", "The Placement Group '%s%s' is unknown.", name, id)
}

func (q *request) orderTags(o *order) error {
	kinds := []string{"instance", "volume", "network-interface"}
	if o.spot {
		kinds = append(kinds, "spot-instances-request")
	}
	if err := q.onlyTags(kinds...); err != nil {
		return err
	}
	o.tags = map[string]tags{}
	for _, kind := range kinds {
		t, err := q.tagsFor(kind)
		if err != nil {
			return err
		}
		o.tags[kind] = t
	}
	return nil
}

const mostUserData = 16384

// orderRest checks user data, the instance profile and the shutdown behaviour.
func (q *request) orderRest(*order) error {
	data, err := base64.StdEncoding.DecodeString(q.str("UserData"))
	if err != nil {
		return bad("InvalidParameterValue", "Invalid BASE64 encoding of user data.")
	}
	if len(data) > mostUserData {
		return bad("InvalidParameterValue", "User data is limited to 16384 bytes")
	}
	if b := q.str("InstanceInitiatedShutdownBehavior"); b != "" && b != "stop" && b != "terminate" {
		return bad("InvalidParameterValue", "Value (%s) for parameter instanceInitiatedShutdownBehavior is invalid.", b)
	}
	if p := q.profile(); p != "" && q.s.opt.Profiles != nil && !slices.Contains(q.s.opt.Profiles, p) {
		return bad("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", p)
	}
	return nil
}

func (q *request) profile() string {
	if arn := q.str("IamInstanceProfile.Arn"); arn != "" {
		return base(arn)
	}
	return q.str("IamInstanceProfile.Name")
}

// fit says how many there is room for, and chooses a zone if none was asked
// for.
func (q *request) fit(o *order) (int, error) {
	r := q.region
	if o.spot {
		if err := q.bid(o); err != nil {
			return 0, err
		}
	}
	code := o.kind.QuotaCode(o.spot)
	limit := r.quota(code)
	if o.reserved != "" {
		return q.reservedRoom(o)
	}
	if float64(r.used(code)+o.min*o.kind.VCPUs) > limit {
		if o.spot {
			return 0, bad("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
		}
		return 0, bad("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %.0f allows for the "+
			"instance bucket that the specified instance type belongs to. Please visit "+
			"http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", limit)
	}
	n := min(o.max, (int(limit)-r.used(code))/o.kind.VCPUs)
	if o.zone != "" {
		n = min(n, r.room(o.kind, o.zone, o.spot))
	} else {
		n = r.chooseZone(o, n)
	}
	if n < o.min {
		return 0, q.full(o)
	}
	return n, nil
}

// chooseZone takes the first zone with room, or the one where the placement
// group's instances are.
func (r *region) chooseZone(o *order, n int) int {
	now := r.s.clock.Now()
	for _, i := range r.instances.all() {
		if o.placement != "" && i.Placement == o.placement && i.alive(now) {
			o.zone = i.Zone
			return min(n, r.room(o.kind, i.Zone, o.spot))
		}
	}
	for _, z := range r.zones() {
		if room := r.room(o.kind, z, o.spot); r.offeredIn(o.kind, z) && room >= o.min {
			o.zone = z
			return min(n, room)
		}
	}
	return 0
}

const noLimit = 1 << 20

// room is how many more instances a zone takes.
func (r *region) room(t machinetype.Type, zone string, spot bool) int {
	n, ok := r.capacity[place{zone, t.Name, spot}]
	if !ok {
		return noLimit
	}
	return n - r.alike(func(i instance) bool {
		return i.Zone == zone && i.Type == t.Name && (i.Spot != "") == spot && !r.instances.rows[i.ID].planted
	})
}

func (q *request) full(o *order) error {
	if o.spot {
		return bad("InsufficientInstanceCapacity", "There is no Spot capacity available that matches your request.")
	}
	if o.zone == "" {
		return bad("InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in zones with support for 'gp3' volumes. "+
			"Our system will be working on provisioning additional capacity.", o.kind.Name)
	}
	var others []string
	for _, z := range q.region.zones() {
		if z != o.zone && q.region.offeredIn(o.kind, z) {
			others = append(others, z)
		}
	}
	return bad("InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). "+
		"Our system will be working on provisioning additional capacity. You can currently get %[1]s capacity by not specifying an Availability Zone "+
		"in your request or choosing %s.", o.kind.Name, o.zone, strings.Join(others, ", "))
}

// bid refuses a price that is too low.
func (q *request) bid(o *order) error {
	most, err := strconv.ParseFloat(o.market.str("MaxPrice"), 64)
	if err != nil {
		if o.market.has("MaxPrice") {
			return bad("InvalidParameterValue", "Value (%s) for parameter maxPrice is invalid.", o.market.str("MaxPrice"))
		}
		return nil
	}
	zone := o.zone
	orElse(&zone, q.region.zones()[0])
	if least := q.region.price(o.kind, zone, true); most < least {
		return bad("SpotMaxPriceTooLow", "Your Spot request price of %v is lower than the minimum required Spot request fulfillment price of %.4f.", most, least)
	}
	return nil
}
