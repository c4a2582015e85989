package fakeaws

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGgGgzbmvrsUOPOBMhZGXRhYvTpaeIRBPXeMkhTEr1Ll dlwb"

func (r *rig) group(name string) string {
	r.t.Helper()
	return *must(r.ec2.CreateSecurityGroup(r.t.Context(), &ec2.CreateSecurityGroupInput{GroupName: &name, Description: aws.String("for tests"),
		TagSpecifications: []types.TagSpecification{tagged("security-group", "dlwb:cluster", name)}}))(r.t).GroupId
}

func ports(from, to int32, cidr string) types.IpPermission {
	return types.IpPermission{IpProtocol: aws.String("tcp"), FromPort: &from, ToPort: &to,
		IpRanges: []types.IpRange{{CidrIp: &cidr, Description: aws.String("ssh")}}}
}

func within(group string) types.IpPermission {
	return types.IpPermission{IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &group}}}
}

func TestSecurityGroupsHaveTheirRules(t *testing.T) {
	r := start(t, slow)
	ctx := t.Context()
	id := r.group("g")
	_, err := r.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("g"), Description: aws.String("d")})
	r.refuses("InvalidGroup.Duplicate", err)
	_, err = r.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("h"), Description: aws.String("it's")})
	r.refuses("InvalidParameterValue", err)

	in := &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: []types.IpPermission{ports(22, 22, "198.51.100.7/32"), within(id)}}
	same(t, "rules made", len(must(r.ec2.AuthorizeSecurityGroupIngress(ctx, in))(t).SecurityGroupRules), 2)
	_, err = r.ec2.AuthorizeSecurityGroupIngress(ctx, in)
	r.refuses("InvalidPermission.Duplicate", err)
	must(r.ec2.AuthorizeSecurityGroupEgress(ctx, &ec2.AuthorizeSecurityGroupEgressInput{GroupId: &id, IpPermissions: []types.IpPermission{within(id)}}))(t)
	_, err = r.ec2.AuthorizeSecurityGroupEgress(ctx, &ec2.AuthorizeSecurityGroupEgressInput{GroupId: &id,
		IpPermissions: []types.IpPermission{{IpProtocol: aws.String("-1"), IpRanges: []types.IpRange{{CidrIp: aws.String("0.0.0.0/0")}}}}})
	r.refuses("InvalidPermission.Duplicate", err) // the default rule
	_, err = r.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: []types.IpPermission{ports(22, 22, "me")}})
	r.refuses("InvalidParameterValue", err)

	g := must(r.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}}))(t).SecurityGroups[0]
	same(t, "name", *g.GroupName, "g")
	same(t, "description", *g.Description, "for tests")
	same(t, "owner", *g.OwnerId, r.Account())
	same(t, "tag", *g.Tags[0].Value, "g")
	same(t, "kinds of ingress", len(g.IpPermissions), 2)
	ssh, all := g.IpPermissions[0], g.IpPermissions[1]
	same(t, "ssh", fmt.Sprint(*ssh.IpProtocol, *ssh.FromPort, *ssh.ToPort, *ssh.IpRanges[0].CidrIp, *ssh.IpRanges[0].Description), "tcp22 22198.51.100.7/32ssh")
	same(t, "to itself", *all.UserIdGroupPairs[0].GroupId, id)
	if all.FromPort != nil {
		t.Error("a rule for all traffic has ports")
	}
	out := g.IpPermissionsEgress
	if len(out) != 1 || *out[0].IpRanges[0].CidrIp != "0.0.0.0/0" || *out[0].UserIdGroupPairs[0].GroupId != id {
		t.Errorf("egress is %+v", out)
	}
	rules := must(r.ec2.DescribeSecurityGroupRules(ctx, &ec2.DescribeSecurityGroupRulesInput{Filters: []types.Filter{filter("group-id", id)}}))(t).SecurityGroupRules
	same(t, "rules", len(rules), 4)

	revoked := &ec2.RevokeSecurityGroupIngressInput{GroupId: &id, IpPermissions: []types.IpPermission{ports(22, 22, "198.51.100.7/32")}}
	must(r.ec2.RevokeSecurityGroupIngress(ctx, revoked))(t)
	_, err = r.ec2.RevokeSecurityGroupIngress(ctx, revoked)
	r.refuses("InvalidPermission.NotFound", err)
	must(r.ec2.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: &id, IpPermissions: []types.IpPermission{within(id)}}))(t)

	must(r.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &id}))(t)
	_, err = r.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &id})
	r.refuses("InvalidGroup.NotFound", err)
	_, err = r.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
	r.refuses("InvalidGroup.NotFound", err)
}

