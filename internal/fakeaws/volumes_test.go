package fakeaws

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func TestAVolumeThatExistsIsAttachedOnceAndStays(t *testing.T) {
	r := start(t, slow)
	ctx := t.Context()
	data := r.Plant(Planted{Kind: "volume", Region: "us-east-1", Tags: map[string]string{"Name": "data"}})
	zone := must(r.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{data}}))(t).Volumes[0].AvailabilityZone
	there := func(in *ec2.RunInstancesInput) { in.Placement = &types.Placement{AvailabilityZone: zone} }
	ids := r.launch(2, there)
	_, err := r.ec2.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: aws.String("vol-00000000000000000"), InstanceId: &ids[0], Device: aws.String("/dev/sdf")})
	r.refuses("InvalidVolume.NotFound", err)
	_, err = r.ec2.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: &data, InstanceId: aws.String("i-00000000000000000"), Device: aws.String("/dev/sdf")})
	r.refuses("InvalidInstanceID.NotFound", err)
	r.Advance(slow.Pending)
	made := must(r.ec2.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: &data, InstanceId: &ids[0], Device: aws.String("/dev/sdf")}))(t)
	same(t, "attached", *made.VolumeId+" "+*made.InstanceId+" "+*made.Device+" "+string(made.State), data+" "+ids[0]+" /dev/sdf attaching")
	r.Advance(slow.Pending)
	_, err = r.ec2.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: &data, InstanceId: &ids[1], Device: aws.String("/dev/sdf")})
	r.refuses("VolumeInUse", err)
	must(r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	r.Advance(slow.Pending * 100)
	v := must(r.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{data}}))(t).Volumes
	same(t, "what stays", len(v), 1)
	same(t, "attachments", len(v[0].Attachments), 0)
}
