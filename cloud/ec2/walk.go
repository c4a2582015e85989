package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/ami"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/cloud/ec2/userdata"
	"github.com/dlwb/dlwb/cloud/ec2/volume"
	"github.com/dlwb/dlwb/internal/units"
)

// walk launches machines for the nodes in the first place that has room: offer
// by offer and zone by zone, first the spot market and then, when the spec says
// so, on demand. Every attempt and its reason is told.
func (u *up) walk(ctx context.Context, nodes []int) error {
	offers, err := u.choose(ctx, u.spec)
	if err != nil {
		return err
	}
	if len(offers) == 0 {
		return errors.New("no machine can be had that is what the profile asks for; see dlwb offers --provider ec2")
	}
	return u.tryAll(ctx, offers, nodes)
}

// tryAll tries offers, one after the other.
func (u *up) tryAll(ctx context.Context, offers []cloud.Offer, nodes []int) error {
	var why []error
	for _, spot := range u.markets() {
		full := map[string]bool{} // regions without quota
		for _, o := range offers {
			if full[o.Region] {
				continue
			}
			refused, err := u.try(ctx, o, spot, nodes)
			if err != nil {
				return errors.Join(append(why, err)...)
			}
			if refused == nil {
				return nil
			}
			why = append(why, refused)
			full[o.Region] = refused.Kind == awsapi.NoQuota
		}
	}
	return fmt.Errorf("no place has room for the machines: %w", errors.Join(why...))
}

// markets are the ways to pay, in the order in which to try them.
func (u *up) markets() []bool {
	switch {
	case !u.spec.Spot:
		return []bool{false}
	case own(u.spec).SpotFallback:
		return []bool{true, false}
	}
	return []bool{true}
}

// try tries the zones of one offer. It returns why the last one refused, or an
// error when there is no point in trying any other place.
func (u *up) try(ctx context.Context, o cloud.Offer, spot bool, nodes []int) (*awsapi.Problem, error) {
	head, err := u.head(ctx, o)
	var l launch
	var s *site
	if err == nil {
		l, s, err = u.prepare(ctx, o, spot)
	}
	if err == nil && head != nil {
		if no := u.p.canSix(ctx, s.network, *head); no != nil { // the others would be paid already
			err = elsewhere{fmt.Errorf("the head: %w", no)}
		}
	}
	if not := (elsewhere{}); errors.As(err, &not) {
		u.say(-1, o.Region+": "+not.Error())
		return &awsapi.Problem{Kind: awsapi.NotOffered, Cause: not.Error(), Err: err}, nil
	}
	if err != nil {
		return nil, err
	}
	last := &awsapi.Problem{Kind: awsapi.NotOffered, Cause: o.Instance + " is offered in no zone of " + o.Region + " that has a subnet"}
	for _, zone := range u.scored(ctx, o, spot, beside(s.zones(zones(o, spot, s.network)), head)) {
		l.Zone, l.Subnet, l.Nodes = zone.Name, s.Subnets[zone.Name], nodes
		l.Machine = l.price(o, zone)
		var lead *launch
		if head != nil {
			h := l.lead(*head)
			lead = &h
		}
		terms, err := u.terms(l, lead, time.Time{})
		if err != nil {
			return nil, err
		}
		u.say(-1, "launching "+l.what()+" in "+l.Zone)
		refused, err := u.start(ctx, l, terms)
		if refused == nil || err != nil {
			return nil, err
		}
		u.say(-1, l.Zone+": "+refused.Cause)
		last = refused
		switch refused.Kind {
		case awsapi.NoCapacity, awsapi.NotOffered:
		case awsapi.NoQuota:
			return last, nil
		default:
			return nil, refused
		}
	}
	return last, nil
}

// elsewhere is a reason for which a region can't be used, and another may.
type elsewhere struct{ error }

// regional marks an error that is about the region's own state.
func regional(err error) error {
	var p *awsapi.Problem
	if err == nil || errors.As(err, &p) && p.Kind != awsapi.NotFound {
		return err
	}
	return elsewhere{err}
}

