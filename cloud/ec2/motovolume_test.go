package ec2

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/cloud/ec2/volume"
)

// A volume that exists is attached on a stand-in that nobody here made, and stays
// when all else is proven gone.
func TestMotoAttachesAVolumeThatStays(t *testing.T) {
	motoEnv(t, moto(t))
	p := New(Options{Dir: t.TempDir(), Settle: 2 * time.Second})
	ec2, err := p.connect(t.Context(), "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	made, err := ec2.(*awsec2.Client).CreateVolume(t.Context(), &awsec2.CreateVolumeInput{AvailabilityZone: aws.String("us-east-1b"), Size: aws.Int32(10), VolumeType: types.VolumeTypeGp3})
	if err != nil {
		t.Fatal(err)
	}
	id := aws.ToString(made.VolumeId)
	spec := cloud.Spec{Name: "train", Count: 1, Regions: []string{"us-east-1"}, Instance: "g5.xlarge", Image: motoImage(t, p), Lifetime: time.Hour, Idle: time.Hour,
		Own: &options.Machines{Volumes: map[string]string{"/data": id}}}
	life := cloud.Life{Name: "train", ID: "0123456789ab", Began: time.Now(), Dir: t.TempDir(), Ledger: &memory{}}
	say := func(_ int, text string) { t.Log(text) }
	c, err := p.Up(t.Context(), life, spec, say)
	if err != nil || c.Zone != "us-east-1b" {
		t.Fatalf("%v %+v", err, c)
	}
	holder := func() (string, bool) {
		all, err := volume.Of(t.Context(), ec2, "us-east-1", []string{id})
		if err != nil {
			t.Fatal(err)
		}
		return volume.Holder(all[0])
	}
	if at, _ := holder(); at != c.Nodes[0].ID {
		t.Errorf("it is attached to %s", at)
	}
	receipt, err := p.Down(t.Context(), life, say)
	if err != nil || !receipt.Proven() {
		t.Errorf("%v %+v", err, receipt)
	}
	if at, free := holder(); !free {
		t.Errorf("it is attached to %s still", at)
	}
}
