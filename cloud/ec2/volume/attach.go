package volume

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/waits"
)

// Kind is the ledger's word for a volume that exists and was attached.
const Kind = "volume-attachment"

// Attachment is the detail of its entry.
type Attachment struct {
	Region   string `json:"region"`
	Volume   string `json:"volume"`
	Instance string `json:"instance"`
	Device   string `json:"device"`
}

// OfEntry reads an open entry of that kind.
func OfEntry(e cloud.Entry) (a Attachment, is bool) {
	return a, e.Kind == Kind && e.Open() && json.Unmarshal(e.Detail, &a) == nil
}

// Attacher attaches volumes that exist.
type Attacher struct {
	EC2    API
	Ledger cloud.Ledger
	// Token is the next one for the ledger.
	Token func([]cloud.Entry) string
	// Insist makes a call until it is known what became of it.
	Insist func(ctx context.Context, call awsapi.Call, send func() error) error
	Say    func(text string)
	Poll   time.Duration
}

// attachLimit is how long a volume is waited for that another machine has: one that
// was taken back may be ending.
const attachLimit = 5 * time.Minute

// Attach attaches one, its intent first; one that is attached already is noted.
func (t *Attacher) Attach(ctx context.Context, a Attachment) error {
	for began, told := time.Now(), false; ; {
		all, err := Of(ctx, t.EC2, a.Region, []string{a.Volume})
		if err != nil {
			return err
		}
		holder, free := Holder(all[0])
		switch {
		case free || holder == a.Instance:
			return t.carryOut(ctx, a, free)
		case time.Since(began) > attachLimit:
			return fmt.Errorf("%s has it: aws ec2 detach-volume --region %s --volume-id %s, once nothing uses it there", holder, a.Region, a.Volume)
		case !told:
			t.Say("waiting for " + a.Volume + ": it is still attached to " + holder)
			told = true
		}
		if err := waits.Pause(ctx, t.Poll); err != nil {
			return err
		}
	}
}

// carryOut writes the intent down, and makes the call where it is still to be made.
func (t *Attacher) carryOut(ctx context.Context, a Attachment, free bool) error {
	token, err := t.intend(a)
	if err == nil && free {
		t.Say("attaching " + a.Volume + " as " + a.Device)
		err = t.Insist(ctx, awsapi.Call{Action: "AttachVolume", Region: a.Region, ID: a.Volume}, func() error { return t.send(ctx, a) })
	}
	if err != nil {
		return err
	}
	return t.Ledger.Resolve(token, a.Volume)
}

// send makes the call once. Where it is refused an earlier one may have done it.
func (t *Attacher) send(ctx context.Context, a Attachment) error {
	_, err := t.EC2.AttachVolume(ctx, &awsec2.AttachVolumeInput{VolumeId: &a.Volume, InstanceId: &a.Instance, Device: &a.Device}, awsapi.Once)
	if err == nil {
		return nil
	}
	if all, look := Of(ctx, t.EC2, a.Region, []string{a.Volume}); look == nil {
		if holder, _ := Holder(all[0]); holder == a.Instance {
			return nil
		}
	}
	return err
}

// intend writes down that a volume is to be attached, once for each machine. What
// was written of a machine before it is closed: the volume was seen without that.
func (t *Attacher) intend(want Attachment) (token string, err error) {
	entries, err := t.Ledger.Entries()
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		was, is := OfEntry(e)
		if !is || was.Volume != want.Volume {
			continue
		}
		if was == want {
			return e.Token, nil
		}
		if err := t.Ledger.Close(e.Token, was.Volume+" is attached to "+was.Instance+" no more"); err != nil {
			return "", err
		}
	}
	token = t.Token(entries)
	return token, t.Ledger.Intend(Kind, token, want)
}

// fewestLooks is how often a volume is looked at before it is given up.
const fewestLooks = 4

// Released waits until a volume is seen detached from a machine that was ended, for
// a while: how that is known, else why it isn't.
func Released(ctx context.Context, ec2 API, a Attachment, limit, poll time.Duration) (proof, why string) {
	hand := "; by hand: aws ec2 describe-volumes --region " + a.Region + " --volume-ids " + a.Volume
	for began, looks := time.Now(), 1; ; looks++ {
		all, err := Of(ctx, ec2, a.Region, []string{a.Volume})
		switch {
		case notThere(err):
			return a.Volume + " is not there any more: somebody has deleted it", ""
		case err != nil:
			why = err.Error()
		default:
			holder, free := Holder(all[0])
			if free {
				return a.Volume + " is detached, and stays with what is on it", ""
			}
			if holder != a.Instance {
				return a.Volume + " is attached to " + holder + " now, and stays", ""
			}
			why = "it is still attached to " + a.Instance
		}
		if ctx.Err() != nil || looks >= fewestLooks && time.Since(began) > limit {
			return "", why + hand
		}
		_ = waits.Pause(ctx, poll)
	}
}
