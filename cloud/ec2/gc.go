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

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
)

// Orphans looks into every region of the account for what carries the tag of a
// life that is not known here.
func (p *Provider) Orphans(ctx context.Context, known func(life string) bool, progress cloud.Progress) (cloud.Hunt, error) {
	hunt, err := p.hunt(ctx, known, orSilent(progress))
	if err != nil {
		return hunt, fmt.Errorf("look for what was left behind: %w", err)
	}
	return hunt, nil
}

func (p *Provider) hunt(ctx context.Context, known func(life string) bool, say cloud.Progress) (cloud.Hunt, error) {
	owner, err := p.identity(ctx)
	if err != nil {
		return cloud.Hunt{}, err
	}
	regions, closed, err := p.regions(ctx)
	if err != nil {
		return cloud.Hunt{}, err
	}
	h := cloud.Hunt{Identity: owner, Blind: map[string]string{}, Closed: closed, Settle: p.settle}
	found := p.search(ctx, &h, regions, say)
	found.forget(known)
	h.Orphans = found.orphans(owner, p.priceNow(ctx))
	return h, ctx.Err()
}

// search looks into all regions at once, and writes down which it could see.
func (p *Provider) search(ctx context.Context, h *cloud.Hunt, regions []string, say cloud.Progress) strays {
	found := strays{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, region := range regions {
		all.Go(func() {
			things, err := p.scour(ctx, region)
			mu.Lock()
			defer mu.Unlock()
			found.add(region, things)
			if err != nil {
				h.Blind[region] = err.Error()
				say(-1, region+" can't be seen whole: "+err.Error())
				return
			}
			h.Looked = append(h.Looked, region)
			say(-1, region+" was looked into")
		})
	}
	all.Wait()
	slices.Sort(h.Looked)
	return found
}

// identity is whose the things are that the caller makes.
func (p *Provider) identity(ctx context.Context) (string, error) {
	api, err := p.api(ctx)
	if err != nil {
		return "", awsapi.Explain(err, awsapi.Call{Action: "read the AWS configuration"})
	}
	who, err := api.Identity(ctx)
	if err != nil {
		return "", awsapi.Explain(err, awsapi.Call{Action: "GetCallerIdentity"})
	}
	return who.Principal(), nil
}

// anyRegion is asked for the list of regions when the user has none.
const anyRegion = "us-east-1"

// regions lists all there are: those that are open to the account, and the
// others.
func (p *Provider) regions(ctx context.Context) (open, closed []string, err error) {
	api, err := p.api(ctx)
	if err != nil {
		return nil, nil, err
	}
	ec2, err := p.connect(ctx, cmp.Or(api.Region(), anyRegion))
	if err != nil {
		return nil, nil, err
	}
	out, err := ec2.DescribeRegions(ctx, &awsec2.DescribeRegionsInput{AllRegions: aws.Bool(true)})
	if err != nil {
		return nil, nil, awsapi.Explain(err, awsapi.Call{Action: "DescribeRegions"})
	}
	if len(out.Regions) == 0 {
		return nil, nil, errors.New("AWS lists no region at all")
	}
	for _, r := range out.Regions {
		if name := aws.ToString(r.RegionName); aws.ToString(r.OptInStatus) == "not-opted-in" {
			closed = append(closed, name)
		} else {
			open = append(open, name)
		}
	}
	return open, closed, nil
}

// scour lists everything in a region that dlwb has made, whoever's it is. What
// it could see is valid also when there is an error.
func (p *Provider) scour(ctx context.Context, region string) ([]thing, error) {
	limit := min(max(p.settle/4, 2*time.Second), 30*time.Second)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ec2, err := p.connect(ctx, region)
	if err != nil {
		return nil, err
	}
	found := make([][]thing, len(resourceKinds))
	errs := make([]error, len(resourceKinds))
	var all sync.WaitGroup
	for n, k := range resourceKinds {
		all.Go(func() {
			found[n], errs[n] = k.list(ctx, ec2, []types.Filter{filter("tag-key", tagLife)})
			if unheardOf(errs[n]) || k.name == kindPlacement && awsapi.Unserved(errs[n]) && p.elsewhere(ctx) {
				errs[n] = nil // an emulator without placement groups has none
			}
		})
	}
	all.Wait()
	things := slices.DeleteFunc(slices.Concat(found...), func(t thing) bool { return t.tags[tagLife] == "" })
	for n, err := range errs {
		if err != nil && ctx.Err() == context.DeadlineExceeded {
			return things, fmt.Errorf("there was no answer within %s", limit)
		}
		if problem := awsapi.Explain(err, awsapi.Call{Action: resourceKinds[n].looks(), Region: region}); problem != nil {
			return things, problem
		}
	}
	return things, nil
}

// elsewhere reports whether calls go to another endpoint than AWS's own.
func (p *Provider) elsewhere(ctx context.Context) bool {
	api, err := p.api(ctx)
	return err == nil && api.Endpoint() != ""
}

// strays are things found, by life and owner.
type strays map[[2]string][]stray

type stray struct {
	region string
	thing
}

func (s strays) add(region string, things []thing) {
	for _, t := range things {
		if t.gone {
			continue
		}
		key := [2]string{t.tags[tagLife], awsapi.Principal(t.tags[tagOwner])}
		s[key] = append(s[key], stray{region, t})
	}
}

// forget leaves out the lives that are known.
func (s strays) forget(known func(life string) bool) {
	maps.DeleteFunc(s, func(key [2]string, _ []stray) bool { return known(key[0]) })
}

// orphans are the strays as lives, those of the owner first.
func (s strays) orphans(owner string, price func(stray) float64) []cloud.Orphan {
	var all []cloud.Orphan
	for key, things := range s {
		o := cloud.Orphan{Life: key[0], Owner: key[1], Foreign: key[1] != owner}
		for _, t := range things {
			o.Name, o.Host = cmp.Or(o.Name, t.tags[tagCluster]), cmp.Or(o.Host, t.tags[tagHost])
			o.PerHour += price(t)
			if !slices.Contains(o.Regions, t.region) {
				o.Regions = append(o.Regions, t.region)
			}
			if !t.made.IsZero() && (o.Since.IsZero() || t.made.Before(o.Since)) {
				o.Since = t.made
			}
			o.Resources = append(o.Resources, cloud.Resource{Kind: t.kind, ID: t.id, State: cloud.Alive,
				Proof: strings.TrimSpace("AWS lists it in " + t.region + " " + t.phase), Lived: cloud.Lived(t.made, time.Now())})
		}
		slices.Sort(o.Regions)
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b cloud.Orphan) int {
		return cmp.Or(order(a.Foreign)-order(b.Foreign), strings.Compare(a.Life, b.Life), strings.Compare(a.Owner, b.Owner))
	})
	return all
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// priceNow says what a thing costs an hour as it is now, as far as is known.
func (p *Provider) priceNow(ctx context.Context) func(stray) float64 {
	return func(s stray) float64 {
		switch s.kind {
		case kindAddress:
			return catalog.AddressPrice().PerHour
		case kindVolume:
			return float64(s.gib) * catalog.DiskPrice(s.region).PerHour
		case kindInstance:
			if s.phase == "pending" || s.phase == "running" {
				return p.machineNow(ctx, s) + catalog.AddressPrice().PerHour
			}
		}
		return 0
	}
}

func (p *Provider) machineNow(ctx context.Context, s stray) float64 {
	m, err := p.market(ctx)
	if err != nil {
		return 0
	}
	offer, err := m.Lookup(ctx, s.region, s.instance)
	if err != nil {
		return 0
	}
	return machinePrice(offer, cloud.Zone{}, s.spot).PerHour
}

// Collect removes one orphan, as Down does with a life: what carries the tags
// of its life and of the caller, and nothing else.
func (p *Provider) Collect(ctx context.Context, o cloud.Orphan, progress cloud.Progress) (cloud.Receipt, error) {
	receipt := cloud.Receipt{Cluster: o.Name, Provider: kind}
	owner, err := p.identity(ctx)
	if err == nil {
		receipt.Resources, err = p.collect(ctx, owner, o, orSilent(progress))
	} else {
		receipt.Resources = doubtful(o, err)
	}
	total(&receipt, o.Since)
	if err == nil && !receipt.Proven() {
		err = errors.New("not everything is proven gone")
	}
	if err != nil {
		return receipt, fmt.Errorf("remove what is left of %s (life %s): %w", o.Name, o.Life, errors.Join(err, byHand(receipt)))
	}
	return receipt, nil
}

func (p *Provider) collect(ctx context.Context, owner string, o cloud.Orphan, say cloud.Progress) ([]cloud.Resource, error) {
	if o.Foreign || o.Owner != owner || o.Owner == "" || o.Life == "" {
		return o.Resources, fmt.Errorf("it belongs to %q and you are %q: it is left alone", o.Owner, owner)
	}
	var sweeps []*sweep
	grouped := slices.ContainsFunc(o.Resources, func(r cloud.Resource) bool { return r.Kind == kindPlacement })
	for _, region := range o.Regions {
		ec2, err := p.connect(ctx, region)
		if err != nil {
			return doubtful(o, err), err
		}
		sweeps = append(sweeps, &sweep{p: p, ec2: ec2, region: region, grouped: grouped, life: cloud.Life{ID: o.Life}, owner: owner, say: say})
	}
	err := runAll(ctx, sweeps)
	var all []cloud.Resource
	for _, s := range sweeps {
		all = append(all, s.resources(nil)...)
	}
	return all, err
}

// doubtful are the resources of an orphan of which nothing new is known.
func doubtful(o cloud.Orphan, err error) []cloud.Resource {
	all := slices.Clone(o.Resources)
	for i := range all {
		all[i].State, all[i].Proof = cloud.Unknown, err.Error()
	}
	return all
}
