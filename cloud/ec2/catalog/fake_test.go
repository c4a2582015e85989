package catalog

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// fake is a market of a whole AWS.
func fake(t *testing.T, o fakeaws.Options) (*fakeaws.Server, *Market) {
	t.Helper()
	s := fakeaws.New(o)
	t.Cleanup(s.Close)
	return s, NewMarket(client(t, s.URL, s.Env()...), t.TempDir())
}

func TestAllPagesOfAllPartsAreRead(t *testing.T) {
	_, m := fake(t, fakeaws.Options{PageSize: 7})
	o := ask1(t, m, cloud.Query{})
	// A region lists only what it has a zone for, so p5e is not there, nor is
	// what left AWS's list: three of p3, and p6e.
	if !o.Live || len(o.Offers) != 69 || len(o.Notes) != 0 {
		t.Fatalf("live %v, %d offers, notes %q", o.Live, len(o.Offers), o.Notes)
	}
	for _, o := range o.Offers {
		r := rows()[o.Instance]
		if o.OnDemand.PerHour != r.price || r.price > 0 && o.OnDemand.Source != listSource {
			t.Errorf("%s costs %+v, want %v", o.Instance, o.OnDemand, r.price)
		}
		if len(o.Zones) == 0 || len(o.Zones) > 3 {
			t.Errorf("%s in %d zones", o.Instance, len(o.Zones))
		}
		f := r.Facts
		if o.GPU != f.GPU || o.GPUs != f.GPUs || o.GPUShare != f.Share || o.VCPUs != f.VCPUs || o.Memory != f.Memory ||
			o.Arch != f.Arch || f.Remark == "" && (o.GPUMemory != f.GPUMemory || o.EFA != f.EFA || o.NVMe != f.NVMe) {
			t.Errorf("AWS says %+v, the table %+v", o, f)
		}
		if c := classOf(o.Instance, false); !o.Quota.Known || o.Quota.Code != c.code || o.Quota.Name == "" {
			t.Errorf("%s: quota %+v", o.Instance, o.Quota)
		}
	}
}

func TestEachRegionHasItsOwnPrices(t *testing.T) {
	_, m := fake(t, fakeaws.Options{})
	o := ask1(t, m, cloud.Query{Regions: []string{"us-east-1", "eu-central-1"}, Instance: "g5.xlarge"})
	if len(o.Offers) != 2 || o.Offers[0].Region != "us-east-1" || math.Abs(o.Offers[1].OnDemand.PerHour/o.Offers[0].OnDemand.PerHour-1.25) > 1e-6 {
		t.Errorf("%+v", o.Offers)
	}
	for _, o := range o.Offers {
		if o.Spot.PerHour <= 0 || o.SpotSaving() < 0.5 || !strings.HasPrefix(o.Zones[0].Name, o.Region) || o.Zones[0].ID == "" {
			t.Errorf("%+v", o)
		}
	}
}

func TestARegionThatIsNotOptedInIsNamed(t *testing.T) {
	_, m := fake(t, fakeaws.Options{})
	o := ask1(t, m, cloud.Query{Regions: []string{"us-east-1", "ap-east-1"}, Need: need})
	if o.Live || len(o.Notes) == 0 || !strings.Contains(o.Notes[0], "ap-east-1") || o.Offers[0].Region != "us-east-1" {
		t.Errorf("%+v", o)
	}
}

func TestAQuotaThatLeavesNoRoomComesLastAndIsNotHidden(t *testing.T) {
	s, m := fake(t, fakeaws.Options{})
	for _, c := range classes {
		s.SetQuota("us-east-1", c.code, 96)
	}
	four := cloud.Need{GPU: []string{"L4", "T4"}, GPUs: 4}
	first := ask1(t, m, cloud.Query{Need: four, Count: 2}).Offers
	if !slices.Equal(names(first[:2]), []string{"g4dn.12xlarge", "g6.12xlarge"}) || first[0].Quota.Left != 2 || len(first[0].Notes) != 0 {
		t.Errorf("%v, %+v", names(first), first[0])
	}
	if third := first[2]; len(third.Notes) == 0 || !strings.Contains(third.Notes[0], "has 0 of 96 vCPUs in use: room for") {
		t.Errorf("%s: %q", third.Instance, third.Notes)
	}
	s.SetQuota("us-east-1", onDemandG.code, 0)
	none := ask1(t, m, cloud.Query{Need: four, Fresh: true}).Offers
	if len(none) != len(first) {
		t.Errorf("%d of %d are shown", len(none), len(first))
	}
	for _, o := range none {
		if want := `the quota "Running On-Demand G and VT instances" (L-DB2E81BA) is 0 vCPUs in us-east-1`; o.Notes[0] != want {
			t.Errorf("%s: %q", o.Instance, o.Notes)
		}
	}
	p, err := m.Choose(context.Background(), cloud.Spec{Need: cloud.Need{GPUs: 4}})
	if err != nil || p[0].Instance != "p3.8xlarge" && !strings.HasPrefix(p[0].Instance, "p") {
		t.Errorf("with no quota for G, the first choice is %v, %v", names(p), err)
	}
}

