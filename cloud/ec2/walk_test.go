package ec2

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// places are where machines were asked for, in order, each with the outcome.
func (r *rig) places() []string {
	var all []string
	for _, c := range r.calls("RunInstances") {
		market := ""
		if c.Params.Get("InstanceMarketOptions.MarketType") == "spot" {
			market = " spot"
		}
		all = append(all, c.Params.Get("Placement.AvailabilityZone")+market+": "+c.Outcome)
	}
	return all
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestWithoutCapacityTheNextZoneAndThenTheNextRegionIsTried(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Regions = []string{"us-east-1", "us-west-2"}
	r.aws.SetCapacity("us-east-1", "", "g5.xlarge", 1) // room for one of two
	r.aws.SetCapacity("us-west-2", "us-west-2a", "g5.xlarge", 0)
	c := r.up()
	same(t, r.places(), []string{"us-east-1a: InsufficientInstanceCapacity", "us-east-1b: InsufficientInstanceCapacity",
		"us-east-1c: InsufficientInstanceCapacity", "us-west-2a: InsufficientInstanceCapacity", "us-west-2b: ok"})
	if c.Region != "us-west-2" || c.Zone != "us-west-2b" {
		t.Errorf("the cluster is in %s, %s", c.Region, c.Zone)
	}
	if !r.heard("us-east-1b: AWS has no room for 2 × g5.xlarge") {
		t.Errorf("the reason was not told: %q", r.said)
	}
	r.down()
}

func TestAQuotaIsTheSameInEveryZone(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Regions = []string{"us-east-1", "us-west-2"}
	c := r.quotaIn("us-east-1", 4)
	same(t, r.places(), []string{"us-east-1a: VcpuLimitExceeded", "us-west-2a: ok"})
	if c.Region != "us-west-2" {
		t.Error("the cluster is in", c.Region)
	}
	r.down()
}

// quotaIn makes the quota too small after the offers were chosen.
func (r *rig) quotaIn(region string, vcpus float64) cloud.Cluster {
	r.aws.Fault(fakeaws.Fault{Action: "CreateSecurityGroup", Hook: func(fakeaws.Stage, fakeaws.Call) {
		r.aws.SetQuota(region, "L-DB2E81BA", vcpus)
	}})
	return r.up()
}

func TestSpotFallsBackToOnDemandOnlyWhenAllowed(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Spot = true
	r.aws.SetSpotCapacity("us-east-1", "", "g5.xlarge", 0)
	if _, err := r.provider().Up(t.Context(), r.life, r.spec, r.say); err == nil || !strings.Contains(err.Error(), "no place has room") {
		t.Error("without a fallback:", err)
	}
	r.spec.Own = &options.Machines{SpotFallback: true}
	c := r.up()
	if c.Spot || !strings.HasSuffix(r.places()[len(r.places())-1], ": ok") || len(r.places()) != 7 {
		t.Errorf("%+v after %q", c, r.places())
	}
	r.down()
}

func TestWhatNoPlaceCanHelpAgainstIsNotTriedElsewhere(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Regions = []string{"us-east-1", "us-west-2"}
	r.aws.Fault(fakeaws.Fault{Action: "RunInstances", Do: fakeaws.Refuse})
	_, err := r.provider().Up(t.Context(), r.life, r.spec, r.say)
	if err == nil || !strings.Contains(err.Error(), "no permission for ec2:RunInstances") || len(r.calls("RunInstances")) != 1 {
		t.Errorf("%v after %q", err, r.places())
	}
	r.aws.Heal()
	r.down()
}

func TestTheLaunchSaysEverythingInOneCall(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Spot, r.spec.Own, r.spec.Disk = true, &options.Machines{InstanceProfile: "results"}, 300<<30
	c := r.up()
	calls := r.calls("RunInstances")
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	p := calls[0].Params
	for name, want := range map[string]string{
		"MinCount": "2", "MaxCount": "2", "ClientToken": "dlwb-0123456789ab-run-0", "KeyName": "dlwb-train-0123456789ab",
		"InstanceInitiatedShutdownBehavior": "terminate", "IamInstanceProfile.Name": "results",
		"MetadataOptions.HttpTokens": "required", "MetadataOptions.HttpPutResponseHopLimit": "1",
		"BlockDeviceMapping.1.Ebs.Encrypted": "true", "BlockDeviceMapping.1.Ebs.VolumeType": "gp3",
		"BlockDeviceMapping.1.Ebs.VolumeSize": "300", "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true",
		"InstanceMarketOptions.SpotOptions.SpotInstanceType": "one-time", "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior": "terminate",
		"NetworkInterface.1.AssociatePublicIpAddress": "true", "Placement.GroupName": "dlwb-train-0123456789ab",
	} {
		if got := p.Get(name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	kinds := map[string]bool{}
	for n := range 4 {
		spec := "TagSpecification." + string(rune('1'+n)) + "."
		kinds[p.Get(spec+"ResourceType")] = true
		if !strings.Contains(p.Encode(), "dlwb%3Alife") {
			t.Error("no tag of the life")
		}
	}
	if len(kinds) != 4 || !kinds["spot-instances-request"] || !kinds["volume"] || !kinds["network-interface"] {
		t.Errorf("tags for %v", kinds)
	}
	for _, n := range c.Nodes {
		if n.HostKey == "" || !n.RotateHostKey || n.User != "ubuntu" || n.PeerHost == "" || !strings.HasSuffix(n.Addr, ":22") {
			t.Errorf("%+v", n)
		}
	}
	if d := time.Until(c.ExpiresAt); d < 50*time.Minute || d > time.Hour {
		t.Errorf("it expires in %s", d)
	}
	if c.PricePerHour <= 0 || len(c.Costs) != 3 || !c.Spot {
		t.Errorf("%+v", c)
	}
	r.down()
}

func TestANodeThatWasTakenBackIsReplacedInItsPlace(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Spot, r.spec.Count = true, 3
	before := r.up()
	r.aws.Reclaim(before.Nodes[1].ID, 0)
	for !slices.ContainsFunc(r.aws.Instances(), func(s string) bool { return strings.HasSuffix(s, before.Nodes[1].ID+" terminated") }) {
		time.Sleep(10 * time.Millisecond)
	}
	status, err := r.provider().Probe(t.Context(), before)
	if err != nil || status[1].State != cloud.Gone || status[0].State != cloud.Alive || !strings.Contains(status[1].Why, "reclaimed by EC2") {
		t.Errorf("%+v, %v", status, err)
	}
	after := r.up()
	for i, n := range after.Nodes {
		if (n.ID == before.Nodes[i].ID) != (i != 1) {
			t.Errorf("node %d was %s and is %s", i, before.Nodes[i].ID, n.ID)
		}
	}
	if r.aws.Launched() != 4 || after.Zone != before.Zone || len(after.Costs) != 4 {
		t.Errorf("%d launched, %+v", r.aws.Launched(), after)
	}
	r.down()
}

func TestStoppedMachinesCostTheirDisksAndComeBack(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	c := r.up()
	stopped, err := r.provider().Stop(t.Context(), r.life, c, r.say)
	if err != nil {
		t.Fatal(err)
	}
	if !stopped.Stopped || stopped.PricePerHour >= c.PricePerHour/10 || stopped.PricePerHour <= 0 || stopped.Nodes[0].Addr != "" || c.Nodes[0].Addr == "" {
		t.Errorf("%+v", stopped)
	}
	if _, err := r.provider().Up(t.Context(), r.life, r.spec, r.say); err == nil || !strings.Contains(err.Error(), "is stopped: start") {
		t.Error("up of a stopped cluster:", err)
	}
	r.aws.Advance(30 * time.Minute)
	started, err := r.provider().Start(t.Context(), r.life, stopped, r.say)
	if err != nil {
		t.Fatal(err)
	}
	if started.Stopped || started.PricePerHour != c.PricePerHour || started.Nodes[0].Addr == "" || started.Nodes[0].Addr == c.Nodes[0].Addr {
		t.Errorf("%+v", started)
	}
	r.down()
}

func TestSpotMachinesCanNotBeStopped(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Spot = true
	c := r.up()
	if _, err := r.provider().Stop(t.Context(), r.life, c, r.say); err == nil || !strings.Contains(err.Error(), "can't be stopped") {
		t.Error(err)
	}
	r.down()
}

func TestOrphansAreFoundInEveryRegionAndRemoved(t *testing.T) {
	r := newRig(t, fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1"}, {Name: "us-west-2"}, {Name: "eu-west-1", Hangs: true}, {Name: "ap-east-1", Disabled: true}}})
	r.spec.Regions = []string{"us-west-2"}
	r.up()
	theirs := r.aws.Plant(fakeaws.Planted{Kind: "instance", Region: "us-east-1", Tags: map[string]string{tagLife: "ffffffffffff", tagOwner: "arn:aws:iam::123456789012:user/another", tagCluster: "x"}})
	p := r.provider() // the ledger and the cluster's directory are lost
	hunt, err := p.Orphans(t.Context(), func(string) bool { return false }, r.say)
	if err != nil {
		t.Fatal(err)
	}
	same(t, hunt.Looked, []string{"us-east-1", "us-west-2"})
	same(t, hunt.Closed, []string{"ap-east-1"})
	if len(hunt.Blind) != 1 || !strings.Contains(hunt.Blind["eu-west-1"], "no answer within") {
		t.Errorf("blind: %v", hunt.Blind)
	}
	if len(hunt.Orphans) != 2 || !hunt.Orphans[1].Foreign || hunt.Orphans[0].Foreign || hunt.Orphans[0].Life != r.life.ID || hunt.Orphans[0].PerHour < 2 {
		t.Fatalf("orphans: %+v", hunt.Orphans)
	}
	if _, err := p.Collect(t.Context(), hunt.Orphans[1], r.say); err == nil || !strings.Contains(err.Error(), "left alone") {
		t.Error("the foreign one:", err)
	}
	receipt, err := p.Collect(t.Context(), hunt.Orphans[0], r.say)
	if err != nil || !receipt.Proven() {
		t.Fatalf("%v %+v", err, receipt)
	}
	if left := r.aws.Left(); len(left) > 0 || !r.aws.Exists("us-east-1", theirs) || len(r.aws.Touched()) > 0 {
		t.Errorf("left %v, touched %v", left, r.aws.Touched())
	}
	again, err := p.Orphans(t.Context(), func(string) bool { return false }, r.say)
	if err != nil || len(again.Orphans) != 1 {
		t.Errorf("%v %+v", err, again.Orphans)
	}
	if known, _ := p.Orphans(t.Context(), func(string) bool { return true }, r.say); len(known.Orphans) > 0 {
		t.Errorf("known lives are orphans: %+v", known.Orphans)
	}
}

func TestWhoMovesIsLetInFromThereAndNotFromTheOldPlace(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Count = 1
	for _, from := range [][]string{{"203.0.113.7"}, {"2001:db8::7", "203.0.113.9"}, {"203.0.113.8/32", "198.51.100.0/24", "2001:db8::/64"}, {"198.51.100.0/24"}} {
		p := r.provider()
		r.spec.Own = &options.Machines{SSHFrom: from}
		u, err := p.begin(t.Context(), r.life, r.spec, r.say)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.assemble(t.Context()); err != nil {
			t.Fatal(err)
		}
		ec2, err := p.connect(t.Context(), "us-east-1")
		if err != nil {
			t.Fatal(err)
		}
		out, err := ec2.DescribeSecurityGroups(t.Context(), &awsec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("tag:"+tagLife, r.life.ID)}})
		if err != nil || len(out.SecurityGroups) != 1 {
			t.Fatal(err, out)
		}
		var in []string
		for _, rule := range out.SecurityGroups[0].IpPermissions {
			for _, v4 := range rule.IpRanges {
				in = append(in, fmt.Sprint(*v4.CidrIp, " ", *rule.FromPort))
			}
			for _, v6 := range rule.Ipv6Ranges {
				in = append(in, fmt.Sprint(*v6.CidrIpv6, " ", *rule.FromPort))
			}
		}
		var want []string
		for _, n := range u.sites["us-east-1"].door.Nets {
			want = append(want, n.String()+" 22")
		}
		slices.Sort(in)
		slices.Sort(want)
		if same(t, in, want); len(want) != len(from) {
			t.Errorf("%v became %v", from, want)
		}
	}
	r.down()
}

func TestAMachineThatWouldOnlyStopIsMadeMortal(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Count = 1
	c := r.up()
	p := r.provider()
	api, err := p.api(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	setBehaviour(t, api.EC2("us-east-1"), c.Nodes[0].ID, "stop")
	r.up()
	if ok, err := p.terminates(t.Context(), api.EC2("us-east-1"), "us-east-1", c.Nodes[0].ID); !ok || err != nil {
		t.Error(ok, err)
	}
	setBehaviour(t, api.EC2("us-east-1"), c.Nodes[0].ID, "stop")
	r.aws.Fault(fakeaws.Fault{Action: "ModifyInstanceAttribute", Do: fakeaws.Ignore})
	if _, err := p.Up(t.Context(), r.life, r.spec, r.say); err == nil || !strings.Contains(err.Error(), errImmortal.Error()) {
		t.Error("up says", err)
	}
	r.down()
}
