package ec2

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// ledRig is a rig whose machines get a head.
func ledRig(t *testing.T, o fakeaws.Options) *rig {
	r := newRig(t, o)
	r.spec.Own = &options.Machines{Head: "m5.xlarge"}
	return r
}

// kinds are the types of all launches that AWS took, in order.
func (r *rig) kinds() (all []string) {
	for _, c := range r.calls("RunInstances") {
		if c.Outcome == "ok" {
			all = append(all, c.Params.Get("MinCount")+" "+c.Params.Get("InstanceType")+" "+c.Params.Get("InstanceMarketOptions.MarketType"))
		}
	}
	return all
}

func TestTheHeadIsMadeBesideTheOthersAndPaidOnDemand(t *testing.T) {
	r := ledRig(t, fakeaws.Options{})
	r.spec.Spot = true
	r.aws.SetSpotCapacity("us-east-1", "us-east-1a", "g5.xlarge", 0)
	c := r.up()
	same(t, r.kinds(), []string{"2 g5.xlarge spot", "1 m5.xlarge "})
	calls := r.calls("RunInstances")
	head, others := calls[len(calls)-1].Params, calls[len(calls)-2].Params
	for _, key := range []string{"NetworkInterface.1.SubnetId", "NetworkInterface.1.SecurityGroupId.1", "Placement.AvailabilityZone", "KeyName", "ImageId"} {
		if head.Get(key) == "" || head.Get(key) != others.Get(key) {
			t.Errorf("%s of the head is %q, that of the others %q", key, head.Get(key), others.Get(key))
		}
	}
	if head.Get("Placement.GroupName") != "" || others.Get("Placement.GroupName") == "" {
		t.Error("the head is in the placement group, or the others are not")
	}
	if len(c.Nodes) != 3 || !c.Nodes[0].Head || c.Nodes[0].Instance != "m5.xlarge" || c.Nodes[1].Head || c.Nodes[2].Head || c.Instance != "g5.xlarge" || !c.Spot {
		t.Errorf("the cluster is %+v", c)
	}
	var whats []string
	for _, cost := range c.Costs {
		whats = append(whats, cost.What)
	}
	if text := strings.Join(whats, "; "); !strings.HasPrefix(text, "1 × m5.xlarge for the head, on demand; 2 × g5.xlarge, spot") || !strings.Contains(text, "3 public addresses") {
		t.Errorf("it costs %s", text)
	}
	if again := r.up(); len(r.kinds()) != 2 || again.Nodes[0].ID != c.Nodes[0].ID {
		t.Error("a second up made machines")
	}
	r.spec.Own = &options.Machines{}
	r.spec.Count = 3
	if _, err := r.provider().Up(t.Context(), r.life, r.spec, r.say); err == nil || !strings.Contains(err.Error(), "machines.head_instance says otherwise") {
		t.Error(err)
	}
	nodes := map[string]bool{}
	for _, res := range r.down().Resources {
		if res.Kind == kindInstance {
			nodes[res.Node] = res.Cost >= 0
		}
	}
	if len(nodes) != 3 || !nodes["node0"] {
		t.Errorf("the receipt has %v", nodes)
	}
}

// What is lost comes back as what it was: the head by itself, and the others where
// it is.
func TestWhatIsLostOfAClusterWithAHeadComesBack(t *testing.T) {
	for name, lost := range map[string][]int{"the head": {0}, "one of the others": {2}, "all others": {1, 2}, "all": {0, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			r := ledRig(t, fakeaws.Options{})
			before := r.up()
			for _, n := range lost {
				r.aws.Crash(before.Nodes[n].ID)
			}
			within(t, "the crash is seen", func() bool {
				c, err := r.provider().Up(t.Context(), r.life, r.spec, r.say)
				if err != nil {
					return false
				}
				for n := range before.Nodes {
					gone := false
					for _, l := range lost {
						gone = gone || l == n
					}
					if (c.Nodes[n].ID != before.Nodes[n].ID) != gone {
						return false
					}
				}
				return c.Nodes[0].Head && !c.Nodes[1].Head && !c.Nodes[2].Head && c.Zone == before.Zone
			})
			r.down()
		})
	}
}

