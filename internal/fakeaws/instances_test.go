package fakeaws

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// slow is a fake whose clock is moved by the test only, but for the real time
// that passes.
var slow = Options{Pending: time.Minute, ShuttingDown: time.Minute, Release: time.Minute, StatusChecks: time.Minute}

func TestAnInstanceIsReadBackAsItWasOrdered(t *testing.T) {
	r := start(t, slow)
	ctx := t.Context()
	must(r.ec2.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: aws.String("k"), PublicKeyMaterial: []byte(publicKey)}))(t)
	must(r.ec2.CreatePlacementGroup(ctx, &ec2.CreatePlacementGroupInput{GroupName: aws.String("pg"), Strategy: "cluster"}))(t)
	g := must(r.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("g"), Description: aws.String("d")}))(t)
	in := r.order(2, func(in *ec2.RunInstancesInput) {
		in.ClientToken, in.KeyName = aws.String("token"), aws.String("k")
		in.InstanceType = "g5.12xlarge"
		in.SecurityGroupIds = []string{*g.GroupId}
		in.Placement = &types.Placement{AvailabilityZone: aws.String("us-east-1b"), GroupName: aws.String("pg")}
		in.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh")))
		in.MetadataOptions = &types.InstanceMetadataOptionsRequest{HttpTokens: "required", HttpPutResponseHopLimit: aws.Int32(1)}
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String("results")}
		in.BlockDeviceMappings = []types.BlockDeviceMapping{{DeviceName: aws.String("/dev/sda1"),
			Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(200), VolumeType: "gp3", Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(true)}}}
		in.TagSpecifications = []types.TagSpecification{tagged("instance", "a", "1"), tagged("volume", "b", "2"), tagged("network-interface", "c", "3")}
	})
	out := must(r.run(in))(t)
	if len(out.Instances) != 2 || *out.OwnerId != r.Account() || !strings.HasPrefix(*out.ReservationId, "r-") {
		t.Fatalf("the reply is %+v", out)
	}
	i := out.Instances[1]
	same(t, "state", i.State.Name, "pending")
	same(t, "state code", *i.State.Code, 0)
	same(t, "index", *i.AmiLaunchIndex, 1)
	same(t, "public address while pending", aws.ToString(i.PublicIpAddress), "")
	if i.PrivateIpAddress == nil {
		t.Error("no private address")
	}

	r.Advance(time.Minute)
	got := r.describe(*i.InstanceId)
	if len(got) != 1 {
		t.Fatalf("%d instances", len(got))
	}
	i = got[0]
	same(t, "state", i.State.Name, "running")
	same(t, "type", i.InstanceType, "g5.12xlarge")
	same(t, "zone", *i.Placement.AvailabilityZone, "us-east-1b")
	same(t, "placement group", *i.Placement.GroupName, "pg")
	same(t, "key", *i.KeyName, "k")
	same(t, "token", *i.ClientToken, "token")
	same(t, "image", *i.ImageId, r.image())
	same(t, "architecture", i.Architecture, "x86_64")
	same(t, "root device", *i.RootDeviceName, "/dev/sda1")
	same(t, "group", *i.SecurityGroups[0].GroupId, *g.GroupId)
	same(t, "group's name", *i.SecurityGroups[0].GroupName, "g")
	same(t, "tag", *i.Tags[0].Value, "1")
	same(t, "IMDS tokens", i.MetadataOptions.HttpTokens, "required")
	same(t, "IMDS hops", *i.MetadataOptions.HttpPutResponseHopLimit, 1)
	same(t, "profile", *i.IamInstanceProfile.Arn, "arn:aws:iam::123456789012:instance-profile/results")
	same(t, "lifecycle", i.InstanceLifecycle, "")
	if aws.ToString(i.PublicIpAddress) == "" || aws.ToString(i.PublicDnsName) == "" || i.VpcId == nil || i.SubnetId == nil {
		t.Errorf("the network is %+v", i)
	}
	if d := i.LaunchTime.Sub(r.Now()); d > 0 || d < -2*time.Minute {
		t.Errorf("launched %s from now", d)
	}
	if len(i.BlockDeviceMappings) != 1 || *i.BlockDeviceMappings[0].DeviceName != "/dev/sda1" || !*i.BlockDeviceMappings[0].Ebs.DeleteOnTermination {
		t.Fatalf("the disks are %+v", i.BlockDeviceMappings)
	}
	n := i.NetworkInterfaces[0]
	same(t, "interface's address", *n.PrivateIpAddress, *i.PrivateIpAddress)
	same(t, "interface's public address", *n.Association.PublicIp, *i.PublicIpAddress)
	same(t, "interface's device", *n.Attachment.DeviceIndex, 0)

	v := must(r.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{*i.BlockDeviceMappings[0].Ebs.VolumeId}}))(t).Volumes[0]
	same(t, "size", *v.Size, 200)
	same(t, "disk type", v.VolumeType, "gp3")
	same(t, "encrypted", *v.Encrypted, true)
	same(t, "IOPS", *v.Iops, 3000)
	same(t, "throughput", *v.Throughput, 125)
	same(t, "disk's tag", *v.Tags[0].Key, "b")
	same(t, "disk's state", v.State, "in-use")
	same(t, "disk's instance", *v.Attachments[0].InstanceId, *i.InstanceId)

	e := must(r.ec2.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{Filters: []types.Filter{filter("tag:c", "3"),
		filter("attachment.instance-id", *i.InstanceId)}}))(t).NetworkInterfaces
	if len(e) != 1 || *e[0].NetworkInterfaceId != *n.NetworkInterfaceId || *e[0].Groups[0].GroupId != *g.GroupId || e[0].Status != "in-use" ||
		*e[0].Attachment.InstanceId != *i.InstanceId || *e[0].TagSet[0].Value != "3" {
		t.Errorf("the interfaces are %+v", e)
	}
}

