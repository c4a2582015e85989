package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/ami"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/cloud/ec2/door"
	"github.com/dlwb/dlwb/cloud/ec2/reach"
	"github.com/dlwb/dlwb/internal/units"
)

// checkLimit bounds a whole check: a plan that waits for an AWS that does not
// answer says so instead.
const checkLimit = 15 * time.Second

// preflight is one check at work.
type preflight struct {
	p    *Provider
	spec cloud.Spec
	api  *awsapi.API // nil: the configuration can't be read
	who  awsapi.Identity

	region string
	offers []cloud.Offer // in the order in which they will be tried
	image  ami.Image
	imgErr error
	net    network
	netErr error
	disk   cloud.Price // of one GiB

	reserve    *reservation // nil: the spec names none
	reserveErr error

	head    *cloud.Offer // nil: the spec asks for none, or it can't be had
	headErr error

	volZone string // of the volumes that the spec names; empty: none
	volErr  error
}

// The findings, in the order in which they are shown.
const (
	seeCredentials = iota
	seeRegion
	seeMachine
	seeHead
	seeReservation
	seeVolumes
	seeZones
	seeQuota
	seeFallback
	seeImage
	seeNetwork
	seePermissions
	seeAddress
	seePrice
	seeSpot
	seeLimits
	seen
)

// Check looks for what would make Up fail, and what it would cost. It asks AWS
// for everything at once and changes nothing: permissions are found out by dry
// runs. What can't be found out stands in no one's way and is said.
func (p *Provider) Check(ctx context.Context, spec cloud.Spec) cloud.Preflight {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	c := &preflight{p: p, spec: spec}
	var all [seen]cloud.Finding
	c.choose(ctx, &all)
	if all[seeCredentials].OK {
		c.ask(ctx, &all)
	}
	out := cloud.Preflight{}
	if len(c.offers) > 0 {
		c.price(&out, &all)
	}
	if !all[seeCredentials].OK {
		for _, see := range []int{seeMachine, seePrice} {
			if f := all[see]; f.OK {
				all[see] = cloud.Unchecked(f.What, "not checked with AWS: "+f.Text, f.Next)
			}
		}
	}
	for _, f := range all {
		if f.What != "" {
			out.Findings = append(out.Findings, f)
		}
	}
	return out
}

func found(what, text string) cloud.Finding {
	return cloud.Finding{OK: true, What: what, Text: text}
}

func missing(what, text, next string) cloud.Finding {
	return cloud.Finding{What: what, Text: text, Next: next}
}

// failed is the finding of an error. A mere want of an answer stands in nobody's
// way: it is said, and the launch will tell.
func failed(what string, err error, next string) cloud.Finding {
	var p *awsapi.Problem
	if !errors.As(err, &p) {
		if errors.Is(err, context.DeadlineExceeded) {
			return cloud.Unchecked(what, "not checked: AWS did not answer in time", next)
		}
		return missing(what, err.Error(), next)
	}
	if p.Doubtful() {
		return cloud.Unchecked(what, "not checked: "+p.Cause, p.Next)
	}
	return missing(what, p.Cause, cmp.Or(p.Next, next))
}

// choose finds out who asks, and which machine it would be.
func (c *preflight) choose(ctx context.Context, all *[seen]cloud.Finding) {
	var wg sync.WaitGroup
	defer wg.Wait()
	market := catalog.NewMarket(nil, "") // what is built in
	api, err := c.p.api(ctx)
	if err != nil {
		p := awsapi.Explain(err, awsapi.Call{Action: "read the AWS configuration"})
		all[seeCredentials] = missing("credentials", p.Cause, p.Next)
	} else {
		c.api = api
		api.Near(c.spec.Regions)
		wg.Go(func() { all[seeCredentials] = c.credentials(ctx) })
		if m, err := c.p.market(ctx); err == nil {
			market = m
		}
	}
	c.region = c.firstRegion()
	c.offers, err = market.Choose(ctx, c.spec)
	switch {
	case err != nil:
		all[seeMachine] = failed("machine", err, "dlwb offers --provider ec2 --region "+c.region)
	case len(c.offers) == 0:
		all[seeMachine] = missing("machine", "no machine that can be had is what the profile asks for", "dlwb offers --provider ec2 --region "+c.region)
	default:
		c.region = c.offers[0].Region
		c.disk = market.DiskPrice(ctx, c.region)
		all[seeMachine] = c.machine()
		if headed(c.spec) {
			o, err := headOffer(ctx, market.Lookup, c.spec, c.region, c.offers[0].Arch)
			if c.headErr = err; err == nil {
				c.head = &o
			}
		}
	}
}

