package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// desk is a console beside the SDK of somebody who uses the fake.
type desk struct {
	t *testing.T
	c console
	n *ec2.Client
}

func newDesk(t *testing.T) desk {
	t.Helper()
	s := fakeaws.New(fakeaws.Options{})
	t.Cleanup(s.Close)
	for _, v := range s.Env() {
		k, v, _ := strings.Cut(v, "=")
		t.Setenv(k, v)
	}
	api, err := awsapi.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return desk{t, console{s, nil}, api.EC2("us-east-1")}
}

// types carries out lines and gives what they say.
func (d desk) types(lines ...string) string {
	var out bytes.Buffer
	c := d.c
	c.out = &out
	c.read(strings.NewReader(strings.Join(lines, "\n")))
	return out.String()
}

// launch asks for an instance and gives its id, or AWS's code of the refusal.
func (d desk) launch(spot bool) (id, code string) {
	d.t.Helper()
	images, err := d.n.DescribeImages(d.t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"},
		Filters: []types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}}})
	if err != nil {
		d.t.Fatal(err)
	}
	in := &ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1), ImageId: images.Images[0].ImageId, InstanceType: "g5.xlarge",
		Placement:                         &types.Placement{AvailabilityZone: aws.String("us-east-1a")},
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate}
	if spot {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
	}
	made, err := d.n.RunInstances(d.t.Context(), in, awsapi.Once)
	var api smithy.APIError
	switch {
	case errors.As(err, &api):
		return "", api.ErrorCode()
	case err != nil:
		d.t.Fatal(err)
	}
	return *made.Instances[0].InstanceId, ""
}

// ended waits until an instance is seen as terminated, and gives AWS's reason.
func (d desk) ended(id string) string {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		seen, err := d.n.DescribeInstances(d.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
		if err != nil {
			continue // not seen yet
		}
		i := seen.Reservations[0].Instances[0]
		if name := i.State.Name; name == types.InstanceStateNameShuttingDown || name == types.InstanceStateNameTerminated {
			return aws.ToString(i.StateReason.Code)
		}
	}
	d.t.Fatalf("%s goes on", id)
	return ""
}

func TestInstancesAreTakenBackAndCrashWhenItIsTyped(t *testing.T) {
	d := newDesk(t)
	spot, _ := d.launch(true)
	steady, _ := d.launch(false)
	if said := d.types("ls"); !strings.Contains(said, spot+"  us-east-1a  g5.xlarge  spot") || !strings.Contains(said, steady+"  us-east-1a  g5.xlarge  on demand") {
		t.Fatalf("ls says %s", said)
	}
	if said := d.types("reclaim "+steady, "reclaim all 0s"); !strings.Contains(said, steady+" is on demand") || !strings.Contains(said, spot+" is told") {
		t.Errorf("it says %s", said)
	}
	if why := d.ended(spot); why != "Server.SpotInstanceTermination" {
		t.Errorf("the spot instance ended: %s", why)
	}
	d.types("crash " + steady)
	if why := d.ended(steady); why != "Server.InternalError" {
		t.Errorf("the other one ended: %s", why)
	}
}

func TestZoneIsFullUntilItIsFreed(t *testing.T) {
	d := newDesk(t)
	if said := d.types("fill us-east-1a g5.xlarge 1"); !strings.Contains(said, "has room for 1") {
		t.Fatalf("it says %s", said)
	}
	for _, spot := range []bool{false, true} {
		if _, code := d.launch(spot); code != "" {
			t.Errorf("the first, spot %v: %s", spot, code)
		}
		if _, code := d.launch(spot); code != "InsufficientInstanceCapacity" {
			t.Errorf("the second, spot %v: %q", spot, code)
		}
	}
	d.types("free us-east-1a g5.xlarge")
	if _, code := d.launch(false); code != "" {
		t.Errorf("when it is free again: %s", code)
	}
}

func TestThePageOfAWSHasWhatCanBeTyped(t *testing.T) {
	page, err := os.ReadFile("../../../docs/aws.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+usage()) {
		t.Errorf("docs/aws.md does not have\n%s", usage())
	}
}

func TestWhatIsTypedWronglyIsSaid(t *testing.T) {
	d := newDesk(t)
	for line, want := range map[string]string{
		"reclaim":                     "type reclaim ID|all [NOTICE]",
		"reclaim i-1 soon":            "soon is no duration",
		"reclaim i-1":                 "no instance i-1 runs",
		"reclaim all":                 "no such instance runs",
		"crash":                       "type crash ID|all",
		"crash i-1":                   "no instance i-1 runs",
		"fill us-east-1a":             "type fill ZONE TYPE [N]",
		"fill moon g5.xlarge":         "there is no zone moon; there are us-east-1a",
		"fill us-east-1a g99":         "there is no instance type g99",
		"fill us-east-1a g5.xlarge x": "x is no number",
		"free us-east-1a":             "type free ZONE TYPE",
		"burn":                        "burn is no command",
		"help":                        "take a spot instance back after its notice",
		"ls":                          "no instance runs",
	} {
		if said := d.types(line); !strings.Contains(said, want) {
			t.Errorf("%q is answered with %s", line, said)
		}
	}
}
