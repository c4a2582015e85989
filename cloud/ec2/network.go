package ec2

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/door"
	"github.com/dlwb/dlwb/internal/pattern"
)

// site is what a region has for a life before machines can be started there.
type site struct {
	network
	group  string   // id of the one that dlwb makes; empty: groups are
	groups []string // ids of those that the profile names
	door   door.Door
	// reservation is the one that the profile names; nil: none.
	reservation *reservation
	volumes     string          // the zone of volumes that the profile names; empty: it names none
	key         string          // name
	placement   string          // name; empty: none
	apart       bool            // the endpoint has no placement groups
	clusters    map[string]bool // whether a type can be in a placement group
}

// zones are those of a list that the reservation and the volumes leave; all without them.
func (s *site) zones(all []cloud.Zone) []cloud.Zone {
	return slices.DeleteFunc(all, func(z cloud.Zone) bool {
		return s.reservation != nil && z.Name != s.reservation.Zone || s.volumes != "" && z.Name != s.volumes
	})
}

// free is the detail of a ledger entry of something that costs nothing.
type free struct {
	Region string            `json:"region"`
	Name   string            `json:"name"`
	VPC    string            `json:"vpc,omitempty"`
	Tags   map[string]string `json:"tags"`
}

// site makes what machines of a type need around them in a region, once.
func (u *up) site(ctx context.Context, region, instance string) (*site, error) {
	s := u.sites[region]
	if s == nil {
		n, err := u.p.network(ctx, region, u.spec)
		if err != nil {
			return nil, regional(err)
		}
		s = &site{network: n, clusters: map[string]bool{}}
		if s.reservation, err = u.p.reservation(ctx, region, u.spec); err != nil {
			return nil, regional(err)
		}
		if s.volumes, err = u.p.volumeZone(ctx, region, u.spec); err != nil {
			return nil, regional(err)
		}
	}
	if _, known := s.clusters[instance]; !known {
		s.clusters[instance] = u.spec.Count > 1 && u.p.clusters(ctx, region, instance)
	}
	ec2, err := u.p.connect(ctx, region)
	if err != nil {
		return nil, err
	}
	all, within := errgroup.WithContext(ctx)
	if s.group == "" && len(s.groups) == 0 {
		all.Go(func() error { return u.guard(within, ec2, region, s) })
	}
	if s.key == "" {
		all.Go(func() (err error) { s.key, err = u.keyPair(within, ec2, region); return err })
	}
	if s.placement == "" && s.clusters[instance] && !s.apart {
		all.Go(func() (err error) { s.placement, s.apart, err = u.near(within, ec2, region); return err })
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	u.sites[region] = s
	return s, nil
}

// burstable types can't be in a placement group.
var burstable = pattern.New(`^t\d`)

// clusters reports whether machines of a type can be put near each other.
func (p *Provider) clusters(ctx context.Context, region, instance string) bool {
	m, err := p.market(ctx)
	if err != nil {
		return !burstable.MatchString(instance)
	}
	facts, err := m.Facts(ctx, region, instance)
	if err != nil || len(facts.Placement) == 0 {
		return !burstable.MatchString(instance)
	}
	return slices.Contains(facts.Placement, string(types.PlacementStrategyCluster))
}

// ensure makes something that costs nothing and whose name nothing else has, or
// finds the one that an earlier Up made. It returns its id.
func (u *up) ensure(ctx context.Context, ec2 client, kind string, d free, action string, create func(token string) (*string, error)) (string, error) {
	d.Name, d.Tags = baseName(u.life), u.tags
	e, err := u.intent(kind, d)
	if err != nil || e.ID != "" {
		return e.ID, err
	}
	var id string
	call := awsapi.Call{Action: action, Region: d.Region, ID: d.Name}
	err = u.p.insist(ctx, call, func() error {
		got, err := create(e.Token)
		if err == nil && aws.ToString(got) == "" {
			return &awsapi.Problem{Kind: awsapi.Unknown, Cause: action + ": AWS's answer has no id in it"}
		}
		id = aws.ToString(got)
		return err
	})
	if is(err, awsapi.Exists) {
		id, err = u.adopt(ctx, ec2, kind, d)
	}
	if err != nil {
		return "", err
	}
	return id, u.life.Ledger.Resolve(e.Token, id)
}

// intent is the open ledger entry for something in a region; a new one when
// there is none.
func (u *up) intent(kind string, d free) (cloud.Entry, error) {
	entries, err := u.life.Ledger.Entries()
	if err != nil {
		return cloud.Entry{}, err
	}
	for _, e := range entries {
		var was free
		if e.Kind == kind && e.Open() && json.Unmarshal(e.Detail, &was) == nil && was.Region == d.Region {
			return e, nil
		}
	}
	token := newToken(u.life, kind, entries)
	return cloud.Entry{Kind: kind, Token: token}, u.life.Ledger.Intend(kind, token, d)
}

// adopt finds the thing of our name, as soon as it is seen. It is ours only
// when it carries the tag of this life.
func (u *up) adopt(ctx context.Context, ec2 client, kind string, d free) (string, error) {
	k := kindNamed(kind)
	for b := u.p.backoff(); ; {
		found, err := k.list(ctx, ec2, []types.Filter{filter("tag:"+tagLife, u.life.ID)})
		i := slices.IndexFunc(found, func(t thing) bool { return t.name == d.Name && t.tags[tagLife] == u.life.ID })
		if i >= 0 {
			return found[i].id, nil
		}
		if !b.wait(ctx) {
			problem := awsapi.Explain(err, awsapi.Call{Action: k.looks(), Region: d.Region})
			if problem != nil {
				return "", problem
			}
			return "", fmt.Errorf("there is a %s %s in %s that is not this cluster's: it is left alone; remove it by hand", kind, d.Name, d.Region)
		}
	}
}

// guard finds or makes the security groups of a site.
func (u *up) guard(ctx context.Context, ec2 client, region string, s *site) (err error) {
	if named := own(u.spec).Groups; len(named) > 0 {
		s.groups, err = existingGroups(ctx, ec2, region, s.VPC, named)
		return err
	}
	if s.door, err = u.p.door(ctx, u.spec, s.network); err != nil {
		return err
	}
	s.group, err = u.group(ctx, ec2, region, s)
	return err
}

func (u *up) group(ctx context.Context, ec2 client, region string, s *site) (string, error) {
	u.say(-1, "making a security group in "+region+": "+s.door.Text())
	id, err := u.ensure(ctx, ec2, kindGroup, free{Region: region, VPC: s.VPC}, "CreateSecurityGroup", func(token string) (*string, error) {
		out, err := ec2.CreateSecurityGroup(ctx, &awsec2.CreateSecurityGroupInput{
			GroupName: aws.String(baseName(u.life)), VpcId: &s.VPC,
			Description:       aws.String("dlwb cluster " + u.life.Name),
			TagSpecifications: specify(token, u.tags, types.ResourceTypeSecurityGroup),
		}, awsapi.Once)
		if err != nil {
			return nil, err
		}
		return out.GroupId, nil
	})
	if err != nil {
		return "", err
	}
	return id, u.openGroup(ctx, ec2, region, id, s.door, s.Six)
}

// openGroup lets ssh in by the door, and everything from the group itself: EFA
// needs that in both directions by name of the group.
func (u *up) openGroup(ctx context.Context, ec2 client, region, id string, d door.Door, six bool) error {
	within := door.Within(id)
	out := within
	if six { // a new group may let out IPv4 alone
		out = append(slices.Clone(within), door.OutBySix())
	}
	for _, in := range append(d.Rules(u.port()), within) {
		err := u.rule(ctx, "AuthorizeSecurityGroupIngress", region, id, func() error {
			_, err := ec2.AuthorizeSecurityGroupIngress(ctx, &awsec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: in}, awsapi.Once)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, rule := range out { // each by itself: AWS refuses a whole call for one that is there already
		err := u.rule(ctx, "AuthorizeSecurityGroupEgress", region, id, func() error {
			_, err := ec2.AuthorizeSecurityGroupEgress(ctx, &awsec2.AuthorizeSecurityGroupEgressInput{GroupId: &id, IpPermissions: []types.IpPermission{rule}}, awsapi.Once)
			return err
		})
		if err != nil {
			return err
		}
	}
	return u.shutOut(ctx, ec2, region, id, d)
}

// shutOut takes back what let ssh in from where the caller was before.
func (u *up) shutOut(ctx context.Context, ec2 client, region, id string, d door.Door) error {
	var old []types.IpPermission
	err := u.p.insist(ctx, awsapi.Call{Action: "DescribeSecurityGroups", Region: region, ID: id}, func() error {
		out, err := ec2.DescribeSecurityGroups(ctx, &awsec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("group-id", id)}})
		if err == nil && len(out.SecurityGroups) == 1 {
			old = door.Elsewhere(out.SecurityGroups[0].IpPermissions, d.Nets)
		}
		return err
	})
	if err != nil || len(old) == 0 {
		return err
	}
	err = u.p.insist(ctx, awsapi.Call{Action: "RevokeSecurityGroupIngress", Region: region, ID: id}, func() error {
		_, err := ec2.RevokeSecurityGroupIngress(ctx, &awsec2.RevokeSecurityGroupIngressInput{GroupId: &id, IpPermissions: old}, awsapi.Once)
		return err
	})
	if is(err, awsapi.NotFound) {
		return nil // it is taken back already
	}
	return err
}

// rule adds one rule; that it is already there is fine.
func (u *up) rule(ctx context.Context, action, region, id string, add func() error) error {
	err := u.p.insist(ctx, awsapi.Call{Action: action, Region: region, ID: id}, add)
	if is(err, awsapi.Exists) {
		return nil
	}
	return err
}

// keyPair gives AWS the public half of the cluster's key; it returns its name.
func (u *up) keyPair(ctx context.Context, ec2 client, region string) (string, error) {
	name := baseName(u.life)
	_, err := u.ensure(ctx, ec2, kindKey, free{Region: region}, "ImportKeyPair", func(token string) (*string, error) {
		out, err := ec2.ImportKeyPair(ctx, &awsec2.ImportKeyPairInput{
			KeyName: &name, PublicKeyMaterial: []byte(u.keys.Authorized),
			TagSpecifications: specify(token, u.tags, types.ResourceTypeKeyPair),
		}, awsapi.Once)
		if err != nil {
			return nil, err
		}
		return out.KeyPairId, nil
	})
	return name, err
}

// near makes a placement group. An endpoint that has none is no reason to go
// without machines: it only says how near each other they stand. What became of
// the call is for the teardown to find out.
func (u *up) near(ctx context.Context, ec2 client, region string) (name string, apart bool, err error) {
	name, err = u.placement(ctx, ec2, region)
	if !awsapi.Unserved(err) && !unheardOf(err) {
		return name, false, err
	}
	u.say(-1, "the endpoint of "+region+" has no placement groups: the machines stand wherever there is room")
	return "", true, nil
}

// placement makes a group that puts machines near each other; it returns its
// name.
func (u *up) placement(ctx context.Context, ec2 client, region string) (string, error) {
	name := baseName(u.life)
	_, err := u.ensure(ctx, ec2, kindPlacement, free{Region: region}, "CreatePlacementGroup", func(token string) (*string, error) {
		out, err := ec2.CreatePlacementGroup(ctx, &awsec2.CreatePlacementGroupInput{
			GroupName: &name, Strategy: types.PlacementStrategyCluster,
			TagSpecifications: specify(token, u.tags, types.ResourceTypePlacementGroup),
		}, awsapi.Once)
		if err != nil {
			return nil, err
		}
		if out.PlacementGroup == nil {
			return nil, nil
		}
		return out.PlacementGroup.GroupId, nil
	})
	return name, err
}
