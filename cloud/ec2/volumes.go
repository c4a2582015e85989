package ec2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/cloud/ec2/userdata"
)

// Data volumes are of two kinds. Those of a size are made with each machine, by the
// same call, and go with it. Those with an id exist: they are attached to the nodes
// in order, detached by the end of the machine, and never deleted.

// kindAttach is the ledger's word for a volume that exists and was attached.
const kindAttach = "volume-attachment"

// attachment is the detail of its entry.
type attachment struct {
	Region   string `json:"region"`
	Volume   string `json:"volume"`
	Instance string `json:"instance"`
	Device   string `json:"device"`
}

// device is the name of the n-th data volume of a machine.
func device(n int) string { return "/dev/sd" + string(rune('f'+n)) }

// mounts are the volumes of a spec, as the machines are told of them.
func mounts(m options.Machines) []userdata.Volume {
	var all []userdata.Volume
	for _, v := range m.Disks() {
		all = append(all, userdata.Volume{Path: v.Path, IDs: v.IDs, GiB: v.GiB, Store: v.Store})
	}
	return all
}

// existing are the ids of volumes that exist, of all nodes.
func existing(m options.Machines) (ids []string) {
	for _, v := range m.Disks() {
		ids = append(ids, v.IDs...)
	}
	return ids
}

// dataDisks are those that are made with each machine.
func (l launch) dataDisks() []types.BlockDeviceMapping {
	var all []types.BlockDeviceMapping
	for n, gib := range l.Data {
		d := l.rootDisk()
		d.VolumeSize = aws.Int32(gib)
		all = append(all, types.BlockDeviceMapping{DeviceName: aws.String(device(n)), Ebs: d})
	}
	return all
}

// disks is the size of all disks of a machine.
func (l launch) disks() int32 {
	gib := l.GiB
	for _, data := range l.Data {
		gib += data
	}
	return gib
}

// dataSizes are those of the volumes that are made with each machine.
func dataSizes(m options.Machines) (sizes []int32) {
	for _, v := range m.Disks() {
		if v.GiB > 0 {
			sizes = append(sizes, v.GiB)
		}
	}
	return sizes
}

// volumeZone is the zone that the volumes of a spec stand in, and so the machines
// have to; empty: the spec names none that exist.
func (p *Provider) volumeZone(ctx context.Context, region string, spec cloud.Spec) (zone string, err error) {
	want := existing(own(spec))
	if len(want) == 0 {
		return "", nil
	}
	ec2, err := p.connect(ctx, region)
	if err != nil {
		return "", err
	}
	all, err := volumesOf(ctx, ec2, region, want)
	if err != nil {
		return "", err
	}
	for _, v := range all {
		at := aws.ToString(v.AvailabilityZone)
		if zone == "" {
			zone = at
		}
		if at != zone {
			return "", fmt.Errorf("%s is in %s and %s in %s: machines of a cluster stand in one zone", aws.ToString(all[0].VolumeId), zone, aws.ToString(v.VolumeId), at)
		}
	}
	return zone, nil
}

