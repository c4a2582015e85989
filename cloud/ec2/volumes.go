package ec2

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/volume"
)

// dataDisks are those that are made with each machine.
func (l launch) dataDisks() (all []types.BlockDeviceMapping) {
	for n, gib := range l.Data {
		d := l.rootDisk()
		d.VolumeSize = aws.Int32(gib)
		all = append(all, types.BlockDeviceMapping{DeviceName: aws.String(volume.Device(n)), Ebs: d})
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

// volumeZone is the zone of the volumes that a spec names; empty: it names none.
func (p *Provider) volumeZone(ctx context.Context, region string, spec cloud.Spec) (string, error) {
	ec2, err := p.connect(ctx, region)
	if err != nil {
		return "", err
	}
	return volume.Zone(ctx, ec2, region, own(spec))
}

// volumes says what the data volumes are and what will become of them.
func (c *preflight) volumes() cloud.Finding {
	const what = "volumes"
	switch text, why := volume.Text(own(c.spec), c.spec.Count, c.volZone); {
	case c.volErr != nil:
		return failed(what, c.volErr, "aws ec2 describe-volumes --region "+c.region)
	case why != "":
		return missing(what, why, "machines.data_volumes with one id for each machine, with commas")
	case text != "":
		return found(what, text)
	}
	return cloud.Finding{}
}

// attach attaches the volumes that exist to the machines, in the order of the nodes.
func (u *up) attach(ctx context.Context, c crew) error {
	m := own(u.spec)
	if len(volume.Existing(m)) == 0 {
		return nil
	}
	if _, why := volume.Text(m, u.spec.Count, ""); why != "" {
		return errors.New(why)
	}
	first := heads(u.spec) // the head has none
	region := c[first].launch.Region
	ec2, err := u.p.connect(ctx, region)
	if err != nil {
		return err
	}
	next := len(volume.Sizes(m))
	for _, v := range m.Disks() {
		for k, id := range v.IDs {
			node := first + k
			t := volume.Attacher{EC2: ec2, Ledger: u.life.Ledger, Insist: u.p.insist, Say: func(text string) { u.say(node, text) }, Poll: u.p.poll(),
				Token: func(entries []cloud.Entry) string { return newToken(u.life, volume.Kind, entries) }}
			if err := t.Attach(ctx, volume.Attachment{Region: region, Volume: id, Instance: c[node].id, Device: volume.Device(next)}); err != nil {
				return fmt.Errorf("attach %s to node%d: %w", id, node, err)
			}
		}
		next += min(1, len(v.IDs))
	}
	return nil
}

// release waits until the volumes that exist are seen detached from the machines of
// a life, which are ended, and gives a line of the receipt for each.
func (p *Provider) release(ctx context.Context, ledger cloud.Ledger, entries []cloud.Entry) (all []cloud.Resource, err error) {
	for _, e := range entries {
		a, is := volume.OfEntry(e)
		if !is {
			continue
		}
		r := cloud.Resource{Kind: volume.Kind, ID: a.Volume, State: cloud.Unknown}
		ec2, failed := p.connect(ctx, a.Region)
		if r.Proof = "AWS was not asked"; failed == nil {
			proof, why := volume.Released(ctx, ec2, a, p.settle, p.poll())
			if r.Proof = why; proof != "" {
				r.State, r.Proof = cloud.Gone, proof
				err = errors.Join(err, ledger.Close(e.Token, proof))
			}
		}
		all = append(all, r)
	}
	return all, err
}
