package ec2

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/door"
	"github.com/dlwb/dlwb/internal/pattern"
)

// thing is a resource as AWS lists it.
type thing struct {
	kind, id string
	name     string // for those that have one besides the id
	tags     map[string]string
	phase    string // AWS's word
	why      string // what led to the phase, where AWS tells
	gone     bool   // it is listed still, and is no more
	busy     bool   // it can't be removed yet: something else has it
	made     time.Time
	ended    time.Time // when it ended, as far as AWS tells
	token    string    // the client token that made it
	index    int       // of an instance in its launch
	spot     bool
	instance string // type
	gib      int32  // of a volume
}

// resourceKind is how one kind of resource is found and removed.
type resourceKind struct {
	name string
	// list gives what fits the filters, all pages of it.
	list func(context.Context, client, []types.Filter) ([]thing, error)
	// remove asks AWS to end it. That it was asked proves nothing.
	remove func(context.Context, client, thing) error
	action string // the call that removes it
	byName string // the filter for the name, for kinds whose name is ours alone
	hand   string // the same by hand: aws ec2 <hand> <id>
	show   string // and how to see it
	// early things are removed while instances still run.
	early bool
}

// resourceKinds are all there are, in the order in which they can be removed.
var resourceKinds = []*resourceKind{
	{name: kindInstance, list: listInstances, remove: terminate, action: "TerminateInstances",
		show: "describe-instances", hand: "terminate-instances --instance-ids", early: true},
	{name: kindSpot, list: listSpotRequests, remove: cancelSpotRequest, action: "CancelSpotInstanceRequests",
		show: "describe-spot-instance-requests", hand: "cancel-spot-instance-requests --spot-instance-request-ids", early: true},
	{name: kindVolume, list: listVolumes, remove: deleteVolume, action: "DeleteVolume",
		show: "describe-volumes", hand: "delete-volume --volume-id"},
	{name: kindInterface, list: listInterfaces, remove: deleteInterface, action: "DeleteNetworkInterface",
		show: "describe-network-interfaces", hand: "delete-network-interface --network-interface-id"},
	{name: kindAddress, list: listAddresses, remove: releaseAddress, action: "ReleaseAddress",
		show: "describe-addresses", hand: "release-address --allocation-id"},
	{name: kindPlacement, list: listPlacements, remove: deletePlacement, action: "DeletePlacementGroup", byName: "group-name",
		show: "describe-placement-groups", hand: "delete-placement-group --group-name"},
	{name: kindGroup, list: listGroups, remove: deleteGroup, action: "DeleteSecurityGroup", byName: "group-name",
		show: "describe-security-groups", hand: "delete-security-group --group-id"},
	{name: kindKey, list: listKeys, remove: deleteKey, action: "DeleteKeyPair", byName: "key-name",
		show: "describe-key-pairs", hand: "delete-key-pair --key-pair-id"},
}

func kindNamed(name string) *resourceKind {
	for _, k := range resourceKinds {
		if k.name == name {
			return k
		}
	}
	return nil
}

// byHand is the command that removes a thing.
func (k *resourceKind) byHand(region string, t thing) string {
	verb, flag, _ := strings.Cut(k.hand, " ")
	id := t.id
	if flag == "--group-name" {
		id = t.name
	}
	return "aws ec2 " + verb + " --region " + region + " " + flag + " " + id
}

// looks is the call that lists them: "DescribePlacementGroups".
func (k *resourceKind) looks() string {
	var name strings.Builder
	for word := range strings.SplitSeq(k.show, "-") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

func listInstances(ctx context.Context, ec2 client, f []types.Filter) (found []thing, err error) {
	err = eachInstance(ctx, ec2, f, func(i types.Instance) { found = append(found, instanceThing(i)) })
	return found, err
}

// eachInstance calls with every instance that fits the filters.
func eachInstance(ctx context.Context, ec2 machines, f []types.Filter, call func(types.Instance), how ...func(*awsec2.Options)) error {
	for pages := awsec2.NewDescribeInstancesPaginator(ec2, &awsec2.DescribeInstancesInput{Filters: f}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx, how...)
		if err != nil {
			return err
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				call(i)
			}
		}
	}
	return nil
}

