package ec2

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// bigIn lets the account run machines of a type in all zones.
func bigIn(r *rig, instance string) {
	r.spec.Instance = instance
	r.aws.SetQuota("us-east-1", "L-417A185B", 10_000)
}

// Machines with many network cards get an EFA interface on each, where they need
// no public address.
func TestEveryNetworkCardGetsItsEFA(t *testing.T) {
	for instance, want := range map[string]struct {
		first string
		efa   int // of all kinds
		last  string
	}{
		"p4d.24xlarge":     {"efa", 4, "3/1 efa-only"},
		"p5.48xlarge":      {"efa", 32, "31/1 efa-only"},
		"p5en.48xlarge":    {"efa", 16, "15/1 efa-only"},
		"p6-b200.48xlarge": {"efa", 8, "7/1 efa-only"},
		"p6-b300.48xlarge": {"", 16, "16/1 efa-only"}, // its first card is for the address alone
		"g6e.48xlarge":     {"efa", 4, "3/1 efa-only"},
	} {
		t.Run(instance, func(t *testing.T) {
			o := lab()
			o.Regions[0].VPCs[0].Subnets = nil
			for _, zone := range []string{"a", "b", "c"} {
				o.Regions[0].VPCs[0].Subnets = append(o.Regions[0].VPCs[0].Subnets, fakeaws.Subnet{Name: "private-" + zone, Zone: zone, Private: true})
			}
			r := newRig(t, o)
			bigIn(r, instance)
			r.aws.SetQuota("us-east-1", "L-DB2E81BA", 10_000)
			r.spec.Own = &options.Machines{VPC: "ml-lab"}
			r.up()
			runs := r.calls("RunInstances")
			p := runs[len(runs)-1].Params
			var all []string
			efa := 0
			for n := 1; p.Has(fmt.Sprintf("NetworkInterface.%d.DeviceIndex", n)); n++ {
				of := func(name string) string { return p.Get(fmt.Sprintf("NetworkInterface.%d.%s", n, name)) }
				all = append(all, of("NetworkCardIndex")+"/"+of("DeviceIndex")+" "+of("InterfaceType"))
				if strings.HasPrefix(of("InterfaceType"), "efa") {
					efa++
				}
				if of("SecurityGroupId.1") == "" || of("SubnetId") == "" || of("DeleteOnTermination") != "true" {
					t.Errorf("interface %d lacks its group, its subnet or its end", n)
				}
			}
			if p.Has("NetworkInterface.1.AssociatePublicIpAddress") {
				t.Error("AWS refuses a public address with several interfaces")
			}
			if all[0] != "/0 "+want.first || efa != want.efa || all[len(all)-1] != want.last {
				t.Errorf("%d EFA interfaces: %v", efa, all)
			}
			egress := r.calls("AuthorizeSecurityGroupEgress")
			if len(egress) == 0 || egress[0].Params.Get("IpPermissions.1.Groups.1.GroupId") == "" {
				t.Error("EFA's traffic may not leave for the group itself")
			}
			r.down()
		})
	}
}

// With public addresses there is room for one, which is said, with the way out.
func TestWithPublicAddressesOneEFAIsUsed(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	bigIn(r, "p4d.24xlarge")
	c := r.up()
	if !r.heard("machines.reach") || c.BootLimit == 0 {
		t.Errorf("%v %v", r.said, c.BootLimit)
	}
	if runs := r.calls("RunInstances"); runs[len(runs)-1].Params.Has("NetworkInterface.2.DeviceIndex") {
		t.Error("several interfaces with a public address")
	}
	r.down()
}

// reserved is a region with reservations.
func reserved() fakeaws.Options {
	return fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1", Reservations: []fakeaws.Reservation{
		{ID: "cr-0aaaaaaaaaaaaaaaa", Type: "g5.xlarge", Zone: "b", Count: 2},
		{ID: "cr-0bbbbbbbbbbbbbbbb", Type: "p4d.24xlarge", Zone: "c", Count: 2, Block: true},
		{ID: "cr-0cccccccccccccccc", Type: "g5.xlarge", Zone: "a", Count: 8, Waits: true},
		{ID: "cr-0dddddddddddddddd", Type: "g5.xlarge", Zone: "a", Count: 1},
	}}}}
}