func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestAHeadForWhichThereIsNoRoomIsTold(t *testing.T) {
	r := ledRig(t, fakeaws.Options{})
	r.aws.SetCapacity("us-east-1", "", "m5.xlarge", 0)
	if _, err := r.provider().Up(t.Context(), r.life, r.spec, r.say); err == nil || !strings.Contains(err.Error(), "the head can't be had in us-east-1a") || !strings.Contains(err.Error(), "machines.head_instance") {
		t.Error(err)
	}
	r.aws.SetCapacity("us-east-1", "", "m5.xlarge", 1)
	if c := r.up(); len(c.Nodes) != 3 {
		t.Errorf("%d nodes", len(c.Nodes))
	}
	same(t, r.kinds(), []string{"2 g5.xlarge ", "1 m5.xlarge "})
	r.down()
}

func TestAClusterWithAHeadIsStoppedAndStarted(t *testing.T) {
	r := ledRig(t, fakeaws.Options{})
	c := r.up()
	stopped, err := r.provider().Stop(t.Context(), r.life, c, r.say)
	if err != nil || stopped.PricePerHour >= c.PricePerHour {
		t.Fatal(err, stopped)
	}
	started, err := r.provider().Start(t.Context(), r.life, stopped, r.say)
	if err != nil || len(started.Nodes) != 3 || !started.Nodes[0].Head || started.Nodes[0].Addr == "" || started.PricePerHour != c.PricePerHour {
		t.Errorf("%v: %+v", err, started)
	}
	r.down()
}

// The budget ends the machines when all of them have cost so much, and not when the
// others alone have.
func TestTheBudgetCountsTheHead(t *testing.T) {
	u := &up{spec: cloud.Spec{Count: 2, Budget: 10, Own: &options.Machines{Head: "m5.xlarge"}}}
	l := launch{Machine: cloud.Price{PerHour: 2}}
	h := l.lead(cloud.Offer{Instance: "m5.xlarge", OnDemand: cloud.Price{PerHour: 1}})
	got, err := u.terms(l, &h, time.Time{})
	if err != nil || got.budget != 2*time.Hour {
		t.Errorf("%v %v", got.budget, err)
	}
	h.Machine = cloud.Price{}
	if _, err := u.terms(l, &h, time.Time{}); err == nil || !strings.Contains(err.Error(), "the price of m5.xlarge") {
		t.Error(err)
	}
}

// A head that AWS does not start in the others' network is found before those are paid.
func TestAHeadThatCantHaveIPv6AloneIsFoundBeforeTheOthersArePaid(t *testing.T) {
	r := sixRig(t, options.Machines{Subnet: "in", Head: "m4.xlarge"})
	_, err := r.provider().Up(t.Context(), r.life, r.spec, r.say)
	if err == nil || !strings.Contains(err.Error(), "m4.xlarge is none") || !strings.Contains(err.Error(), "the head") || r.aws.Launched() > 0 {
		t.Errorf("%d machines were made: %v", r.aws.Launched(), err)
	}
	r.down()
}

// A head with IPv6 alone leads spot machines, also a single one; what is taken back comes
// again beside it.
func TestAHeadOfIPv6AloneKeepsItsPlaceWhenSpotMachinesAreTaken(t *testing.T) {
	for _, count := range []int{1, 2} {
		t.Run(strconv.Itoa(count), func(t *testing.T) {
			r := sixRig(t, options.Machines{Subnet: "in", Head: "m5.xlarge"})
			r.spec.Spot, r.spec.Count = true, count
			before := r.up()
			if len(before.Nodes) != count+1 || !before.Nodes[0].Head || !strings.HasPrefix(before.Nodes[0].Addr, "[2600:1f18:") {
				t.Fatalf("%+v", before.Nodes)
			}
			head := r.calls("RunInstances")[1].Params
			if head.Get("MetadataOptions.HttpProtocolIpv6") != "enabled" || head.Get("NetworkInterface.1.Ipv6AddressCount") != "1" || head.Get("InstanceMarketOptions.MarketType") != "" {
				t.Errorf("the head was asked for as %v", head)
			}
			for _, n := range before.Nodes[1:] {
				r.aws.Reclaim(n.ID, 0)
			}
			within(t, "other machines come", func() bool {
				c, err := r.provider().Up(t.Context(), r.life, r.spec, r.say)
				return err == nil && c.Nodes[0].ID == before.Nodes[0].ID && c.Nodes[1].ID != before.Nodes[1].ID && c.Nodes[count].ID != before.Nodes[count].ID && c.Nodes[1].Addr != ""
			})
			r.down()
		})
	}
}