// prepare makes what a launch needs in the offer's region; which zone and which
// nodes is left open.
func (u *up) prepare(ctx context.Context, o cloud.Offer, spot bool) (launch, *site, error) {
	var img ami.Image
	var s *site
	all, within := errgroup.WithContext(ctx)
	all.Go(func() (err error) { img, err = u.image(within, o); return err })
	all.Go(func() (err error) { s, err = u.site(within, o.Region, o.Instance); return err })
	if err := all.Wait(); err != nil {
		return launch{}, nil, err
	}
	if r := s.reservation; r != nil && r.Instance != o.Instance {
		return launch{}, nil, elsewhere{fmt.Errorf("%s is for %s, not for %s", r.ID, r.Instance, o.Instance)}
	}
	if err := u.p.canSix(ctx, s.network, o); err != nil {
		return launch{}, nil, elsewhere{err}
	}
	gib, err := img.DiskGiB(u.spec.Disk)
	if err != nil {
		return launch{}, nil, err
	}
	m := own(u.spec)
	l := launch{Region: o.Region, Instance: o.Instance, Spot: spot, Image: img.ID, Device: img.Device, GiB: gib,
		Group: s.group, Groups: s.groups, Key: s.key, Profile: m.InstanceProfile, Tags: u.tags, User: img.User, VCPUs: o.VCPUs,
		Disk: u.diskPrice(ctx, o.Region), Address: catalog.AddressPrice()}
	l.settle(m, s.network)
	if s.clusters[o.Instance] {
		l.Placement = s.placement
	}
	s.reservation.reserve(&l)
	u.weave(ctx, &l, o)
	return l, s, nil
}

// settle takes over what the profile says of the machines, and the way to them.
func (l *launch) settle(m options.Machines, n network) {
	l.Reach, l.Way = n.Way.kind, n.Way.word()
	l.Six, l.SixOnly = n.Six, n.SixOnly
	if l.Reach == wayPublic {
		l.Reach = ""
	}
	if l.private() || l.Six {
		l.Address.PerHour = 0
	}
	l.Data = volume.Sizes(m)
	l.IOPS, l.Throughput, l.KMSKey = int32(m.DiskIOPS), int32(m.DiskThroughput), m.KMSKey
	if l.Spot {
		l.MaxPrice = m.SpotMaxPrice
	}
}

// image is the image for an offer's machines; it is looked up once.
func (u *up) image(ctx context.Context, o cloud.Offer) (ami.Image, error) {
	at := [2]string{o.Region, o.Arch}
	if img, ok := u.images[at]; ok {
		return img, nil
	}
	img, err := u.p.image(ctx, o.Region, o.Arch, u.spec)
	if err != nil {
		return img, regional(err)
	}
	u.images[at] = img
	u.say(-1, "image "+img.ID+" ("+img.Name+") in "+o.Region)
	return img, nil
}

// zones are those of an offer in which there is a subnet, the cheapest first
// on the spot market.
func zones(o cloud.Offer, spot bool, n network) []cloud.Zone {
	all := slices.Clone(o.Zones)
	if len(all) == 0 { // nobody could be asked
		for _, name := range slices.Sorted(maps.Keys(n.Subnets)) {
			all = append(all, cloud.Zone{Name: name})
		}
	}
	all = slices.DeleteFunc(all, func(z cloud.Zone) bool { return n.Subnets[z.Name] == "" })
	if spot {
		slices.SortStableFunc(all, func(a, b cloud.Zone) int {
			return cmp.Compare(spotOrder(a), spotOrder(b))
		})
	}
	return all
}

// spotOrder puts zones without a known price last.
func spotOrder(z cloud.Zone) float64 {
	if z.Spot == 0 {
		return math.Inf(1)
	}
	return z.Spot
}

// machinePrice is what one machine costs in a zone. Where the spot price is not
// known it is the one on demand: it is never more.
func machinePrice(o cloud.Offer, z cloud.Zone, spot bool) cloud.Price {
	switch {
	case spot && z.Spot > 0:
		return cloud.Price{PerHour: z.Spot, Source: o.Spot.Source, At: o.Spot.At}
	case spot && o.Spot.Known():
		return o.Spot
	}
	return o.OnDemand
}

