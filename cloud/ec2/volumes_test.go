package ec2

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/cloud/ec2/volume"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// volume puts a volume of a user's there.
func (r *rig) volume() string {
	return r.aws.Plant(fakeaws.Planted{Kind: "volume", Region: "us-east-1", Tags: map[string]string{"Name": "data"}})
}

// stays holds that volumes are there still, attached to none.
func (r *rig) stays(ids ...string) {
	r.Helper()
	ec2, err := r.provider().connect(r.Context(), "us-east-1")
	if err != nil {
		r.Fatal(err)
	}
	all, err := volume.Of(r.Context(), ec2, "us-east-1", ids)
	if err != nil {
		r.Fatal(err)
	}
	for _, v := range all {
		if holder, free := volume.Holder(v); !free {
			r.Errorf("%s is attached to %s", *v.VolumeId, holder)
		}
	}
}

// A volume that exists is attached where it stands, its intent first, and stays when
// the cluster goes; a new one goes with its machine.
func TestVolumesThatExistAreAttachedAndStay(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	a, b := r.volume(), r.volume()
	r.spec.Own = &options.Machines{Volumes: map[string]string{"/data": a + "," + b, "/scratch": "500GB"}}
	if f := findingOf(t, r.provider().Check(t.Context(), r.spec), "volumes"); !f.OK || !strings.Contains(f.Text, "/data is "+a+", "+b+" in us-east-1a") ||
		!strings.Contains(f.Text, "/scratch is a new volume of 466 GiB") {
		t.Errorf("%+v", f)
	}
	// The reply of the first call is lost: the volume is attached once all the same.
	r.aws.Fault(fakeaws.Fault{Action: "AttachVolume", Do: fakeaws.LoseReply, Times: 1})
	c := r.up()
	if c.Zone != "us-east-1a" {
		t.Errorf("the machines are in %s", c.Zone)
	}
	launch := r.calls("RunInstances")[0].Params
	if launch.Get("BlockDeviceMapping.2.Ebs.VolumeSize") != "466" || launch.Get("BlockDeviceMapping.2.Ebs.DeleteOnTermination") != "true" {
		t.Errorf("%v", launch)
	}
	calls := r.calls("AttachVolume")
	if len(calls) < 2 || calls[0].Params.Get("VolumeId") != a || calls[0].Params.Get("InstanceId") != c.Nodes[0].ID || calls[0].Params.Get("Device") != "/dev/sdg" {
		t.Errorf("%+v", calls)
	}
	entries, _ := r.ledger.Entries()
	attached := map[string]bool{}
	for _, e := range entries {
		if e.Kind == volume.Kind {
			attached[e.ID] = e.Open()
		}
	}
	if !attached[a] || !attached[b] || len(attached) != 2 {
		t.Errorf("the ledger has %v", attached)
	}
	n := len(calls)
	if r.up(); len(r.calls("AttachVolume")) != n {
		t.Error("attached again by a second up")
	}
	receipt, err := r.provider().Down(t.Context(), r.life, r.say)
	if err != nil || !receipt.Proven() || r.ledger.open() > 0 {
		t.Fatalf("%v %+v", err, receipt)
	}
	told := 0
	for _, res := range receipt.Resources {
		if res.Kind == volume.Kind && res.State == cloud.Gone && strings.Contains(res.Proof, "stays with what is on it") {
			told++
		}
	}
	if told != 2 {
		t.Errorf("%+v", receipt.Resources)
	}
	r.stays(a, b)
}

func TestAVolumeThatCanNotBeAttachedIsFoundByThePlan(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	v := r.volume()
	for word, says := range map[string]string{v: "1 volume for 2 machines", "vol-0123456789abcdef0," + v: "vol-0123456789abcdef0"} {
		r.spec.Own = &options.Machines{Volumes: map[string]string{"/data": word}}
		if f := findingOf(t, r.provider().Check(t.Context(), r.spec), "volumes"); f.OK || !strings.Contains(f.Text, says) || f.Next == "" {
			t.Errorf("%s: %+v", word, f)
		}
	}
}

// Whenever an up dies, and whatever call of it fails, down proves all gone and the
// volume stays.
func TestAVolumeThatExistsOutlivesAnUpThatDies(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	v := r.volume()
	r.spec.Count, r.spec.Own = 1, &options.Machines{Volumes: map[string]string{"/data": v}}
	r.aws.Fault(fakeaws.Fault{Action: "AttachVolume", Do: fakeaws.Refuse, Code: "IncorrectState", Times: 50})
	if _, err := r.provider().Up(t.Context(), r.life, r.spec, r.say); err == nil {
		t.Fatal("up says that all is well")
	}
	receipt, err := r.provider().Down(t.Context(), r.life, r.say)
	if err != nil || !receipt.Proven() || r.ledger.open() > 0 {
		t.Errorf("%v %+v", err, receipt)
	}
	r.stays(v)
}