func TestAnInstanceGoesThroughItsStates(t *testing.T) {
	r := start(t, slow)
	id := r.launch(1)[0]
	same(t, "at first", r.states(id), "pending")
	r.Advance(time.Minute)
	same(t, "after a minute", r.states(id), "running")

	status := func() string {
		out := must(r.ec2.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{}))(t)
		if len(out.InstanceStatuses) != 1 {
			return "none"
		}
		return string(out.InstanceStatuses[0].InstanceStatus.Status) + " " + string(out.InstanceStatuses[0].SystemStatus.Status)
	}
	same(t, "status checks", status(), "initializing initializing")
	r.Advance(time.Minute + time.Second)
	same(t, "status checks", status(), "ok ok")

	stop := must(r.ec2.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{id}}))(t).StoppingInstances[0]
	same(t, "before", stop.PreviousState.Name, "running")
	same(t, "now", stop.CurrentState.Name, "stopping")
	same(t, "status of one that does not run", status(), "none")
	_, err := r.ec2.StartInstances(t.Context(), &ec2.StartInstancesInput{InstanceIds: []string{id}})
	r.refuses("IncorrectInstanceState", err)
	r.Advance(time.Minute)
	i := r.describe(id)[0]
	same(t, "state", i.State.Name, "stopped")
	same(t, "reason", *i.StateReason.Code, "Client.UserInitiatedShutdown")
	same(t, "public address while stopped", aws.ToString(i.PublicIpAddress), "")
	same(t, "disks while stopped", len(i.BlockDeviceMappings), 1)

	begin := must(r.ec2.StartInstances(t.Context(), &ec2.StartInstancesInput{InstanceIds: []string{id}}))(t).StartingInstances[0]
	same(t, "before", begin.PreviousState.Name, "stopped")
	r.Advance(time.Minute)
	same(t, "after the start", r.states(id), "running")

	end := must(r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))(t).TerminatingInstances[0]
	same(t, "before", end.PreviousState.Name, "running")
	same(t, "now", end.CurrentState.Name, "shutting-down")
	if left := r.Left(); len(left) != 3 {
		t.Errorf("left while shutting down: %v", left)
	}
	r.Advance(time.Minute)
	i = r.describe(id)[0]
	same(t, "state", i.State.Name, "terminated")
	same(t, "reason", *i.StateReason.Message, "Client.UserInitiatedShutdown: User initiated shutdown")
	if !strings.HasPrefix(*i.StateTransitionReason, "User initiated (20") {
		t.Errorf("the transition's reason is %q", *i.StateTransitionReason)
	}
	if len(i.NetworkInterfaces)+len(i.BlockDeviceMappings)+len(i.SecurityGroups) > 0 || i.PrivateIpAddress != nil {
		t.Errorf("a terminated one still has %+v", i)
	}
	if left := r.Left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	r.Advance(time.Hour + time.Second)
	_, err = r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	r.refuses("InvalidInstanceID.NotFound", err)
	_, err = r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	r.refuses("InvalidInstanceID.NotFound", err)
	same(t, "all instances", len(r.describe()), 0)
}