// eachOfTokens calls with every instance that was launched with one of the
// tokens. Emulators know no filter for the client token: they refuse it, show
// nothing, or show everything. Where it finds nothing the tag is asked for, which
// every machine was given in the same call, and what is shown is looked at.
func eachOfTokens(ctx context.Context, ec2 machines, tokens []string, call func(types.Instance)) error {
	var found []types.Instance
	take := func(i types.Instance) {
		if slices.Contains(tokens, aws.ToString(i.ClientToken)) || slices.Contains(tokens, labels(i.Tags)[tagToken]) {
			found = append(found, i)
		}
	}
	// Once: whoever refuses it does so each time, and there is the other way.
	err := eachInstance(ctx, ec2, []types.Filter{filter("client-token", tokens...)}, take, awsapi.Once)
	if (err != nil || len(found) == 0) && ctx.Err() == nil {
		found = nil
		err = eachInstance(ctx, ec2, []types.Filter{filter("tag:"+tagToken, tokens...)}, take)
	}
	for _, i := range found {
		call(i)
	}
	return err
}

func instanceThing(i types.Instance) thing {
	t := thing{kind: kindInstance, id: aws.ToString(i.InstanceId), tags: labels(i.Tags), phase: phaseOf(i), why: whyOf(i),
		made: aws.ToTime(i.LaunchTime), token: aws.ToString(i.ClientToken), index: int(aws.ToInt32(i.AmiLaunchIndex)),
		spot: i.InstanceLifecycle == types.InstanceLifecycleTypeSpot, instance: string(i.InstanceType)}
	if t.gone = t.phase == "terminated"; t.gone {
		t.ended = transition(aws.ToString(i.StateTransitionReason))
	}
	return t
}

func phaseOf(i types.Instance) string {
	if i.State == nil {
		return ""
	}
	return string(i.State.Name)
}

// whyOf is what AWS says made an instance's state: "Server.SpotInstanceTermination".
func whyOf(i types.Instance) string {
	if i.StateReason != nil {
		return aws.ToString(i.StateReason.Code)
	}
	return ""
}

var transitionTime = pattern.New(`\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) GMT\)`)

// transition is the time in "User initiated (2026-11-21 12:03:11 GMT)"; zero
// without one.
func transition(reason string) time.Time {
	if m := transitionTime.FindStringSubmatch(reason); m != nil {
		t, _ := time.Parse(time.DateTime, m[1])
		return t
	}
	return time.Time{}
}

func terminate(ctx context.Context, ec2 client, t thing) error {
	return terminateInstances(ctx, ec2, []string{t.id})
}

func terminateInstances(ctx context.Context, ec2 machines, ids []string) error {
	_, err := ec2.TerminateInstances(ctx, &awsec2.TerminateInstancesInput{InstanceIds: ids}, awsapi.Once)
	return err
}

func listSpotRequests(ctx context.Context, ec2 client, f []types.Filter) (found []thing, err error) {
	for pages := awsec2.NewDescribeSpotInstanceRequestsPaginator(ec2, &awsec2.DescribeSpotInstanceRequestsInput{Filters: f}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.SpotInstanceRequests {
			gone := r.State == types.SpotInstanceStateClosed || r.State == types.SpotInstanceStateCancelled || r.State == types.SpotInstanceStateFailed
			found = append(found, thing{kind: kindSpot, id: aws.ToString(r.SpotInstanceRequestId), tags: labels(r.Tags),
				phase: string(r.State), gone: gone, made: aws.ToTime(r.CreateTime)})
		}
	}
	return found, nil
}

func cancelSpotRequest(ctx context.Context, ec2 client, t thing) error {
	_, err := ec2.CancelSpotInstanceRequests(ctx, &awsec2.CancelSpotInstanceRequestsInput{SpotInstanceRequestIds: []string{t.id}}, awsapi.Once)
	return err
}

func listVolumes(ctx context.Context, ec2 client, f []types.Filter) (found []thing, err error) {
	for pages := awsec2.NewDescribeVolumesPaginator(ec2, &awsec2.DescribeVolumesInput{Filters: f}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, v := range page.Volumes {
			found = append(found, thing{kind: kindVolume, id: aws.ToString(v.VolumeId), tags: labels(v.Tags), phase: string(v.State),
				gone: v.State == types.VolumeStateDeleted, made: aws.ToTime(v.CreateTime), gib: aws.ToInt32(v.Size),
				busy: v.State != types.VolumeStateAvailable && v.State != types.VolumeStateError})
		}
	}
	return found, nil
}

func deleteVolume(ctx context.Context, ec2 client, t thing) error {
	_, err := ec2.DeleteVolume(ctx, &awsec2.DeleteVolumeInput{VolumeId: &t.id}, awsapi.Once)
	return err
}

func listInterfaces(ctx context.Context, ec2 client, f []types.Filter) (found []thing, err error) {
	for pages := awsec2.NewDescribeNetworkInterfacesPaginator(ec2, &awsec2.DescribeNetworkInterfacesInput{Filters: f}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range page.NetworkInterfaces {
			found = append(found, thing{kind: kindInterface, id: aws.ToString(i.NetworkInterfaceId), tags: labels(i.TagSet),
				phase: string(i.Status), busy: i.Status != types.NetworkInterfaceStatusAvailable})
		}
	}
	return found, nil
}