func TestMachinesStandInTheirReservation(t *testing.T) {
	for name, c := range map[string]struct {
		id, instance, zone, market string
	}{
		"on demand":        {"cr-0aaaaaaaaaaaaaaaa", "g5.xlarge", "us-east-1b", ""},
		"a capacity block": {"cr-0bbbbbbbbbbbbbbbb", "p4d.24xlarge", "us-east-1c", "capacity-block"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, reserved())
			r.spec.Instance, r.spec.Own = c.instance, &options.Machines{Reservation: c.id}
			r.spec.Budget = 20
			pre := r.provider().Check(t.Context(), r.spec)
			for _, f := range pre.Findings {
				if !f.OK {
					t.Errorf("%+v", f)
				}
			}
			if f := findingOf(t, pre, "reservation"); !strings.Contains(f.Text, c.id) || strings.Contains(f.Text, "ends at") != (c.market != "") {
				t.Errorf("%+v", f)
			}
			got := r.up()
			runs := r.calls("RunInstances")
			p := runs[len(runs)-1].Params
			if got.Zone != c.zone || p.Get("InstanceMarketOptions.MarketType") != c.market ||
				p.Get("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId") != c.id {
				t.Errorf("%s %v", got.Zone, p)
			}
			if c.market != "" && (p.Has("Placement.GroupName") || got.PricePerHour > 1) {
				t.Errorf("a block's machines: %v, $%v/h", p.Get("Placement.GroupName"), got.PricePerHour)
			}
			r.down()
		})
	}
}

func TestAReservationThatCanNotBeUsedIsFoundByThePlan(t *testing.T) {
	for name, c := range map[string]struct {
		id   string
		spot bool
		says string
	}{
		"none":      {"cr-0eeeeeeeeeeeeeeee", false, "cr-0eeeeeeeeeeeeeeee"},
		"not begun": {"cr-0cccccccccccccccc", false, "has not begun"},
		"too small": {"cr-0dddddddddddddddd", false, "room for 1 more"},
		"of others": {"cr-0bbbbbbbbbbbbbbbb", false, "is for p4d.24xlarge"},
		"spot":      {"cr-0aaaaaaaaaaaaaaaa", true, "spot machines use none"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, reserved())
			r.spec.Own, r.spec.Spot = &options.Machines{Reservation: c.id}, c.spot
			if f := findingOf(t, r.provider().Check(t.Context(), r.spec), "reservation"); f.OK || !strings.Contains(f.Text, c.says) {
				t.Errorf("%+v", f)
			}
			if _, err := r.provider().Up(t.Context(), r.life, r.spec, r.say); err == nil || r.aws.Launched() > 0 {
				t.Error("it was launched: ", err)
			}
			r.down()
		})
	}
}

// What the profile says of disks, prices and tags is in the launch, and the faster
// disk is in the price.
func TestTheLaunchSaysWhatTheProfileSays(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	plain := r.provider().Check(t.Context(), r.spec)
	r.spec.Spot = true
	r.spec.Own = &options.Machines{DiskIOPS: 6000, DiskThroughput: 500, KMSKey: "alias/training", SpotMaxPrice: 0.9,
		Tags: map[string]string{"cost-center": "1234", "Name": "ada's"}}
	r.up()
	runs := r.calls("RunInstances")
	p := runs[len(runs)-1].Params
	for name, want := range map[string]string{
		"BlockDeviceMapping.1.Ebs.Iops": "6000", "BlockDeviceMapping.1.Ebs.Throughput": "500", "BlockDeviceMapping.1.Ebs.KmsKeyId": "alias/training",
		"InstanceMarketOptions.SpotOptions.MaxPrice": "0.9",
	} {
		if got := p.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, action := range []string{"RunInstances", "CreateSecurityGroup", "ImportKeyPair", "CreatePlacementGroup"} {
		calls := r.calls(action)
		calls = calls[len(calls)-1:] // the one that was no dry run
		var tags []string
		for n := 1; calls[0].Params.Has(fmt.Sprintf("TagSpecification.1.Tag.%d.Key", n)); n++ {
			tags = append(tags, calls[0].Params.Get(fmt.Sprintf("TagSpecification.1.Tag.%d.Key", n))+"="+calls[0].Params.Get(fmt.Sprintf("TagSpecification.1.Tag.%d.Value", n)))
		}
		if !slices.Contains(tags, "cost-center=1234") || !slices.Contains(tags, "Name=ada's") || !slices.Contains(tags, "dlwb:cluster=train") {
			t.Errorf("%s: %v", action, tags)
		}
	}
	r.down()
	r.spec.Spot = false
	fast := r.provider().Check(t.Context(), r.spec)
	if disk := diskOf(fast) / diskOf(plain); disk < 2 {
		t.Errorf("the faster disk costs %.2f times as much", disk)
	}
}

func diskOf(p cloud.Preflight) float64 {
	for _, c := range p.Costs {
		if strings.Contains(c.What, "disk") {
			return c.PerHour
		}
	}
	return 0
}

// A spot machine starts where AWS says that there is room, not where it is cheapest.
func TestSpotZonesAreTriedByThePlacementScore(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Count, r.spec.Spot = 1, true
	r.aws.SetSpotCapacity("us-east-1", "us-east-1a", "g5.xlarge", 0) // the cheapest
	if c := r.up(); c.Zone != "us-east-1b" || len(slices.DeleteFunc(r.calls("RunInstances"), func(c fakeaws.Call) bool { return c.DryRun })) != 1 {
		t.Errorf("it started in %s", c.Zone)
	}
	r.down()
}