func TestAGroupIsHeldWhileAnythingUsesItAndSomeTimeLonger(t *testing.T) {
	r := start(t, slow)
	ctx := t.Context()
	id, other := r.group("g"), r.group("other")
	remove := func(id string) error {
		_, err := r.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &id})
		return err
	}
	ids := r.launch(1, func(in *ec2.RunInstancesInput) { in.SecurityGroupIds = []string{id} })
	r.refuses("DependencyViolation", remove(id))
	must(r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	r.refuses("DependencyViolation", remove(id))
	r.Advance(time.Minute)
	same(t, "state", r.states(ids...), "terminated")
	r.refuses("DependencyViolation", remove(id))
	r.Advance(time.Minute)
	must(r.ec2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &other, IpPermissions: []types.IpPermission{within(id)}}))(t)
	r.refuses("DependencyViolation", remove(id))
	r.refuses("", remove(other))
	r.refuses("", remove(id))
	r.refuses("CannotDelete", remove(*must(r.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{}))(t).SecurityGroups[0].GroupId))
}

func TestKeyPairsAreImportedOnceAndDeletedSilently(t *testing.T) {
	r := start(t, Options{})
	ctx := t.Context()
	in := &ec2.ImportKeyPairInput{KeyName: aws.String("k"), PublicKeyMaterial: []byte(publicKey),
		TagSpecifications: []types.TagSpecification{tagged("key-pair", "a", "b")}}
	out := must(r.ec2.ImportKeyPair(ctx, in))(t)
	_, err := r.ec2.ImportKeyPair(ctx, in)
	r.refuses("InvalidKeyPair.Duplicate", err)
	_, err = r.ec2.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: aws.String("x"), PublicKeyMaterial: []byte("no key")})
	r.refuses("InvalidKey.Format", err)
	k := must(r.ec2.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{KeyNames: []string{"k"}, IncludePublicKey: aws.Bool(true)}))(t).KeyPairs[0]
	same(t, "id", *k.KeyPairId, *out.KeyPairId)
	same(t, "type", k.KeyType, "ed25519")
	same(t, "key", *k.PublicKey, publicKey)
	same(t, "fingerprint", *k.KeyFingerprint, *out.KeyFingerprint)
	same(t, "tag", *k.Tags[0].Value, "b")
	same(t, "deleted", *must(r.ec2.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: aws.String("k")}))(t).KeyPairId, *k.KeyPairId)
	same(t, "deleted again", must(r.ec2.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: aws.String("k")}))(t).KeyPairId, nil)
	_, err = r.ec2.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{KeyNames: []string{"k"}})
	r.refuses("InvalidKeyPair.NotFound", err)
}

func TestAPlacementGroupIsInUseUntilItsInstancesAreTerminated(t *testing.T) {
	r := start(t, slow)
	ctx := t.Context()
	in := &ec2.CreatePlacementGroupInput{GroupName: aws.String("pg"), Strategy: "cluster", TagSpecifications: []types.TagSpecification{tagged("placement-group", "a", "b")}}
	p := must(r.ec2.CreatePlacementGroup(ctx, in))(t).PlacementGroup
	same(t, "state", p.State, "available")
	_, err := r.ec2.CreatePlacementGroup(ctx, in)
	r.refuses("InvalidPlacementGroup.Duplicate", err)
	into := func(in *ec2.RunInstancesInput) { in.Placement = &types.Placement{GroupName: aws.String("pg")} }
	_, err = r.run(r.order(1, into, func(in *ec2.RunInstancesInput) { in.InstanceType = "t3.micro" }))
	r.refuses("InvalidParameterCombination", err)
	ids := r.launch(2, into)
	got := must(r.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: []types.Filter{filter("tag:a", "b")}}))(t).PlacementGroups
	if len(got) != 1 || *got[0].GroupId != *p.GroupId || got[0].Strategy != "cluster" || *got[0].Tags[0].Key != "a" {
		t.Errorf("the groups are %+v", got)
	}
	remove := func() error {
		_, err := r.ec2.DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: aws.String("pg")})
		return err
	}
	must(r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	r.refuses("InvalidPlacementGroup.InUse", remove())
	r.Advance(time.Minute)
	r.refuses("", remove())
	r.refuses("InvalidPlacementGroup.Unknown", remove())
}

func TestDisksThatAreToStayAreLeft(t *testing.T) {
	r := start(t, slow)
	ctx := t.Context()
	ids := r.launch(1, func(in *ec2.RunInstancesInput) {
		in.BlockDeviceMappings = []types.BlockDeviceMapping{{DeviceName: aws.String("/dev/sdb"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(10), VolumeType: "gp3"}}}
	})
	v := must(r.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: []types.Filter{filter("attachment.device", "/dev/sdb")}}))(t).Volumes[0].VolumeId
	_, err := r.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: v})
	r.refuses("VolumeInUse", err)
	must(r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	r.Advance(time.Minute)
	if left := r.Left(); !slices.Equal(left, []string{"us-east-1 volume " + *v}) {
		t.Errorf("left: %v", left)
	}
	same(t, "its state", must(r.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{*v}}))(t).Volumes[0].State, "available")
	must(r.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: v}))(t)
	_, err = r.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: v})
	r.refuses("InvalidVolume.NotFound", err)
}