// price is what one machine of a launch costs in a zone. What runs in a capacity
// block is paid for already.
func (l launch) price(o cloud.Offer, z cloud.Zone) cloud.Price {
	if l.Block {
		return cloud.Price{Source: "paid with the capacity block"}
	}
	return machinePrice(o, z, l.Spot)
}

// scoreLimit bounds the wait for placement scores.
const scoreLimit = 5 * time.Second

// scored puts the zones for spot machines in the order of AWS's placement scores:
// how likely it is that there is room for all of them. Where AWS gives none they
// stay as they are, the cheapest first; so do those of one score.
func (u *up) scored(ctx context.Context, o cloud.Offer, spot bool, all []cloud.Zone) []cloud.Zone {
	if !spot || len(all) < 2 {
		return all
	}
	ec2, err := u.p.connect(ctx, o.Region)
	if err != nil {
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, scoreLimit)
	defer cancel()
	out, err := ec2.GetSpotPlacementScores(ctx, &awsec2.GetSpotPlacementScoresInput{InstanceTypes: []string{o.Instance},
		TargetCapacity: aws.Int32(int32(u.spec.Count)), SingleAvailabilityZone: aws.Bool(true), RegionNames: []string{o.Region}})
	if err != nil {
		return all // a hint: only so many questions a day are answered
	}
	score := map[string]int32{}
	for _, s := range out.SpotPlacementScores {
		score[aws.ToString(s.AvailabilityZoneId)] = aws.ToInt32(s.Score)
	}
	slices.SortStableFunc(all, func(a, b cloud.Zone) int { return cmp.Compare(score[b.ID], score[a.ID]) })
	return all
}

// The limits of a lease that no profile sets.
const (
	bootstrapLimit = 30 * time.Minute // until somebody makes use of the machine
	drainLimit     = 10 * time.Minute
)

// leaseTerms are what machines are told of their lease.
type leaseTerms struct {
	bootstrap, lifetime, budget time.Duration
}

// terms are those of the machines of a launch and of the head beside them, if there
// is one. Machines that take the place of others get what is left of their time;
// began is when those were started.
func (u *up) terms(l launch, head *launch, began time.Time) (leaseTerms, error) {
	t := leaseTerms{bootstrap: bootstrap(l.Instance), lifetime: u.spec.Lifetime}
	rate := l.perNode() * float64(u.spec.Count)
	dear := l
	if head != nil {
		rate += head.perNode()
		t.bootstrap = max(t.bootstrap, bootstrap(head.Instance)) // nobody makes use of one before all answer
		if !head.Machine.Known() {
			dear = *head
		}
	}
	switch {
	case u.spec.Budget == 0:
	case !dear.Machine.Known() && !dear.Block:
		return t, fmt.Errorf("the price of %s in %s is not known, and so nothing could keep the budget of %s: "+
			"leave limits.budget out, or choose another type or region", dear.Instance, dear.Region, units.USD(u.spec.Budget))
	default:
		t.budget = time.Duration(u.spec.Budget / rate * float64(time.Hour))
	}
	if began.IsZero() {
		return t, nil
	}
	for _, limit := range []*time.Duration{&t.lifetime, &t.budget} {
		if *limit == 0 {
			continue
		}
		if *limit -= time.Since(began); *limit < time.Minute {
			return t, errors.New("the time or the budget of this cluster is used up: no machine is launched for it any more")
		}
	}
	return t, nil
}

// userData is what the machines of a launch are told before they boot.
func (u *up) userData(l launch, t leaseTerms) ([]byte, error) {
	mounts := volume.Mounts(own(u.spec))
	if l.Head {
		mounts = nil
	}
	return userdata.Render(userdata.Boot{
		Life: u.life.ID, Cluster: u.life.Name, User: own(u.spec).User, AuthorizedKey: u.keys.Authorized,
		HostKeyPrivate: u.keys.Bootstrap, HostKeyPublic: u.keys.BootstrapIdentity,
		Lease: userdata.Lease{Bootstrap: t.bootstrap, Idle: u.spec.Idle, Lifetime: t.lifetime, Budget: t.budget,
			Drain: u.spec.Drain, DrainLimit: drainLimit},
		SpotNotice: l.Spot, IPv6: l.SixOnly, More: own(u.spec).UserData, Volumes: mounts,
	})
}
