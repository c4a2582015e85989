package fakeaws

import "github.com/dlwb/dlwb/internal/fakeaws/wire"

type volumeXML struct {
	ID         string                  `xml:"volumeId"`
	Size       int                     `xml:"size"`
	Snapshot   string                  `xml:"snapshotId"`
	Zone       string                  `xml:"availabilityZone"`
	Status     string                  `xml:"status"`
	Made       string                  `xml:"createTime"`
	Attached   wire.Set[attachmentXML] `xml:"attachmentSet"`
	Tags       wire.Set[tagXML]        `xml:"tagSet"`
	Type       string                  `xml:"volumeType"`
	IOPS       int                     `xml:"iops,omitempty"`
	Throughput int                     `xml:"throughput,omitempty"`
	Encrypted  bool                    `xml:"encrypted"`
}

type attachmentXML struct {
	Volume   string `xml:"volumeId"`
	Instance string `xml:"instanceId"`
	Device   string `xml:"device"`
	Status   string `xml:"status"`
	At       string `xml:"attachTime"`
	Delete   bool   `xml:"deleteOnTermination"`
}

func (v volume) status() string {
	if v.Instance == "" {
		return "available"
	}
	return "in-use"
}

func (v volume) xml() volumeXML {
	x := volumeXML{v.ID, v.SizeGB, v.Snapshot, v.Zone, v.status(), wire.Time(v.Made), wire.Set[attachmentXML]{}, v.Tags.xml(), v.Type, v.IOPS, v.Throughput, v.Encrypted}
	if v.Instance != "" {
		x.Attached = wire.SetOf([]attachmentXML{{v.ID, v.Instance, v.Device, "attached", wire.Time(v.Made), v.DeleteOnTermination}})
	}
	return x
}

func describeVolumes(q *request) (any, error) {
	ids := q.list("VolumeId")
	for _, id := range ids {
		if _, ok := q.region.volumes.look(id); !ok {
			return nil, bad("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
		}
	}
	var found []volume
	for _, v := range q.region.volumes.listed() {
		x := v.xml()
		f := fields{"volume-id": one(v.ID), "status": one(x.Status), "availability-zone": one(v.Zone), "volume-type": one(v.Type), "attachment.instance-id": nil,
			"attachment.status": nil, "attachment.device": nil, "attachment.delete-on-termination": nil, "snapshot-id": one(v.Snapshot)}
		for _, a := range x.Attached.Items {
			f["attachment.instance-id"], f["attachment.status"], f["attachment.device"] = one(a.Instance), one(a.Status), one(a.Device)
			f["attachment.delete-on-termination"] = one(yesNo(a.Delete))
		}
		ok, err := q.passes(v.Tags, f)
		if err != nil {
			return nil, err
		}
		if ok && among(v.ID, ids) {
			found = append(found, v)
		}
	}
	found, next, err := page(q, found, 1000, func(v volume) string { return sortable(q.region.volumes.order(v)) })
	if err != nil {
		return nil, err
	}
	return struct {
		Volumes wire.Set[volumeXML] `xml:"volumeSet"`
		listing
	}{wire.SetOf(each(found, volume.xml)), listing{next}}, nil
}

func yesNo(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func deleteVolume(q *request) (any, error) {
	id := q.str("VolumeId")
	v, ok := q.region.volumes.usable(id)
	switch {
	case !ok:
		return nil, bad("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
	case v.Instance != "":
		return nil, bad("VolumeInUse", "Volume %s is currently attached to %s", id, v.Instance)
	}
	q.region.volumes.remove(id)
	return done{true}, nil
}