// firstRegion is where the first machines would be.
func (c *preflight) firstRegion() string {
	switch {
	case len(c.spec.Regions) > 0:
		return c.spec.Regions[0]
	case c.api != nil && c.api.Region() != "":
		return c.api.Region()
	}
	return "us-east-1"
}

// credentials says whose they are and where they come from. Without them
// nothing else can be found out.
func (c *preflight) credentials(ctx context.Context) cloud.Finding {
	const what = "credentials"
	who, err := c.api.Identity(ctx)
	if err != nil {
		p := awsapi.Explain(err, awsapi.Call{Action: "GetCallerIdentity", Region: c.api.Region()})
		return missing(what, p.Cause+"; so nothing below is checked with AWS", p.Next)
	}
	c.who = who
	text := fmt.Sprintf("%s, account %s", who.ARN, who.Account)
	if from, err := c.api.Source(ctx); err == nil {
		text += ", from " + from
	}
	if endpoint := c.api.Endpoint(); endpoint != "" {
		text += ", at " + endpoint + " (AWS_ENDPOINT_URL, or endpoint_url of the profile)"
	}
	return found(what, text)
}

// ask looks at everything that AWS alone can tell.
func (c *preflight) ask(ctx context.Context, all *[seen]cloud.Finding) {
	var wg, rest sync.WaitGroup
	wg.Go(func() { c.net, c.netErr = c.p.network(ctx, c.region, c.spec) })
	if len(c.offers) > 0 {
		wg.Go(func() { c.image, c.imgErr = c.findImage(ctx) })
	}
	rest.Go(func() { all[seeRegion] = c.regions(ctx) })
	wg.Go(func() { c.reserve, c.reserveErr = c.p.reservation(ctx, c.region, c.spec) })
	wg.Go(func() { c.volZone, c.volErr = c.p.volumeZone(ctx, c.region, c.spec) })
	wg.Wait()
	all[seeVolumes] = c.volumes()
	if c.netErr == nil {
		rest.Go(func() { all[seeAddress] = c.address(ctx) })
	}
	all[seeNetwork], all[seeReservation] = c.network(ctx), c.reservation()
	if len(c.offers) > 0 {
		all[seeZones], all[seeImage] = c.zones(), c.images()
		all[seeQuota], all[seeFallback] = c.quotas()
		all[seeHead] = c.headFinding()
	}
	all[seePermissions] = c.permissions(ctx)
	rest.Wait()
}

// reservation says what of it is left; nothing where the spec names none.
func (c *preflight) reservation() cloud.Finding {
	const what = "reservation"
	switch {
	case c.reserveErr != nil:
		return failed(what, c.reserveErr, "aws ec2 describe-capacity-reservations --region "+c.region)
	case c.reserve == nil:
		return cloud.Finding{}
	case len(c.offers) > 0 && c.offers[0].Instance != c.reserve.Instance:
		return missing(what, c.reserve.text()+"; the machine would be "+c.offers[0].Instance, "machines.instance: "+c.reserve.Instance)
	}
	return found(what, c.reserve.text())
}

// machine says what the machine is.
func (c *preflight) machine() cloud.Finding {
	o := c.offers[0]
	text := fmt.Sprintf("%d × %s in %s", c.spec.Count, o.Instance, o.Region)
	if o.GPUs > 0 {
		text += fmt.Sprintf(", each with %d × %s", o.GPUs, o.GPU)
	}
	if len(o.Notes) > 0 {
		text += "; " + strings.Join(o.Notes, "; ")
	}
	if others := c.others(); others != "" {
		text += "; where there is no room, then " + others
		if c.spec.Instance == "" && c.spec.Need.MaxPrice == 0 {
			text += fmt.Sprintf(", none of which costs more than %d times as much (machines.instance.max_price allows more)", catalog.Dearest)
		}
	}
	return found("machine", text)
}

