package ec2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/ami"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/cloud/ec2/lifekeys"
)

// up is one Up at work.
type up struct {
	p      *Provider
	life   cloud.Life
	spec   cloud.Spec
	say    cloud.Progress
	keys   lifekeys.Keys
	owner  string // the caller's principal
	tags   map[string]string
	sites  map[string]*site        // by region
	images map[[2]string]ami.Image // by region and architecture
	// choose gives the offers that fit the spec, the best first.
	choose func(context.Context, cloud.Spec) ([]cloud.Offer, error)
	// lookup gives the offer of one type in a region.
	lookup func(ctx context.Context, region, instance string) (cloud.Offer, error)
	// diskPrice is that of one GB in a region.
	diskPrice func(ctx context.Context, region string) cloud.Price
}

// Up makes the machines of a cluster. What earlier Ups of the same life began
// is found out first and made use of; only what is missing is launched.
func (p *Provider) Up(ctx context.Context, life cloud.Life, spec cloud.Spec, progress cloud.Progress) (cloud.Cluster, error) {
	c, err := p.up(ctx, life, spec, orSilent(progress))
	if err != nil {
		return cloud.Cluster{}, fmt.Errorf("bring up cluster %s: %w", life.Name, err)
	}
	return c, nil
}

func (p *Provider) up(ctx context.Context, life cloud.Life, spec cloud.Spec, say cloud.Progress) (cloud.Cluster, error) {
	u, err := p.begin(ctx, life, spec, say)
	if err != nil {
		return cloud.Cluster{}, err
	}
	c, err := u.assemble(ctx)
	if err != nil {
		return cloud.Cluster{}, err
	}
	return u.describe(ctx, c)
}

// assemble brings the machines together: those that there are, and new ones for
// the nodes that have none.
func (u *up) assemble(ctx context.Context) (crew, error) {
	c, err := u.resume(ctx)
	if err == nil {
		err = u.sameHead(c)
	}
	if err != nil {
		return nil, err
	}
	if missing := c.missing(nodesOf(u.spec)); len(missing) > 0 {
		if c, err = u.fill(ctx, c, missing); err != nil {
			return nil, err
		}
	}
	if missing := c.missing(nodesOf(u.spec)); len(missing) > 0 {
		return nil, fmt.Errorf("AWS has accepted the launch, and there is no machine for node %d: %w", missing[0], errLost)
	}
	if m := c.stopped(); m != nil {
		return nil, fmt.Errorf("%s is %s: start the cluster, or take it down", m.id, phaseOf(m.seen))
	}
	l := c.worker().launch
	if _, err := u.site(ctx, l.Region, l.Instance); err != nil { // the caller may have moved
		return nil, err
	}
	if err := u.ready(ctx, c); err != nil {
		return c, err
	}
	return c, u.attach(ctx, c)
}

// begin finds out who asks, from where, and with which keys.
func (p *Provider) begin(ctx context.Context, life cloud.Life, spec cloud.Spec, say cloud.Progress) (*up, error) {
	u := &up{p: p, life: life, spec: spec, say: say, sites: map[string]*site{}, images: map[[2]string]ami.Image{}}
	if spec.Count < 1 {
		return nil, fmt.Errorf("a cluster has at least one node, not %d", spec.Count)
	}
	api, err := p.api(ctx)
	if err != nil {
		return nil, awsapi.Explain(err, awsapi.Call{Action: "read the AWS configuration"})
	}
	api.Near(spec.Regions)
	who, err := api.Identity(ctx)
	if err != nil {
		return nil, awsapi.Explain(err, awsapi.Call{Action: "GetCallerIdentity"})
	}
	u.owner = who.Principal()
	if u.keys, err = lifekeys.Of(life); err != nil {
		return nil, err
	}
	market, err := p.market(ctx)
	if err != nil {
		return nil, err
	}
	u.choose, u.lookup, u.diskPrice = market.Choose, market.Lookup, market.DiskPrice
	u.tags = tags(life, u.owner, leaseEnd(time.Now(), spec), own(spec).Tags)
	return u, nil
}

// port is where the nodes' sshd listens.
func (u *up) port() int32 {
	if own(u.spec).SSHPort == 0 {
		return 22
	}
	return int32(own(u.spec).SSHPort)
}

// member is the machine of one node.
type member struct {
	launch launch
	token  string // of its ledger entry
	id     string
	seen   types.Instance // as AWS showed it last
	shown  bool           // AWS has shown it at all
}

// crew are the machines that a cluster has, by node.
type crew map[int]*member

// missing are the nodes that have no machine.
func (c crew) missing(count int) []int {
	var none []int
	for n := range count {
		if c[n] == nil {
			none = append(none, n)
		}
	}
	return none
}