func TestWhatRunsIsTakenOffTheQuota(t *testing.T) {
	s, m := fake(t, fakeaws.Options{})
	s.SetQuota("us-east-1", onDemandStandard.code, 8)
	left := func() cloud.Quota {
		o, err := m.Offers(context.Background(), cloud.Query{Instance: "t3.micro", Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		return o.Offers[0].Quota
	}
	if q := left(); q.Used != 0 || q.Left != 4 {
		t.Errorf("%+v", q)
	}
	client, ctx := m.api.EC2("us-east-1"), context.Background()
	images, err := client.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}}})
	if err != nil || len(images.Images) == 0 {
		t.Fatalf("%v, %v", images, err)
	}
	two, err := client.RunInstances(ctx, &ec2.RunInstancesInput{ImageId: images.Images[0].ImageId, InstanceType: "t3.micro", MinCount: aws.Int32(2), MaxCount: aws.Int32(2)})
	if err != nil {
		t.Fatal(err)
	}
	if q := left(); q.Used != 4 || q.Left != 2 {
		t.Errorf("%+v", q)
	}
	if _, err := client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{aws.ToString(two.Instances[0].InstanceId)}}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if left().Used == 2 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("a terminated machine still counts: %+v", left())
}

func TestASpotNeedIsHeldAgainstSpotPrices(t *testing.T) {
	_, m := fake(t, fakeaws.Options{})
	cheap := cloud.Need{GPU: []string{"A10G"}, GPUs: 4, MaxPrice: 2.5}
	if _, err := m.Offers(context.Background(), cloud.Query{Need: cheap}); err == nil {
		t.Error("four A10G cost more than 2.50 on demand")
	}
	o := ask1(t, m, cloud.Query{Need: cheap, Spot: true}).Offers
	if len(o) == 0 || o[0].Instance != "g5.12xlarge" || o[0].Spot.PerHour > 2.5 || o[0].PerGPUHour(true) > 0.7 {
		t.Errorf("%+v", o)
	}
	zones := o[0].Zones
	if !slices.IsSortedFunc(zones, func(a, b cloud.Zone) int { return int(1000 * (a.Spot - b.Spot)) }) {
		t.Errorf("the cheapest zone is the first: %+v", zones)
	}
}

func TestAMachineWithoutAGPU(t *testing.T) {
	_, m := fake(t, fakeaws.Options{})
	o, err := m.Lookup(context.Background(), "us-east-1", "t3.micro")
	if err != nil || o.VCPUs != 2 || o.GPUs != 0 || o.OnDemand.PerHour != 0.0104 || o.Quota.Code != "L-1216C47A" || len(o.Zones) == 0 {
		t.Errorf("%+v, %v", o, err)
	}
	f, err := m.Facts(context.Background(), "us-east-1", "t3.micro")
	if err != nil || slices.Contains(f.Placement, "cluster") {
		t.Errorf("%+v, %v", f, err)
	}
	all := ask1(t, m, cloud.Query{CPU: true})
	if len(all.Offers) != 73 || all.Offers[0].Instance != "t3.micro" {
		t.Errorf("%d types, the first is %s", len(all.Offers), all.Offers[0].Instance)
	}
	chosen, err := m.Choose(context.Background(), cloud.Spec{Instance: "t3.micro", Regions: []string{"us-west-2", "us-east-1"}})
	if err != nil || len(chosen) != 2 || chosen[0].Region != "us-west-2" {
		t.Errorf("%+v, %v", chosen, err)
	}
}

func TestThrottlingIsWaitedOut(t *testing.T) {
	s, m := fake(t, fakeaws.Options{})
	for _, action := range []string{"DescribeInstanceTypes", "GetServiceQuota", "GetProducts"} {
		s.Fault(fakeaws.Fault{Action: action, Times: 2, Do: fakeaws.Throttle})
	}
	s.Fault(fakeaws.Fault{Action: "DescribeSpotPriceHistory", Times: 1, Do: fakeaws.Truncate})
	if o := ask1(t, m, cloud.Query{}); !o.Live || len(o.Notes) != 0 {
		t.Errorf("notes %q", o.Notes)
	}
}

func TestARegionThatHangsDoesNotHoldUpTheOthersForLong(t *testing.T) {
	_, m := fake(t, fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1"}, {Name: "us-west-2", Hangs: true}}})
	m.wait.first = 6 * time.Second // the other one answers by then, however busy the machine is
	began := time.Now()
	o := ask1(t, m, cloud.Query{Regions: []string{"us-west-2", "us-east-1"}, Need: need})
	if took := time.Since(began); took > 2*m.wait.first {
		t.Errorf("it took %v", took)
	}
	if len(o.Notes) != 2 || !strings.Contains(o.Notes[0], "us-west-2") || !strings.Contains(o.Notes[0], "did not answer") || o.Offers[0].Region != "us-east-1" {
		t.Errorf("notes %q", o.Notes)
	}
}

func TestManyMayAskAtOnce(t *testing.T) {
	_, m := fake(t, fakeaws.Options{})
	m.wait = patience{first: time.Minute, fresher: time.Minute} // how long they take is the machine's matter
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if o, err := m.Offers(context.Background(), cloud.Query{Need: need, Fresh: true}); err != nil || !o.Live || len(o.Notes) != 0 {
				t.Errorf("%v, %q", err, o.Notes)
			}
		})
	}
	wg.Wait()
	if o := ask1(t, m, cloud.Query{Need: need}); !o.Live || len(o.Offers) != 2 {
		t.Errorf("%+v", o)
	}
}

func TestTheFakesDiskPrice(t *testing.T) {
	_, m := fake(t, fakeaws.Options{})
	if p := m.DiskPrice(context.Background(), "us-east-1"); math.Abs(p.PerHour*hoursPerMonth-0.08) > 1e-9 {
		t.Errorf("%+v", p)
	}
}