// told are a limit of the lease of the machines of all launches that AWS took.
func (r *rig) told(limit string) (all []time.Duration) {
	r.Helper()
	for _, c := range r.calls("RunInstances") {
		if c.Outcome != "ok" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(c.Params.Get("UserData"))
		_, rest, has := strings.Cut(string(text), "\n "+limit+"='")
		if !has {
			_, rest, has = strings.Cut(string(text), "\n"+limit+"=")
		}
		rest, _, _ = strings.Cut(rest, "\n")
		n, numErr := strconv.Atoi(strings.Trim(rest, "'"))
		if err != nil || !has || numErr != nil {
			r.Fatalf("no %s: %v %v", limit, err, numErr)
		}
		all = append(all, time.Duration(n)*time.Second)
	}
	return all
}

// The head answers long before large machines have tested their memory, and nobody makes
// use of it before they answer, too.
func TestTheHeadWaitsForAsLongAsTheOthersBoot(t *testing.T) {
	r := ledRig(t, fakeaws.Options{})
	r.spec.Instance = "p5.48xlarge"
	r.aws.SetQuota("us-east-1", "L-417A185B", 10000)
	r.up()
	if b := r.told("bootstrap"); len(b) != 2 || b[0] != time.Hour || b[1] != b[0] {
		t.Errorf("the machines wait for %v to be made use of", b)
	}
	r.down()
}

// Machines in place of others have what is left of the budget at what they cost
// themselves, and what is made beside them costs, too.
func TestTheBudgetOfMachinesInPlaceOfOthersIsOfAllThatIsPaidThen(t *testing.T) {
	t.Run("on demand in place of spot", func(t *testing.T) {
		r := newRig(t, fakeaws.Options{})
		r.spec.Own, r.spec.Spot, r.spec.Budget = &options.Machines{SpotFallback: true}, true, 20
		before := r.up()
		r.aws.SetSpotCapacity("us-east-1", "", "g5.xlarge", 0)
		r.aws.Reclaim(before.Nodes[1].ID, 0)
		within(t, "another machine comes", func() bool {
			c, err := r.provider().Up(t.Context(), r.life, r.spec, r.say)
			return err == nil && c.Nodes[1].ID != before.Nodes[1].ID
		})
		b := r.told("budget")
		if len(b) != 2 || b[1] > b[0]*3/4 {
			t.Errorf("the budget lasts %v for machines on demand, and lasted %v for spot machines", b[1], b[0])
		}
		r.down()
	})
	t.Run("the head is lost, too", func(t *testing.T) {
		r := ledRig(t, fakeaws.Options{})
		r.spec.Instance, r.spec.Budget = "m5.xlarge", 20
		before := r.up()
		r.aws.Crash(before.Nodes[0].ID)
		r.aws.Crash(before.Nodes[2].ID)
		within(t, "other machines come", func() bool {
			c, err := r.provider().Up(t.Context(), r.life, r.spec, r.say)
			return err == nil && c.Nodes[0].ID != before.Nodes[0].ID && c.Nodes[2].ID != before.Nodes[2].ID
		})
		b := r.told("budget")
		for _, other := range b[1:] {
			if other > b[0] {
				t.Errorf("the budget lasts for %v", b)
			}
		}
		r.down()
	})
}