// others are the next choices, the first few of them.
func (c *preflight) others() string {
	const most = 3
	var names []string
	for _, o := range c.offers[1:] {
		names = append(names, o.Instance+" in "+o.Region)
	}
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}

// zones are those that offer the machine and have a subnet.
func (c *preflight) zones() cloud.Finding {
	const what = "zones"
	o := c.offers[0]
	next := "aws ec2 describe-instance-type-offerings --location-type availability-zone --filters Name=instance-type,Values=" + o.Instance + " --region " + o.Region
	if c.netErr != nil {
		return found(what, offeredIn(o.Zones))
	}
	usable := c.usable()
	if len(usable) == 0 && c.head != nil && len(c.besideNone()) > 0 {
		return missing(what, fmt.Sprintf("%s can start in %s, and %s, for the head, is %s: no zone has both", o.Instance, zoneNames(c.besideNone()), c.head.Instance, offeredIn(c.head.Zones)),
			"another type in machines.head_instance")
	}
	if len(usable) == 0 {
		return missing(what, fmt.Sprintf("%s: %s, and there is no subnet in any of them", o.Instance, offeredIn(o.Zones)), next)
	}
	text := o.Instance + " can start in " + zoneNames(usable)
	if len(o.Zones) == 0 {
		text = "AWS did not say which zones offer " + o.Instance + "; all with a subnet are tried: " + zoneNames(usable)
	}
	return found(what, text)
}

// usable are the zones in which the machine can start.
func (c *preflight) usable() []cloud.Zone {
	return beside(c.besideNone(), c.head)
}

// besideNone are they without a head.
func (c *preflight) besideNone() []cloud.Zone {
	s := site{reservation: c.reserve, volumes: c.volZone}
	return s.zones(zones(c.offers[0], c.spec.Spot, c.net))
}

func offeredIn(all []cloud.Zone) string {
	if len(all) == 0 {
		return "which zones offer it is not known"
	}
	return "offered in " + zoneNames(all)
}

func zoneNames(all []cloud.Zone) string {
	var names []string
	for _, z := range all {
		names = append(names, z.Name)
	}
	return strings.Join(names, ", ")
}

// regions finds out whether the account has enabled the regions to be tried.
func (c *preflight) regions(ctx context.Context) cloud.Finding {
	const what = "region"
	names := c.spec.Regions
	if len(names) == 0 {
		names = []string{c.region}
	}
	ec2, err := c.p.connect(ctx, cmp.Or(c.api.Region(), names[0]))
	if err != nil {
		return failed(what, err, "")
	}
	yes := true
	out, err := ec2.DescribeRegions(ctx, &awsec2.DescribeRegionsInput{AllRegions: &yes})
	if err != nil {
		return failed(what, awsapi.Explain(err, awsapi.Call{Action: "DescribeRegions", Region: names[0]}), "")
	}
	state := map[string]string{}
	for _, r := range out.Regions {
		if r.RegionName != nil && r.OptInStatus != nil {
			state[*r.RegionName] = *r.OptInStatus
		}
	}
	return regionFinding(names, state, len(c.spec.Regions) > 0)
}

// regionFinding judges regions by what AWS calls their state.
func regionFinding(names []string, state map[string]string, given bool) cloud.Finding {
	const what = "region"
	for _, name := range names {
		switch state[name] {
		case "opted-in", "opt-in-not-required":
		case "not-opted-in":
			return missing(what, "the account has not enabled "+name, "aws account enable-region --region-name "+name+" (takes some minutes)")
		default:
			return missing(what, name+" is no region of this account's", "aws ec2 describe-regions --query \"Regions[].RegionName\" --output text")
		}
	}
	text := strings.Join(names, ", then ") + ", enabled"
	if !given {
		text += "; none is given in machines.region"
	}
	return found(what, text)
}