// volumesOf are volumes by their ids, all of them.
func volumesOf(ctx context.Context, ec2 client, region string, ids []string) ([]types.Volume, error) {
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

// volumes says what the data volumes are and what will become of them.
func (c *preflight) volumes() cloud.Finding {
	const what = "volumes"
	disks := own(c.spec).Disks()
	if len(disks) == 0 {
		return cloud.Finding{}
	}
	if c.volErr != nil {
		return failed(what, c.volErr, "aws ec2 describe-volumes --region "+c.region)
	}
	var texts []string
	for _, v := range disks {
		switch {
		case v.Store:
			texts = append(texts, v.Path+" is the instance store, all disks of it as one, and ends with the machine")
		case len(v.IDs) == 0:
			texts = append(texts, fmt.Sprintf("%s is a new volume of %d GiB on each machine and is deleted with it", v.Path, v.GiB))
		case c.spec.Count != len(v.IDs):
			return missing(what, fmt.Sprintf("%s: %d volumes for %d machines, and each is attached to one", v.Path, len(v.IDs), c.spec.Count),
				"machines.data_volumes with one id for each machine, with commas; or machines.count: "+fmt.Sprint(len(v.IDs)))
		default:
			texts = append(texts, fmt.Sprintf("%s is %s in %s, which is formatted only when it is blank, and stays", v.Path, strings.Join(v.IDs, ", "), c.volZone))
		}
	}
	return found(what, strings.Join(texts, "; "))
}

// attach attaches the volumes that exist to the machines, in the order of the nodes.
func (u *up) attach(ctx context.Context, c crew) error {
	m := own(u.spec)
	next := len(dataSizes(m))
	for _, v := range m.Disks() {
		if len(v.IDs) == 0 {
			continue
		}
		if len(v.IDs) != u.spec.Count {
			return fmt.Errorf("%s: %d volumes for %d machines", v.Path, len(v.IDs), u.spec.Count)
		}
		for node, id := range v.IDs {
			if err := u.attachOne(ctx, node, c[node], id, device(next)); err != nil {
				return fmt.Errorf("attach %s to node%d: %w", id, node, err)
			}
		}
		next++
	}
	return nil
}

// attachLimit is how long a volume is waited for that another machine has: one that
// was taken back may be ending.
const attachLimit = 5 * time.Minute

func (u *up) attachOne(ctx context.Context, node int, m *member, id, dev string) error {
	ec2, err := u.p.connect(ctx, m.launch.Region)
	if err != nil {
		return err
	}
	for limit, told := deadlineIn(attachLimit), false; ; {
		all, err := volumesOf(ctx, ec2, m.launch.Region, []string{id})
		if err != nil {
			return err
		}
		holder, free := heldBy(all[0])
		switch {
		case holder == m.id:
			return u.noteAttached(m, id, dev)
		case free:
			return u.sendAttach(ctx, ec2, node, m, id, dev)
		case limit.over():
			return fmt.Errorf("%s has it: aws ec2 detach-volume --region %s --volume-id %s, once nothing uses it there", holder, m.launch.Region, id)
		case !told:
			u.say(node, fmt.Sprintf("waiting for %s: it is still attached to %s", id, holder))
			told = true
		}
		if err := pause(ctx, u.p.poll()); err != nil {
			return err
		}
	}
}

// heldBy is the machine that a volume is attached to; free: to none, certainly.
func heldBy(v types.Volume) (machine string, free bool) {
	for _, a := range v.Attachments {
		if a.State != types.VolumeAttachmentStateDetached {
			return aws.ToString(a.InstanceId), false
		}
	}
	return "another machine", v.State == types.VolumeStateAvailable
}

// sendAttach makes the call, after its intent. That it was refused because the
// volume is attached already is looked at by whoever comes next.
func (u *up) sendAttach(ctx context.Context, ec2 client, node int, m *member, id, dev string) error {
	token, err := u.intendAttach(m, id, dev)
	if err != nil {
		return err
	}
	u.say(node, "attaching "+id+" as "+dev)
	err = u.p.insist(ctx, awsapi.Call{Action: "AttachVolume", Region: m.launch.Region, ID: id}, func() error {
		_, err := ec2.AttachVolume(ctx, &awsec2.AttachVolumeInput{VolumeId: &id, InstanceId: &m.id, Device: &dev}, awsapi.Once)
		if err == nil {
			return nil
		}
		// An earlier try may have done it.
		if all, look := volumesOf(ctx, ec2, m.launch.Region, []string{id}); look == nil {
			if holder, _ := heldBy(all[0]); holder == m.id {
				return nil
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return u.life.Ledger.Resolve(token, id)
}

// intendAttach writes down that a volume is to be attached, once for each machine.
func (u *up) intendAttach(m *member, id, dev string) (token string, err error) {
	entries, err := u.life.Ledger.Entries()
	if err != nil {
		return "", err
	}
	want := attachment{m.launch.Region, id, m.id, dev}
	for _, e := range entries {
		var was attachment
		if e.Kind != kindAttach || !e.Open() || json.Unmarshal(e.Detail, &was) != nil || was.Volume != id {
			continue
		}
		if was == want {
			return e.Token, nil
		}
		if err := u.life.Ledger.Close(e.Token, id+" is attached to "+was.Instance+" no more"); err != nil {
			return "", err
		}
	}
	token = newToken(u.life, kindAttach, entries)
	return token, u.life.Ledger.Intend(kindAttach, token, want)
}

func (u *up) noteAttached(m *member, id, dev string) error {
	token, err := u.intendAttach(m, id, dev)
	if err != nil {
		return err
	}
	return u.life.Ledger.Resolve(token, id)
}

// release waits until the volumes that exist are seen detached from the machines of
// a life, which has ended them, and gives a line of the receipt for each.
func (p *Provider) release(ctx context.Context, ledger cloud.Ledger, entries []cloud.Entry) (all []cloud.Resource, err error) {
	for _, e := range entries {
		var a attachment
		if e.Kind != kindAttach || !e.Open() || json.Unmarshal(e.Detail, &a) != nil {
			continue
		}
		r := cloud.Resource{Kind: kindAttach, ID: a.Volume, State: cloud.Unknown}
		proof, why := p.released(ctx, a)
		if r.Proof = why; proof != "" {
			r.State, r.Proof = cloud.Gone, proof
			err = errors.Join(err, ledger.Close(e.Token, proof))
		}
		all = append(all, r)
	}
	return all, err
}

// released is how it is known that a volume is detached; else why it isn't.
func (p *Provider) released(ctx context.Context, a attachment) (proof, why string) {
	hand := "; by hand: aws ec2 describe-volumes --region " + a.Region + " --volume-ids " + a.Volume
	ec2, err := p.connect(ctx, a.Region)
	if err != nil {
		return "", "AWS was not asked: " + err.Error()
	}
	for limit := deadlineIn(p.settle); ; {
		all, err := volumesOf(ctx, ec2, a.Region, []string{a.Volume})
		if err == nil {
			holder, free := heldBy(all[0])
			switch {
			case free:
				return a.Volume + " is detached, and stays with what is on it", ""
			case holder != a.Instance:
				return a.Volume + " is attached to " + holder + " now, and stays", ""
			}
		}
		if is(err, awsapi.NotFound) {
			return a.Volume + " is not there any more: somebody has deleted it", ""
		}
		if limit.over() || ctx.Err() != nil {
			if err != nil {
				return "", err.Error() + hand
			}
			return "", "it is still attached to " + a.Instance + hand
		}
		if err := pause(ctx, p.poll()); err != nil {
			return "", err.Error() + hand
		}
	}
}
