package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"pgregory.net/rapid"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/sample"
)

// account is one region of an account with many things of many owners. It does
// not trust its callers to filter: half of the time it lists everything, as an
// AWS that has forgotten a filter would.
type account struct {
	client // what is not modelled panics
	*fates
	mu      sync.Mutex
	things  []*owned
	removed []*owned
}

type owned struct {
	kind, id, name string
	tags           map[string]string
	state          int
	gone           bool
}

func (a *account) list(kind string, filters []types.Filter) []*owned {
	a.mu.Lock()
	defer a.mu.Unlock()
	careless := a.within(2) == 1
	var out []*owned
	for _, o := range a.things {
		if o.kind == kind && !o.gone && (careless || o.fits(filters)) {
			out = append(out, o)
		}
	}
	return out
}

func (o *owned) fits(filters []types.Filter) bool {
	for _, f := range filters {
		switch name := *f.Name; name {
		case "tag-key":
			if _, ok := o.tags[f.Values[0]]; !ok {
				return false
			}
		case "tag:" + tagLife:
			if !slices.Contains(f.Values, o.tags[tagLife]) {
				return false
			}
		case "group-name", "key-name":
			if !slices.Contains(f.Values, o.name) {
				return false
			}
		case "instance-id", "client-token", "tag:" + tagToken:
			if !slices.Contains(f.Values, o.id) && !slices.Contains(f.Values, o.tags[tagToken]) {
				return false
			}
		default:
			panic("the account has no filter " + name)
		}
	}
	return true
}