func TestTheSameClientTokenGivesTheSameInstances(t *testing.T) {
	r := start(t, slow)
	token := func(in *ec2.RunInstancesInput) { in.ClientToken = aws.String("dlwb-0123456789ab-run-0") }
	first := must(r.run(r.order(2, token)))(t)
	again := must(r.run(r.order(2, token)))(t)
	same(t, "reservation", *again.ReservationId, *first.ReservationId)
	same(t, "instance", *again.Instances[1].InstanceId, *first.Instances[1].InstanceId)
	same(t, "launched", r.Launched(), 2)
	_, err := r.run(r.order(3, token))
	r.refuses("IdempotentParameterMismatch", err)

	ids := []string{*first.Instances[0].InstanceId, *first.Instances[1].InstanceId}
	must(r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	r.Advance(2 * time.Hour)
	again = must(r.run(r.order(2, token)))(t)
	same(t, "instance after its end", *again.Instances[0].InstanceId, ids[0])
	same(t, "its state", again.Instances[0].State.Name, "terminated")
	same(t, "launched", r.Launched(), 2)

	r.launch(1)
	r.launch(1)
	same(t, "launched without a token", r.Launched(), 4)
}

func TestADryRunChangesNothing(t *testing.T) {
	r := start(t, Options{})
	r.SetCapacity("us-east-1", "", "c5.large", 0)
	_, err := r.run(r.order(1, func(in *ec2.RunInstancesInput) { in.DryRun = aws.Bool(true) }))
	r.refuses("DryRunOperation", err)
	_, err = r.ec2.CreateSecurityGroup(t.Context(), &ec2.CreateSecurityGroupInput{GroupName: aws.String("g"), Description: aws.String("d"), DryRun: aws.Bool(true)})
	r.refuses("DryRunOperation", err)
	_, err = r.run(r.order(1, func(in *ec2.RunInstancesInput) {
		in.DryRun, in.ImageId = aws.Bool(true), aws.String("ami-00000000000000000")
	}))
	r.refuses("InvalidAMIID.NotFound", err)
	if r.Launched() != 0 || len(r.Left()) > 0 {
		t.Errorf("left: %v", r.Left())
	}
}

func TestNonsenseIsRefusedByName(t *testing.T) {
	r := start(t, Options{Profiles: []string{"results"}})
	t.Log(r.zonesWithout("p5en.48xlarge"))
	for want, change := range map[string]func(*ec2.RunInstancesInput){
		"InvalidAMIID.NotFound":         func(in *ec2.RunInstancesInput) { in.ImageId = aws.String("ami-0123456789abcdef0") },
		"InvalidAMIID.Malformed":        func(in *ec2.RunInstancesInput) { in.ImageId = aws.String("ubuntu") },
		"InvalidKeyPair.NotFound":       func(in *ec2.RunInstancesInput) { in.KeyName = aws.String("none") },
		"InvalidGroup.NotFound":         func(in *ec2.RunInstancesInput) { in.SecurityGroupIds = []string{"sg-0123456789abcdef0"} },
		"InvalidSubnetID.NotFound":      func(in *ec2.RunInstancesInput) { in.SubnetId = aws.String("subnet-0123456789abcdef0") },
		"InvalidPlacementGroup.Unknown": func(in *ec2.RunInstancesInput) { in.Placement = &types.Placement{GroupName: aws.String("none")} },
		"InvalidBlockDeviceMapping": func(in *ec2.RunInstancesInput) {
			in.BlockDeviceMappings = []types.BlockDeviceMapping{{DeviceName: aws.String("/dev/sda1"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(8)}}}
		},
		"Unsupported": func(in *ec2.RunInstancesInput) {
			in.InstanceType = "p5en.48xlarge"
			in.Placement = &types.Placement{AvailabilityZone: aws.String(r.zonesWithout("p5en.48xlarge")[0])}
		},
		"InvalidParameterCombination": func(in *ec2.RunInstancesInput) {
			in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), AssociatePublicIpAddress: aws.Bool(true)},
				{DeviceIndex: aws.Int32(1)}}
		},
	} {
		_, err := r.run(r.order(1, change))
		r.refuses(want, err)
	}
	for name, change := range map[string]func(*ec2.RunInstancesInput){
		"type":         func(in *ec2.RunInstancesInput) { in.InstanceType = "c5.nothing" },
		"architecture": func(in *ec2.RunInstancesInput) { in.InstanceType = "g5g.xlarge" },
		"count":        func(in *ec2.RunInstancesInput) { in.MinCount = aws.Int32(2) },
		"profile": func(in *ec2.RunInstancesInput) {
			in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String("other")}
		},
		"user data": func(in *ec2.RunInstancesInput) {
			in.UserData = aws.String(base64.StdEncoding.EncodeToString(make([]byte, 16385)))
		},
		"tags of a spot request": func(in *ec2.RunInstancesInput) {
			in.TagSpecifications = []types.TagSpecification{tagged("spot-instances-request", "a", "1")}
		},
		"token": func(in *ec2.RunInstancesInput) { in.ClientToken = aws.String(strings.Repeat("x", 65)) },
	} {
		if _, err := r.run(r.order(1, change)); code(err) != "InvalidParameterValue" {
			t.Errorf("%s: %v", name, err)
		}
	}
	same(t, "launched", r.Launched(), 0)
}

