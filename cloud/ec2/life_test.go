package ec2

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
)

func TestALifeLeavesNothingBehindButAReceipt(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	c := r.up()
	if len(c.Nodes) != 2 || c.Nodes[0].ID == c.Nodes[1].ID || c.Nodes[1].Index != 1 {
		t.Fatalf("%+v", c.Nodes)
	}
	again := r.up()
	if again.Nodes[0].ID != c.Nodes[0].ID || r.aws.Launched() != 2 {
		t.Errorf("a second up has made something: %+v", again)
	}
	r.aws.Advance(2 * time.Hour)
	receipt := r.down()
	found := map[string]int{}
	for _, res := range receipt.Resources {
		found[res.Kind]++
		if res.Proof == "" {
			t.Errorf("no proof: %+v", res)
		}
		if res.Kind != kindInstance {
			continue
		}
		if !strings.HasPrefix(res.Proof, "seen terminated at ") || !strings.Contains(res.Proof, "Client.UserInitiatedShutdown") {
			t.Errorf("the proof is %q", res.Proof)
		}
		if want := c.PricePerHour; math.Abs(res.Cost-want) > want/100 || !strings.HasPrefix(res.Node, "node") {
			t.Errorf("two hours of one node of two cost %.4f: %+v", want, res)
		}
	}
	for kind, n := range map[string]int{kindInstance: 2, kindVolume: 2, kindInterface: 2, kindGroup: 1, kindKey: 1, kindPlacement: 1} {
		if found[kind] != n {
			t.Errorf("%d of %s, not %d", found[kind], kind, n)
		}
	}
	after, err := r.provider().Down(t.Context(), r.life, r.say)
	if err != nil || !after.Proven() || len(after.Resources) != 5 {
		t.Errorf("a second down: %v %+v", err, after)
	}
}

func TestTheTimeThatMachinesAreStoppedCostsTheirDisksOnly(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.spec.Count = 1
	c := r.up()
	r.aws.Advance(time.Hour)
	stopped, err := r.provider().Stop(t.Context(), r.life, c, r.say)
	if err != nil {
		t.Fatal(err)
	}
	r.aws.Advance(10 * time.Hour)
	if _, err := r.provider().Start(t.Context(), r.life, stopped, r.say); err != nil {
		t.Fatal(err)
	}
	r.aws.Advance(time.Hour)
	receipt := r.down()
	want := 2*c.PricePerHour + 10*stopped.PricePerHour
	if math.Abs(receipt.Cost-want) > want/50 {
		t.Errorf("the receipt says $%.4f, and two hours of %.4f and ten of %.4f are $%.4f", receipt.Cost, c.PricePerHour, stopped.PricePerHour, want)
	}
}