// images says what the nodes would start from, and whether the disk has room
// for it.
func (c *preflight) images() cloud.Finding {
	const what = "image"
	if c.imgErr != nil {
		return failed(what, c.imgErr, "machines.image in the profile: pytorch, base, ubuntu, or ami-…")
	}
	gib, err := c.image.DiskGiB(c.spec.Disk)
	if err != nil {
		return missing(what, err.Error(), fmt.Sprintf("machines.disk: %dGB", (int64(c.image.GiB+ami.Room)<<30+999_999_999)/1_000_000_000))
	}
	return found(what, fmt.Sprintf("%s (%s), login %s, needs %s; the disk has %s", c.image.ID, c.image.Name, c.image.User,
		units.Binary(int64(c.image.GiB)<<30), units.Binary(int64(gib)<<30)))
}

// network says where the nodes would be put.
func (c *preflight) network(ctx context.Context) cloud.Finding {
	const what = "network"
	if c.netErr != nil {
		return failed(what, c.netErr, "machines.vpc or machines.subnet in the profile; without them the default VPC's subnets are used: aws ec2 create-default-vpc --region "+c.region)
	}
	var names []string
	for zone := range c.net.Subnets {
		names = append(names, zone)
	}
	slices.Sort(names)
	text := fmt.Sprintf("default VPC %s with subnets in %s", c.net.VPC, strings.Join(names, ", "))
	if !c.net.Default {
		text = fmt.Sprintf("%s of %s in %s", subnetText(c.net), c.net.VPC, strings.Join(names, ", "))
	}
	text += "; " + c.net.wayText()
	if c.net.Unsure != nil && c.net.Way.kind == wayPublic { // the launch will tell
		return cloud.Unchecked(what, text+"; whether they can be reached from here is not known: "+c.net.Unsure.Error(), "")
	}
	return c.way(ctx, text)
}

// firstOffers are the machine that is tried first, and the head.
func (c *preflight) firstOffers() (all []cloud.Offer) {
	if len(c.offers) > 0 {
		all = append(all, c.offers[0])
	}
	if c.head != nil {
		all = append(all, *c.head)
	}
	return all
}

// subnetText names the subnets of a network.
func subnetText(n network) string {
	ids := slices.Sorted(maps.Values(n.Subnets))
	if len(ids) == 1 {
		return "subnet " + ids[0]
	}
	return "subnets " + strings.Join(ids, ", ")
}

// way looks for what the way to the machines needs on this side.
func (c *preflight) way(ctx context.Context, text string) cloud.Finding {
	const what = "network"
	for _, o := range c.firstOffers() {
		if err := c.p.canSix(ctx, c.net, o); err != nil {
			return missing(what, text+"; "+err.Error(), "a type of the Nitro System, or a subnet with IPv4 in machines.subnet")
		}
	}
	switch c.net.Way.kind {
	case waySSM:
		if _, err := reach.PluginAt(); err != nil {
			return missing(what, text+", and "+err.Error(), "install it, or machines.reach: instance-connect, or machines.jump")
		}
		if c.net.SixOnly {
			return cloud.Warning(what, text+"; its agent speaks IPv6 only where the image's amazon-ssm-agent.json has UseDualStackEndpoint", "machines.reach: instance-connect, with an endpoint of the type dualstack, or machines.jump")
		}
		if own(c.spec).InstanceProfile == "" {
			return cloud.Warning(what, text+"; without machines.instance_profile its agent can register only where the account has Default Host Management",
				"machines.instance_profile: a profile with AmazonSSMManagedInstanceCore")
		}
	case wayJump:
		if _, err := c.p.jumps(ctx, c.net.Way, false); err != nil {
			return missing(what, text+": "+err.Error(), "ssh "+c.net.Way.jump)
		}
	}
	return found(what, text)
}

// address is from where alone the nodes can be reached.
func (c *preflight) address(ctx context.Context) cloud.Finding {
	const what = "address"
	if named := own(c.spec).Groups; len(named) > 0 {
		return c.existing(ctx, named)
	}
	d, err := c.p.door(ctx, c.spec, c.net)
	if err != nil {
		next := "export " + door.SourceEnv + "=203.0.113.7, with this machine's public address"
		if c.net.Six {
			next = "go out by IPv6 (a VPN, another network), a subnet with IPv4 in machines.subnet, or machines.jump; machines.ssh_from names an address that AWS sees"
		}
		return missing(what, err.Error(), next)
	}
	return found(what, "a security group of the cluster's own: "+d.Text())
}