func TestInterfacesAndAddressesOutliveTheirInstance(t *testing.T) {
	r := start(t, slow)
	ctx := t.Context()
	ids := r.launch(1, func(in *ec2.RunInstancesInput) {
		in.InstanceType = "p4d.24xlarge"
		for card := range int32(2) {
			in.NetworkInterfaces = append(in.NetworkInterfaces, types.InstanceNetworkInterfaceSpecification{NetworkCardIndex: &card,
				DeviceIndex: aws.Int32(min(card, 1)), InterfaceType: aws.String("efa"), DeleteOnTermination: aws.Bool(card == 0)})
		}
	})
	a := must(r.ec2.AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: "vpc", TagSpecifications: []types.TagSpecification{tagged("elastic-ip", "a", "b")}}))(t)
	associate := &ec2.AssociateAddressInput{AllocationId: a.AllocationId, InstanceId: &ids[0]}
	_, err := r.ec2.AssociateAddress(ctx, associate)
	r.refuses("InvalidInstanceID", err)
	r.Advance(time.Minute)
	i := r.describe(ids...)[0]
	same(t, "interfaces", len(i.NetworkInterfaces), 2)
	same(t, "kind", *i.NetworkInterfaces[1].InterfaceType, "efa")
	same(t, "card", *i.NetworkInterfaces[1].Attachment.NetworkCardIndex, 1)
	same(t, "public address with two interfaces", aws.ToString(i.PublicIpAddress), "")
	association := must(r.ec2.AssociateAddress(ctx, associate))(t).AssociationId
	same(t, "public address", *r.describe(ids...)[0].PublicIpAddress, *a.PublicIp)
	got := must(r.ec2.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: []types.Filter{filter("tag:a", "b")}}))(t).Addresses[0]
	same(t, "address's instance", *got.InstanceId, ids[0])
	same(t, "association", *got.AssociationId, *association)
	release := func() error {
		_, err := r.ec2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: a.AllocationId})
		return err
	}
	r.refuses("InvalidIPAddress.InUse", release())
	must(r.ec2.DisassociateAddress(ctx, &ec2.DisassociateAddressInput{AssociationId: association}))(t)
	must(r.ec2.AssociateAddress(ctx, associate))(t)

	eni := i.NetworkInterfaces[1].NetworkInterfaceId
	_, err = r.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: eni})
	r.refuses("InvalidParameterValue", err)
	must(r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	r.Advance(time.Minute)
	if left := r.Left(); !slices.Equal(left, []string{"us-east-1 elastic-ip " + *a.AllocationId, "us-east-1 network-interface " + *eni}) {
		t.Errorf("left: %v", left)
	}
	r.refuses("", release())
	r.refuses("InvalidAllocationID.NotFound", release())
	must(r.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: eni}))(t)
}

func TestSpotRequestsOutliveTheirInstance(t *testing.T) {
	r := start(t, slow)
	ctx := t.Context()
	once := r.launch(1, spot, func(in *ec2.RunInstancesInput) {
		in.TagSpecifications = []types.TagSpecification{tagged("spot-instances-request", "a", "b")}
	})[0]
	always := r.launch(1, func(in *ec2.RunInstancesInput) {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: "spot",
			SpotOptions: &types.SpotMarketOptions{SpotInstanceType: "persistent", InstanceInterruptionBehavior: "stop"}}
	})[0]
	i := r.describe(once)[0]
	same(t, "lifecycle", i.InstanceLifecycle, "spot")
	requests := func() string {
		out := must(r.ec2.DescribeSpotInstanceRequests(ctx, &ec2.DescribeSpotInstanceRequestsInput{}))(t).SpotInstanceRequests
		return fmt.Sprint(out[0].Type, " ", out[0].State, " ", *out[0].Status.Code, ", ", out[1].Type, " ", out[1].State)
	}
	same(t, "requests", requests(), "one-time active fulfilled, persistent active")
	got := must(r.ec2.DescribeSpotInstanceRequests(ctx, &ec2.DescribeSpotInstanceRequestsInput{Filters: []types.Filter{filter("tag:a", "b")}}))(t).SpotInstanceRequests
	if len(got) != 1 || *got[0].InstanceId != once || *got[0].SpotInstanceRequestId != *i.SpotInstanceRequestId {
		t.Errorf("the requests are %+v", got)
	}
	r.Advance(time.Minute)
	_, err := r.ec2.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: []string{once}})
	r.refuses("UnsupportedOperation", err)
	must(r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{once, always}}))(t)
	r.Advance(time.Minute)
	same(t, "requests", requests(), "one-time closed instance-terminated-by-user, persistent open")
	open := *r.describe(always)[0].SpotInstanceRequestId
	if left := r.Left(); !slices.Equal(left, []string{"us-east-1 spot-instances-request " + open}) {
		t.Errorf("left: %v", left)
	}
	c := must(r.ec2.CancelSpotInstanceRequests(ctx, &ec2.CancelSpotInstanceRequestsInput{SpotInstanceRequestIds: []string{open}}))(t).CancelledSpotInstanceRequests[0]
	same(t, "cancelled", c.State, "cancelled")
	same(t, "left", len(r.Left()), 0)
	_, err = r.ec2.CancelSpotInstanceRequests(ctx, &ec2.CancelSpotInstanceRequestsInput{SpotInstanceRequestIds: []string{"sir-00000000"}})
	r.refuses("InvalidSpotInstanceRequestID.NotFound", err)

	r.SetSpotCapacity("us-east-1", "", "c5.large", 0)
	_, err = r.run(r.order(1, spot))
	r.refuses("InsufficientInstanceCapacity", err)
	r.launch(1) // on demand there is room
	_, err = r.run(r.order(1, func(in *ec2.RunInstancesInput) {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: "spot", SpotOptions: &types.SpotMarketOptions{MaxPrice: aws.String("0.001")}}
	}))
	r.refuses("SpotMaxPriceTooLow", err)
}