func (o *owned) list() []types.Tag {
	var tags []types.Tag
	for k, v := range o.tags {
		tags = append(tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	return tags
}

// remove ends a thing, by its id or its name.
func (a *account) remove(kind, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.things {
		if o.kind == kind && !o.gone && (o.id == name || o.name == name && o.name != "" && kind == kindPlacement) {
			o.gone = true
			a.removed = append(a.removed, o)
		}
	}
}

func (a *account) DescribeInstances(_ context.Context, in *awsec2.DescribeInstancesInput, _ ...func(*awsec2.Options)) (*awsec2.DescribeInstancesOutput, error) {
	out := &awsec2.DescribeInstancesOutput{}
	states := []types.InstanceStateName{"running", "pending", "stopped", "stopping"}
	for _, o := range a.list(kindInstance, in.Filters) {
		out.Reservations = append(out.Reservations, types.Reservation{Instances: []types.Instance{{InstanceId: &o.id, Tags: o.list(),
			ClientToken: aws.String(o.tags[tagToken]), State: &types.InstanceState{Name: states[o.state%len(states)]}}}})
	}
	return out, nil
}

func (a *account) TerminateInstances(_ context.Context, in *awsec2.TerminateInstancesInput, _ ...func(*awsec2.Options)) (*awsec2.TerminateInstancesOutput, error) {
	for _, id := range in.InstanceIds {
		a.remove(kindInstance, id)
	}
	return &awsec2.TerminateInstancesOutput{}, nil
}

func (a *account) DescribeVolumes(_ context.Context, in *awsec2.DescribeVolumesInput, _ ...func(*awsec2.Options)) (*awsec2.DescribeVolumesOutput, error) {
	out := &awsec2.DescribeVolumesOutput{}
	for _, o := range a.list(kindVolume, in.Filters) {
		out.Volumes = append(out.Volumes, types.Volume{VolumeId: &o.id, Tags: o.list(), State: "available"})
	}
	return out, nil
}

func (a *account) DeleteVolume(_ context.Context, in *awsec2.DeleteVolumeInput, _ ...func(*awsec2.Options)) (*awsec2.DeleteVolumeOutput, error) {
	a.remove(kindVolume, *in.VolumeId)
	return &awsec2.DeleteVolumeOutput{}, nil
}

func (a *account) DescribeNetworkInterfaces(_ context.Context, in *awsec2.DescribeNetworkInterfacesInput, _ ...func(*awsec2.Options)) (*awsec2.DescribeNetworkInterfacesOutput, error) {
	out := &awsec2.DescribeNetworkInterfacesOutput{}
	for _, o := range a.list(kindInterface, in.Filters) {
		out.NetworkInterfaces = append(out.NetworkInterfaces, types.NetworkInterface{NetworkInterfaceId: &o.id, TagSet: o.list(), Status: "available"})
	}
	return out, nil
}

func (a *account) DeleteNetworkInterface(_ context.Context, in *awsec2.DeleteNetworkInterfaceInput, _ ...func(*awsec2.Options)) (*awsec2.DeleteNetworkInterfaceOutput, error) {
	a.remove(kindInterface, *in.NetworkInterfaceId)
	return &awsec2.DeleteNetworkInterfaceOutput{}, nil
}

func (a *account) DescribeAddresses(_ context.Context, in *awsec2.DescribeAddressesInput, _ ...func(*awsec2.Options)) (*awsec2.DescribeAddressesOutput, error) {
	out := &awsec2.DescribeAddressesOutput{}
	for _, o := range a.list(kindAddress, in.Filters) {
		out.Addresses = append(out.Addresses, types.Address{AllocationId: &o.id, Tags: o.list(), PublicIp: &o.name})
	}
	return out, nil
}

func (a *account) ReleaseAddress(_ context.Context, in *awsec2.ReleaseAddressInput, _ ...func(*awsec2.Options)) (*awsec2.ReleaseAddressOutput, error) {
	a.remove(kindAddress, *in.AllocationId)
	return &awsec2.ReleaseAddressOutput{}, nil
}

func (a *account) DescribeSpotInstanceRequests(_ context.Context, in *awsec2.DescribeSpotInstanceRequestsInput, _ ...func(*awsec2.Options)) (*awsec2.DescribeSpotInstanceRequestsOutput, error) {
	out := &awsec2.DescribeSpotInstanceRequestsOutput{}
	for _, o := range a.list(kindSpot, in.Filters) {
		out.SpotInstanceRequests = append(out.SpotInstanceRequests, types.SpotInstanceRequest{SpotInstanceRequestId: &o.id, Tags: o.list(), State: "active"})
	}
	return out, nil
}

func (a *account) CancelSpotInstanceRequests(_ context.Context, in *awsec2.CancelSpotInstanceRequestsInput, _ ...func(*awsec2.Options)) (*awsec2.CancelSpotInstanceRequestsOutput, error) {
	for _, id := range in.SpotInstanceRequestIds {
		a.remove(kindSpot, id)
	}
	return &awsec2.CancelSpotInstanceRequestsOutput{}, nil
}

func (a *account) DescribeSecurityGroups(_ context.Context, in *awsec2.DescribeSecurityGroupsInput, _ ...func(*awsec2.Options)) (*awsec2.DescribeSecurityGroupsOutput, error) {
	out := &awsec2.DescribeSecurityGroupsOutput{}
	for _, o := range a.list(kindGroup, in.Filters) {
		out.SecurityGroups = append(out.SecurityGroups, types.SecurityGroup{GroupId: &o.id, GroupName: &o.name, Tags: o.list()})
	}
	return out, nil
}

func (a *account) DeleteSecurityGroup(_ context.Context, in *awsec2.DeleteSecurityGroupInput, _ ...func(*awsec2.Options)) (*awsec2.DeleteSecurityGroupOutput, error) {
	a.remove(kindGroup, *in.GroupId)
	return &awsec2.DeleteSecurityGroupOutput{}, nil
}

func (a *account) DescribePlacementGroups(_ context.Context, in *awsec2.DescribePlacementGroupsInput, _ ...func(*awsec2.Options)) (*awsec2.DescribePlacementGroupsOutput, error) {
	out := &awsec2.DescribePlacementGroupsOutput{}
	for _, o := range a.list(kindPlacement, in.Filters) {
		out.PlacementGroups = append(out.PlacementGroups, types.PlacementGroup{GroupId: &o.id, GroupName: &o.name, Tags: o.list(), State: "available"})
	}
	return out, nil
}

func (a *account) DeletePlacementGroup(_ context.Context, in *awsec2.DeletePlacementGroupInput, _ ...func(*awsec2.Options)) (*awsec2.DeletePlacementGroupOutput, error) {
	a.remove(kindPlacement, *in.GroupName)
	return &awsec2.DeletePlacementGroupOutput{}, nil
}

func (a *account) DescribeKeyPairs(_ context.Context, in *awsec2.DescribeKeyPairsInput, _ ...func(*awsec2.Options)) (*awsec2.DescribeKeyPairsOutput, error) {
	out := &awsec2.DescribeKeyPairsOutput{}
	for _, o := range a.list(kindKey, in.Filters) {
		out.KeyPairs = append(out.KeyPairs, types.KeyPairInfo{KeyPairId: &o.id, KeyName: &o.name, Tags: o.list()})
	}
	return out, nil
}

func (a *account) DeleteKeyPair(_ context.Context, in *awsec2.DeleteKeyPairInput, _ ...func(*awsec2.Options)) (*awsec2.DeleteKeyPairOutput, error) {
	a.remove(kindKey, *in.KeyPairId)
	return &awsec2.DeleteKeyPairOutput{KeyPairId: in.KeyPairId}, nil
}

const (
	me      = "arn:aws:iam::123456789012:user/me"
	another = "arn:aws:iam::123456789012:user/another"
)

var lives = []string{"aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "", "*", "aaaaaaaaaaa?"}

// randomAccount has things of both owners in several lives, things with half of
// the tags, and things with dlwb's names and none of its tags.
func randomAccount(rt *rapid.T) *account {
	a := &account{fates: &fates{left: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "fates")}}
	for n, dice := range rapid.SliceOfN(rapid.Uint64(), 1, 40).Draw(rt, "things") {
		roll := func(ways int) int {
			v := int(dice % uint64(ways))
			dice /= uint64(ways)
			return v
		}
		k := resourceKinds[roll(len(resourceKinds))].name
		o := &owned{kind: k, id: fmt.Sprintf("%s-%04x", k[:2], n), name: fmt.Sprintf("name-%d", n), tags: map[string]string{}, state: roll(4)}
		if life := lives[roll(len(lives))]; life != "" || roll(2) == 0 {
			o.tags[tagLife] = life
		}
		if owner := []string{me, another, "", me + "/", "*"}[roll(5)]; owner != "" {
			o.tags[tagOwner] = owner
		}
		if roll(3) == 0 {
			o.tags[tagCluster] = "train"
		}
		if roll(3) == 0 && k != kindPlacement { // names of placement groups are unique, and are what they are deleted by
			o.name = baseName(cloud.Life{Name: "train", ID: lives[0]})
		}
		if roll(4) == 0 {
			o.tags[tagToken] = "dlwb-" + lives[0] + "-run-0"
		}
		a.things = append(a.things, o)
	}
	return a
}

func TestNothingThatBelongsToOthersIsEverRemoved(t *testing.T) {
	t.Parallel()
	accounts, removed, kept := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		a := randomAccount(rt)
		p := &Provider{settle: 200 * time.Millisecond, connect: func(context.Context, string) (client, error) { return a, nil }}
		var wrong error
		if rapid.Bool().Draw(rt, "collect") {
			synctest.Test(t, func(*testing.T) { wrong = collectAll(p, a) })
		} else {
			stolen := rapid.SampledFrom(a.things).Draw(rt, "an id in the ledger")
			synctest.Test(t, func(*testing.T) { wrong = downOne(p, a, stolen.id) })
		}
		if wrong != nil {
			rt.Fatal(wrong)
		}
		accounts, removed, kept = accounts+1, removed+len(a.removed), kept+len(a.things)-len(a.removed)
	})
	t.Logf("%d accounts: %d things removed, %d of others left alone", accounts, removed, kept)
	cases := sample.Part(t, fewCases, sample.Of(t, someCases, allCases, "random accounts"), "random accounts")
	if accounts < cases || removed < cases || kept < cases {
		t.Error("these are too few to mean anything")
	}
}

