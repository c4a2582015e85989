// Package volume is the data volumes of machines: those that are made with each
// machine and go with it, and those that exist, which are attached to the machines
// in the order of the nodes and never deleted.
package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/cloud/ec2/userdata"
	"github.com/dlwb/dlwb/internal/units"
)

// API is what is called of EC2.
type API interface {
	DescribeVolumes(context.Context, *awsec2.DescribeVolumesInput, ...func(*awsec2.Options)) (*awsec2.DescribeVolumesOutput, error)
	AttachVolume(context.Context, *awsec2.AttachVolumeInput, ...func(*awsec2.Options)) (*awsec2.AttachVolumeOutput, error)
}

// Device is the name of the n-th data volume of a machine.
func Device(n int) string { return "/dev/sd" + string(rune('f'+n)) }

// Mounts are the volumes of a profile, as the machines are told of them.
func Mounts(m options.Machines) []userdata.Volume {
	var all []userdata.Volume
	for _, v := range m.Disks() {
		all = append(all, userdata.Volume{Path: v.Path, IDs: v.IDs, GiB: v.GiB, Store: v.Store})
	}
	return all
}

// Sizes are those of the volumes that are made with each machine, in GiB.
func Sizes(m options.Machines) (sizes []int32) {
	for _, v := range m.Disks() {
		if v.GiB > 0 {
			sizes = append(sizes, v.GiB)
		}
	}
	return sizes
}

// Existing are the ids of the volumes that exist, of all nodes.
func Existing(m options.Machines) (ids []string) {
	for _, v := range m.Disks() {
		ids = append(ids, v.IDs...)
	}
	return ids
}

// Zone is the zone that the volumes of a profile stand in, and so the machines have
// to; empty: it names none that exist.
func Zone(ctx context.Context, ec2 API, region string, m options.Machines) (zone string, err error) {
	want := Existing(m)
	if len(want) == 0 {
		return "", nil
	}
	all, err := Of(ctx, ec2, region, want)
	if err != nil {
		return "", err
	}
	zone = aws.ToString(all[0].AvailabilityZone)
	for _, v := range all {
		if at := aws.ToString(v.AvailabilityZone); at != zone {
			return "", fmt.Errorf("%s is in %s and %s in %s: machines of a cluster stand in one zone", aws.ToString(all[0].VolumeId), zone, aws.ToString(v.VolumeId), at)
		}
	}
	return zone, nil
}

// Of are volumes by their ids, all of them.
func Of(ctx context.Context, ec2 API, region string, ids []string) ([]types.Volume, error) {
	out, err := ec2.DescribeVolumes(ctx, &awsec2.DescribeVolumesInput{VolumeIds: ids})
	if err != nil {
		return nil, awsapi.Explain(err, awsapi.Call{Action: "DescribeVolumes", Region: region, ID: ids[0]})
	}
	for _, id := range ids {
		if !slices.ContainsFunc(out.Volumes, func(v types.Volume) bool { return aws.ToString(v.VolumeId) == id }) {
			return nil, fmt.Errorf("%s has no volume %s: aws ec2 describe-volumes --region %s --query \"Volumes[].[VolumeId,AvailabilityZone,State]\"", region, id, region)
		}
	}
	return out.Volumes, nil
}

// Holder is the machine that a volume is attached to; free: to none, certainly.
func Holder(v types.Volume) (machine string, free bool) {
	for _, a := range v.Attachments {
		if a.State != types.VolumeAttachmentStateDetached {
			return aws.ToString(a.InstanceId), false
		}
	}
	return "another machine", v.State == types.VolumeStateAvailable
}

// Text says what the data volumes of so many machines are and what becomes of them;
// why says that they can't be.
func Text(m options.Machines, count int, zone string) (text, why string) {
	var texts []string
	for _, v := range m.Disks() {
		switch {
		case v.Store:
			texts = append(texts, v.Path+" is the instance store, all disks of it as one, and ends with the machine")
		case len(v.IDs) == 0:
			texts = append(texts, fmt.Sprintf("%s is a new volume of %s on each machine and is deleted with it", v.Path, units.Binary(int64(v.GiB)<<30)))
		case count != len(v.IDs):
			return "", fmt.Sprintf("%s: %s for %s, and each is attached to one", v.Path, units.Count(len(v.IDs), "volume"), units.Count(count, "machine"))
		default:
			texts = append(texts, fmt.Sprintf("%s is %s in %s, which is formatted only when it is blank, and stays", v.Path, strings.Join(v.IDs, ", "), zone))
		}
	}
	return strings.Join(texts, "; "), ""
}

// notThere reports whether AWS says that there is no such volume.
func notThere(err error) bool {
	var p *awsapi.Problem
	return errors.As(err, &p) && p.Kind == awsapi.NotFound
}