func TestTagsAreFiltered(t *testing.T) {
	r := start(t, Options{})
	ctx := t.Context()
	mine := r.launch(1, func(in *ec2.RunInstancesInput) {
		in.ClientToken = aws.String("token-1")
		in.TagSpecifications = []types.TagSpecification{tagged("instance", "dlwb:cluster", "abc", "Name", "x*y")}
	})[0]
	other := r.launch(1)[0]
	for _, c := range []struct {
		f    types.Filter
		want string
	}{
		{filter("tag:dlwb:cluster", "abc"), mine}, {filter("tag:dlwb:cluster", "*"), mine}, {filter("tag:dlwb:cluster", "a?c", "no"), mine},
		{filter("tag:dlwb:cluster", "ab"), ""}, {filter("tag-key", "dlwb:*"), mine}, {filter("tag-key", "dlwb"), ""},
		{filter("tag:Name", `x\*y`), mine}, {filter("tag:Name", `x\*`), ""}, {filter("client-token", "token-1"), mine},
		{filter("instance-id", other), other}, {filter("instance-lifecycle", "spot"), ""},
	} {
		got := ""
		for _, res := range must(r.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{c.f}}))(t).Reservations {
			got += *res.Instances[0].InstanceId
		}
		same(t, fmt.Sprint(*c.f.Name, c.f.Values), got, c.want)
	}
	_, err := r.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{filter("tag:dlwb:cluster", "abc"), filter("nonsense", "x")}})
	r.refuses("InvalidParameterValue", err)

	must(r.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{other, r.group("g")}, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}}))(t)
	tags := must(r.ec2.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: []types.Filter{filter("key", "k"), filter("resource-type", "instance")}}))(t).Tags
	if len(tags) != 1 || *tags[0].ResourceId != other || *tags[0].Value != "v" || tags[0].ResourceType != "instance" {
		t.Errorf("the tags are %+v", tags)
	}
	must(r.ec2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{other}, Tags: []types.Tag{{Key: aws.String("k")}}}))(t)
	same(t, "tags left", len(r.describe(other)[0].Tags), 0)
	_, err = r.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{other, "vol-0123456789abcdef0"}, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}})
	r.refuses("InvalidVolume.NotFound", err)
	same(t, "tags after a refusal", len(r.describe(other)[0].Tags), 0)
	_, err = r.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{other}, Tags: []types.Tag{{Key: aws.String("aws:k"), Value: aws.String("v")}}})
	r.refuses("InvalidParameterValue", err)
}

// Left is made of the tables; each kind has to appear in it.
func TestEveryKindIsLeft(t *testing.T) {
	r := start(t, Options{})
	ctx := t.Context()
	r.group("g")
	must(r.ec2.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: aws.String("k"), PublicKeyMaterial: []byte(publicKey)}))(t)
	must(r.ec2.CreatePlacementGroup(ctx, &ec2.CreatePlacementGroupInput{GroupName: aws.String("pg")}))(t)
	must(r.ec2.AllocateAddress(ctx, &ec2.AllocateAddressInput{}))(t)
	r.launch(1, spot)
	var kinds []string
	for _, l := range r.Left() {
		var region, kind, id string
		if n, _ := fmt.Sscan(l, &region, &kind, &id); n == 3 && r.Exists(region, id) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != len(r.regions[0].tables()) {
		t.Errorf("left: %v", r.Left())
	}
}