// collectAll removes every orphan that is found, the foreign ones too if it can.
func collectAll(p *Provider, a *account) error {
	h := cloud.Hunt{Blind: map[string]string{}}
	found := p.search(context.Background(), &h, []string{"r1"}, func(int, string) {})
	found.forget(func(life string) bool { return life == lives[1] })
	for _, o := range found.orphans(me, func(stray) float64 { return 0 }) {
		_, err := p.collect(context.Background(), me, o, func(int, string) {})
		if o.Foreign != (o.Owner != me) || o.Foreign && err == nil {
			return fmt.Errorf("%s of %s: foreign %v, %v", o.Life, o.Owner, o.Foreign, err)
		}
	}
	for _, o := range a.removed {
		if o.tags[tagOwner] != me || o.tags[tagLife] == "" || o.tags[tagLife] == lives[1] {
			return fmt.Errorf("%s %s was removed, and its tags are %v", o.kind, o.id, o.tags)
		}
	}
	for _, o := range a.things {
		if !o.gone && o.tags[tagOwner] == me && o.tags[tagLife] != "" && o.tags[tagLife] != lives[1] && len(h.Blind) == 0 {
			return fmt.Errorf("%s %s was left, and its tags are %v", o.kind, o.id, o.tags)
		}
	}
	return nil
}

// downOne takes down a life, in the ledger of which there is an id that may be
// anybody's.
func downOne(p *Provider, a *account, stolen string) error {
	life := cloud.Life{Name: "train", ID: lives[0], Ledger: &memory{}}
	token := "dlwb-" + life.ID + "-run-0"
	_ = life.Ledger.Intend(kindInstances, token, launch{Region: "r1", Nodes: []int{0}})
	_ = life.Ledger.Resolve(token, stolen)
	receipt, err := p.Down(context.Background(), life, nil)
	for _, o := range a.removed {
		if o.tags[tagLife] != life.ID {
			return fmt.Errorf("%s %s was removed, and its tags are %v", o.kind, o.id, maps.Clone(o.tags))
		}
	}
	for _, o := range a.things {
		ours := o.tags[tagLife] == life.ID
		asked := ours || o.kind == kindInstance && (o.id == stolen || o.tags[tagToken] == token)
		if ours && !o.gone {
			return fmt.Errorf("%s %s was left, and its tags are %v", o.kind, o.id, o.tags)
		}
		if asked && !o.gone && (err == nil || receipt.Proven()) {
			return fmt.Errorf("%s %s is there, and down says that all is gone", o.kind, o.id)
		}
	}
	return nil
}