func (r *rig) zonesWithout(kind string) (out []string) {
	for _, z := range r.regions[0].zones() {
		if !r.regions[0].offeredIn(r.byName[kind], z) {
			out = append(out, z)
		}
	}
	return out
}

func TestCapacityIsPerZoneAndAllOrAtLeastTheMinimum(t *testing.T) {
	r := start(t, slow)
	in := func(zone string, least, most int32) *ec2.RunInstancesInput {
		return r.order(most, func(in *ec2.RunInstancesInput) {
			in.MinCount = &least
			if zone != "" {
				in.Placement = &types.Placement{AvailabilityZone: &zone}
			}
		})
	}
	r.SetCapacity("us-east-1", "", "c5.large", 0)
	r.SetCapacity("us-east-1", "us-east-1b", "c5.large", 3)
	_, err := r.run(in("us-east-1a", 1, 1))
	r.refuses("InsufficientInstanceCapacity", err)
	same(t, "requests", len(r.Calls()), 1)
	_, err = r.run(in("us-east-1b", 4, 4))
	r.refuses("InsufficientInstanceCapacity", err)
	same(t, "partly", len(must(r.run(in("us-east-1b", 1, 2)))(t).Instances), 2)
	some := must(r.run(in("", 1, 4)))(t).Instances
	same(t, "the rest", len(some), 1)
	same(t, "zone", *some[0].Placement.AvailabilityZone, "us-east-1b")
	must(r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{*some[0].InstanceId}}))(t)
	same(t, "after one ended", len(must(r.run(in("", 1, 4)))(t).Instances), 1)

	// A stopped one leaves its place to others.
	id := r.describe()[0].InstanceId
	r.Advance(time.Minute)
	must(r.ec2.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{*id}}))(t)
	r.Advance(time.Minute)
	same(t, "in place of the stopped", len(must(r.run(in("", 1, 1)))(t).Instances), 1)
	_, err = r.ec2.StartInstances(t.Context(), &ec2.StartInstancesInput{InstanceIds: []string{*id}}, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
	r.refuses("InsufficientInstanceCapacity", err)
}