func deleteInterface(ctx context.Context, ec2 client, t thing) error {
	_, err := ec2.DeleteNetworkInterface(ctx, &awsec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &t.id}, awsapi.Once)
	return err
}

func listAddresses(ctx context.Context, ec2 client, f []types.Filter) (found []thing, err error) {
	out, err := ec2.DescribeAddresses(ctx, &awsec2.DescribeAddressesInput{Filters: f})
	if err != nil {
		return nil, err
	}
	for _, a := range out.Addresses {
		found = append(found, thing{kind: kindAddress, id: aws.ToString(a.AllocationId), name: aws.ToString(a.PublicIp), tags: labels(a.Tags)})
	}
	return found, nil
}

func releaseAddress(ctx context.Context, ec2 client, t thing) error {
	_, err := ec2.ReleaseAddress(ctx, &awsec2.ReleaseAddressInput{AllocationId: &t.id}, awsapi.Once)
	return err
}

func listPlacements(ctx context.Context, ec2 client, f []types.Filter) (found []thing, err error) {
	out, err := ec2.DescribePlacementGroups(ctx, &awsec2.DescribePlacementGroupsInput{Filters: f})
	if err != nil {
		return nil, err
	}
	for _, g := range out.PlacementGroups {
		found = append(found, thing{kind: kindPlacement, id: aws.ToString(g.GroupId), name: aws.ToString(g.GroupName), tags: labels(g.Tags),
			phase: string(g.State), gone: g.State == types.PlacementGroupStateDeleted})
	}
	return found, nil
}

func deletePlacement(ctx context.Context, ec2 client, t thing) error {
	_, err := ec2.DeletePlacementGroup(ctx, &awsec2.DeletePlacementGroupInput{GroupName: &t.name}, awsapi.Once)
	return err
}

func listGroups(ctx context.Context, ec2 client, f []types.Filter) (found []thing, err error) {
	for pages := awsec2.NewDescribeSecurityGroupsPaginator(ec2, &awsec2.DescribeSecurityGroupsInput{Filters: f}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, g := range page.SecurityGroups {
			found = append(found, thing{kind: kindGroup, id: aws.ToString(g.GroupId), name: aws.ToString(g.GroupName), tags: labels(g.Tags)})
		}
	}
	return found, nil
}

// deleteGroup deletes a security group. When something keeps it, its rules about
// itself are taken back, so that they are not what does.
func deleteGroup(ctx context.Context, ec2 client, t thing) error {
	_, err := ec2.DeleteSecurityGroup(ctx, &awsec2.DeleteSecurityGroupInput{GroupId: &t.id}, awsapi.Once)
	if problem := awsapi.Explain(err, awsapi.Call{Action: "DeleteSecurityGroup"}); problem == nil || problem.Kind != awsapi.InUse {
		return err
	}
	within := door.Within(t.id)
	_, _ = ec2.RevokeSecurityGroupIngress(ctx, &awsec2.RevokeSecurityGroupIngressInput{GroupId: &t.id, IpPermissions: within}, awsapi.Once)
	_, _ = ec2.RevokeSecurityGroupEgress(ctx, &awsec2.RevokeSecurityGroupEgressInput{GroupId: &t.id, IpPermissions: within}, awsapi.Once)
	return err
}

func listKeys(ctx context.Context, ec2 client, f []types.Filter) (found []thing, err error) {
	out, err := ec2.DescribeKeyPairs(ctx, &awsec2.DescribeKeyPairsInput{Filters: f})
	if err != nil {
		return nil, err
	}
	for _, k := range out.KeyPairs {
		found = append(found, thing{kind: kindKey, id: aws.ToString(k.KeyPairId), name: aws.ToString(k.KeyName), tags: labels(k.Tags),
			made: aws.ToTime(k.CreateTime)})
	}
	return found, nil
}

// deleteKey deletes a key pair by its id. AWS's answer names what it has deleted;
// where it names nothing, as with emulators that know no ids here, it is deleted by
// its name, which is unique in a region and was listed with our tag.
func deleteKey(ctx context.Context, ec2 client, t thing) error {
	if t.id != "" {
		out, err := ec2.DeleteKeyPair(ctx, &awsec2.DeleteKeyPairInput{KeyPairId: &t.id}, awsapi.Once)
		if err != nil || aws.ToString(out.KeyPairId) != "" {
			return err
		}
	}
	_, err := ec2.DeleteKeyPair(ctx, &awsec2.DeleteKeyPairInput{KeyName: &t.name}, awsapi.Once)
	return err
}