// sorted are the machines in the order of their nodes.
func (c crew) sorted() []*member {
	var all []*member
	for _, n := range slices.Sorted(maps.Keys(c)) {
		all = append(all, c[n])
	}
	return all
}

// stopped is a machine that is not there to be waited for; nil when all are.
func (c crew) stopped() *member {
	for _, m := range c.sorted() {
		if phase := phaseOf(m.seen); phase == "stopping" || phase == "stopped" {
			return m
		}
	}
	return nil
}

// began is when the first of the machines was started.
func (c crew) began() time.Time {
	var first time.Time
	for _, m := range c {
		if t := aws.ToTime(m.seen.LaunchTime); !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// launches are what the machines of a crew were launched by, each with those of
// its nodes that are left.
func (c crew) launches() []launch {
	var all []launch
	var tokens []string
	for _, m := range c.sorted() {
		if !slices.Contains(tokens, m.token) {
			tokens, all = append(tokens, m.token), append(all, m.launch)
			all[len(all)-1].Nodes = nil
		}
	}
	for n, m := range c {
		i := slices.Index(tokens, m.token)
		all[i].Nodes = append(all[i].Nodes, n)
	}
	return all
}

// replace launches machines for the nodes that have lost theirs, where the
// others are.
func (u *up) replace(ctx context.Context, c crew, missing []int) error {
	l, err := u.pattern(c)
	if err != nil {
		return err
	}
	u.say(-1, fmt.Sprintf("launching %d × %s in %s in place of what was lost", len(missing), l.Instance, l.Zone))
	head, err := u.leader(ctx, c, l)
	if err != nil {
		return err
	}
	l.Nodes, l.Tags = missing, u.tags
	start := func() (*awsapi.Problem, error) {
		terms, err := u.terms(l, head, c.began())
		if err != nil {
			return nil, err
		}
		return u.start(ctx, l, terms)
	}
	refused, err := start()
	if err == nil && refused != nil && refused.Kind == awsapi.NoCapacity && l.Spot && own(u.spec).SpotFallback {
		u.say(-1, refused.Cause+"; trying on demand")
		if l, err = u.onDemand(ctx, l); err == nil {
			refused, err = start()
		}
	}
	if err == nil && refused != nil {
		err = refused
	}
	return err
}

// onDemand is the same launch, paid on demand.
func (u *up) onDemand(ctx context.Context, l launch) (launch, error) {
	m, err := u.p.market(ctx)
	if err != nil {
		return l, err
	}
	offer, err := m.Lookup(ctx, l.Region, l.Instance)
	l.Spot, l.Machine = false, offer.OnDemand
	return l, err
}

// describe says what the cluster is, once its machines run.
func (u *up) describe(ctx context.Context, c crew) (cloud.Cluster, error) {
	l := c.worker().launch
	jumps, err := u.p.jumps(ctx, way{kind: l.Reach, jump: own(u.spec).Jump}, true)
	if err != nil {
		return cloud.Cluster{}, err
	}
	out := cloud.Cluster{
		Name: u.life.Name, Provider: kind, KeyFile: u.keys.File, CreatedAt: c.began(),
		Region: l.Region, Zone: l.Zone, Instance: l.Instance, Spot: l.Spot,
		Costs: costs(c.launches()), ExpiresAt: leaseEnd(c.began(), u.spec), BootLimit: catalog.BootTime(l.Instance),
	}
	out.PricePerHour = sum(out.Costs)
	for i, m := range c.sorted() {
		instance := ""
		if m.launch.Head {
			instance = m.launch.Instance
		}
		out.Nodes = append(out.Nodes, cloud.Node{
			Head: m.launch.Head, Instance: instance,
			Index: i, Name: "node" + strconv.Itoa(i), ID: m.id, User: m.launch.User,
			Addr: m.addr(int(u.port())), Jumps: jumps, Way: m.launch.Way,
			HostKey: u.keys.BootstrapIdentity, RotateHostKey: true,
			PeerHost: m.peer(), PeerPort: int(u.port()),
		})
	}
	return out, nil
}

// addr is where the machine's sshd is, as it is reached from here.
func (m *member) addr(port int) string {
	return net.JoinHostPort(m.host(), strconv.Itoa(port))
}

// host is its address as it is reached from here; empty: it has none yet.
func (m *member) host() string {
	switch {
	case m.launch.Six:
		return aws.ToString(m.seen.Ipv6Address)
	case m.launch.private():
		return aws.ToString(m.seen.PrivateIpAddress)
	}
	return aws.ToString(m.seen.PublicIpAddress)
}

// peer is its address as the others reach it.
func (m *member) peer() string {
	if m.launch.Six {
		return aws.ToString(m.seen.Ipv6Address)
	}
	return aws.ToString(m.seen.PrivateIpAddress)
}

// errLost is that a machine was lost while it was waited for.
var errLost = errors.New("bring the cluster up again for a replacement, or take it down")