func TestQuotasCountTheVCPUsOfAClass(t *testing.T) {
	r := start(t, slow)
	r.SetQuota("us-east-1", "L-DB2E81BA", 8)
	r.SetQuota("us-east-1", "L-3819A6DF", 0)
	g5 := func(in *ec2.RunInstancesInput) { in.InstanceType = "g5.xlarge" }
	r.launch(2, g5)
	_, err := r.run(r.order(1, g5))
	r.refuses("VcpuLimitExceeded", err)
	_, err = r.run(r.order(1, g5, spot))
	r.refuses("MaxSpotInstanceCountExceeded", err)
	r.launch(1) // of another class
	if _, err := r.api.EC2("us-west-2").RunInstances(t.Context(), r.order(1, g5, func(in *ec2.RunInstancesInput) {
		in.ImageId = aws.String(r.must("us-west-2").images[0].ID)
	})); err != nil {
		t.Error("quotas are the region's:", err)
	}
}

func spot(in *ec2.RunInstancesInput) {
	in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: "spot"}
}

func TestAttributesAreReadAndChanged(t *testing.T) {
	r := start(t, slow)
	ctx := t.Context()
	id := r.launch(1, func(in *ec2.RunInstancesInput) {
		in.InstanceInitiatedShutdownBehavior = ""
		in.UserData = aws.String("aGk=")
	})[0]
	behaviour := func() string {
		return *must(r.ec2.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: &id,
			Attribute: "instanceInitiatedShutdownBehavior"}))(t).InstanceInitiatedShutdownBehavior.Value
	}
	same(t, "by default", behaviour(), "stop")
	must(r.ec2.ModifyInstanceAttribute(ctx, &ec2.ModifyInstanceAttributeInput{InstanceId: &id,
		InstanceInitiatedShutdownBehavior: &types.AttributeValue{Value: aws.String("terminate")}}))(t)
	same(t, "changed", behaviour(), "terminate")
	same(t, "user data", *must(r.ec2.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: &id,
		Attribute: "userData"}))(t).UserData.Value, "aGk=")
	_, err := r.ec2.ModifyInstanceAttribute(ctx, &ec2.ModifyInstanceAttributeInput{InstanceId: &id, UserData: &types.SecureBlobAttributeValue{Value: []byte("x")}})
	r.refuses("IncorrectInstanceState", err)
	must(r.ec2.ModifyInstanceAttribute(ctx, &ec2.ModifyInstanceAttributeInput{InstanceId: &id,
		DisableApiTermination: &types.AttributeBooleanValue{Value: aws.Bool(true)}}))(t)
	_, err = r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	r.refuses("OperationNotPermitted", err)
	must(r.ec2.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: []string{id}}))(t)

	out := must(r.ec2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &id}))(t)
	r.Advance(4 * time.Minute)
	later := must(r.ec2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &id}))(t)
	text, err := base64.StdEncoding.DecodeString(aws.ToString(later.Output))
	if aws.ToString(out.Output) != "" || err != nil || !strings.Contains(string(text), "Linux version") {
		t.Errorf("the console said %q, then %q", aws.ToString(out.Output), text)
	}
}

func TestThePriceClockRunsWithTheInstances(t *testing.T) {
	r := start(t, slow)
	r.launch(2)
	r.Advance(time.Hour)
	ids := []string{*r.describe()[0].InstanceId}
	must(r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	r.Advance(time.Hour)
	if got := r.Spent(); got < 3*0.085 || got > 3*0.085+0.001 {
		t.Errorf("three hours of 0.085 $ cost %v $", got)
	}
}
