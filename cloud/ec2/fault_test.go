package ec2

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// changing are the calls of a life that change something, in the order of Up
// and Down.
var changing = []string{"CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress", "ImportKeyPair",
	"CreatePlacementGroup", "RunInstances", "TerminateInstances", "DeletePlacementGroup", "DeleteSecurityGroup", "DeleteKeyPair"}

func TestEveryCallMayGoWrongOnce(t *testing.T) {
	t.Parallel()
	for _, action := range changing {
		for _, do := range []fakeaws.Effect{fakeaws.FailBefore, fakeaws.LoseReply, fakeaws.Duplicate, fakeaws.Truncate, fakeaws.Throttle, fakeaws.DelayApply} {
			t.Run(action+" "+do.String(), func(t *testing.T) {
				r := newRig(t, fakeaws.Options{})
				r.aws.Fault(fakeaws.Fault{Action: action, Times: 1, Do: do, Delay: 150 * time.Millisecond})
				r.up()
				if n := r.aws.Launched(); n != 2 {
					t.Errorf("%d machines were launched, and 2 asked for", n)
				}
				r.down()
				if n := r.aws.Launched(); n != 2 {
					t.Errorf("%d machines were launched in the end, and 2 asked for", n)
				}
			})
		}
	}
}

func TestALifeWithLagLeavesNothingBehind(t *testing.T) {
	n := 0
	lag := func() time.Duration { n++; return time.Duration(n%7) * 80 * time.Millisecond }
	r := newRig(t, fakeaws.Options{Lag: lag})
	r.up()
	r.down()
}

// dieAt ends a dlwb at a stage of its n-th call; it returns whether there was
// one, and what dlwb is to be given.
func (r *rig) dieAt(n int, stage fakeaws.Stage) (context.Context, func() bool) {
	ctx, cancel := context.WithCancel(r.Context())
	r.Cleanup(cancel)
	r.aws.Fault(fakeaws.Fault{Skip: n, Times: 1, Hook: func(at fakeaws.Stage, _ fakeaws.Call) {
		if at == stage {
			cancel()
			time.Sleep(10 * time.Millisecond) // it is dead before the call goes on
		}
	}})
	return ctx, func() bool { r.aws.Heal(); return ctx.Err() != nil }
}

func TestAnUpThatDiesAnywhereIsFinishedOrTakenDownWhole(t *testing.T) {
	t.Parallel()
	for _, stage := range []fakeaws.Stage{fakeaws.Before, fakeaws.Applied, fakeaws.Replied} {
		for first := range 4 {
			t.Run(fmt.Sprint(stage, first), func(t *testing.T) {
				t.Parallel()
				crashes := 0
				for n := first; crashAt(t, n, stage); n += 4 {
					crashes++
				}
				if t.Logf("%d crashes", crashes); crashes < 5 {
					t.Error("these are too few")
				}
			})
		}
	}
}

// crashAt lets an Up die at its n-th call; then there is another Up, or none,
// and Down. It returns false when Up has fewer calls.
func crashAt(t *testing.T, n int, stage fakeaws.Stage) bool {
	r := rigOf(t, fakeaws.Options{})
	ctx, died := r.dieAt(n, stage)
	_, _ = r.provider().Up(ctx, r.life, r.spec, r.say)
	if !died() {
		return false
	}
	if n%8 < 4 {
		if c := r.up(); len(c.Nodes) != 2 || r.aws.Launched() != 2 {
			t.Errorf("after a crash at call %d: %d nodes, %d machines", n, len(c.Nodes), r.aws.Launched())
		}
	}
	r.down()
	r.aws.Close()
	return true
}

func TestDownSaysNothingIsGoneThatIsNot(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	c := r.up()
	r.aws.Fault(fakeaws.Fault{Action: "TerminateInstances", Do: fakeaws.Ignore})
	receipt, err := r.provider().Down(t.Context(), r.life, r.say)
	if err == nil || receipt.Proven() {
		t.Fatalf("down says that it is done: %+v", receipt)
	}
	for _, n := range c.Nodes {
		want := "aws ec2 terminate-instances --region us-east-1 --instance-ids " + n.ID
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if r.ledger.open() == 0 {
		t.Error("the ledger was closed")
	}
	r.aws.Heal()
	r.down()
}

func TestDownIsPatientWithGroupsThatAreStillInUse(t *testing.T) {
	r := newRig(t, fakeaws.Options{Release: time.Hour})
	r.up()
	refused := 0
	r.aws.Fault(fakeaws.Fault{Action: "DeleteSecurityGroup", Hook: func(at fakeaws.Stage, _ fakeaws.Call) {
		if at == fakeaws.Applied { // before the next one can be asked
			if refused++; refused == 3 {
				r.aws.Advance(2 * time.Hour)
			}
		}
	}})
	r.down()
	if calls := r.calls("DeleteSecurityGroup"); len(calls) != 4 || calls[2].Outcome != "DependencyViolation" {
		t.Errorf("the calls were %+v", calls)
	}
}

func TestDownIsPatientWithMachinesThatAreBeingEnded(t *testing.T) {
	r := newRig(t, fakeaws.Options{ShuttingDown: 3 * time.Second})
	r.settle = 200 * time.Millisecond
	r.up()
	if receipt := r.down(); !receipt.Proven() {
		t.Errorf("%+v", receipt)
	}
}

func TestWhatCannotBeSeenIsNotSaidToBeGone(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.up()
	r.aws.Fault(fakeaws.Fault{Action: "DescribeVolumes", Do: fakeaws.Refuse})
	receipt, err := r.provider().Down(t.Context(), r.life, r.say)
	if err == nil || receipt.Proven() {
		t.Fatal("down says that all is gone, and could not see the disks")
	}
	seen := map[cloud.State]int{}
	for _, res := range receipt.Resources {
		if res.Kind == kindVolume {
			seen[res.State]++
		}
		if res.Kind == kindInstance && res.State != cloud.Gone {
			t.Errorf("%+v", res)
		}
	}
	if seen[cloud.Unknown] == 0 || seen[cloud.Gone] > 0 {
		t.Errorf("of the disks the receipt says %v", seen)
	}
	r.aws.Heal()
	r.down()
}

func TestDownWithoutAPermissionSaysSo(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.up()
	r.aws.Fault(fakeaws.Fault{Action: "TerminateInstances", Do: fakeaws.Refuse})
	receipt, err := r.provider().Down(t.Context(), r.life, r.say)
	if err == nil || receipt.Proven() || !strings.Contains(err.Error(), "no permission for ec2:TerminateInstances") {
		t.Fatalf("%v\n%+v", err, receipt)
	}
	r.aws.Heal()
	r.down()
}

func TestDownWithoutAWSClaimsNothing(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.up()
	r.settle = 50 * time.Millisecond
	r.env = append(r.env, "AWS_ENDPOINT_URL=http://127.0.0.1:1")
	receipt, err := r.provider().Down(t.Context(), r.life, r.say)
	if err == nil || receipt.Proven() || r.ledger.open() != 4 {
		t.Fatalf("%d open entries, %v\n%+v", r.ledger.open(), err, receipt)
	}
	for _, res := range receipt.Resources {
		if res.State != cloud.Unknown {
			t.Errorf("%+v", res)
		}
	}
	r.env, r.settle = r.aws.Env(), time.Second
	r.down()
}

func TestADownThatIsInterruptedClaimsNothing(t *testing.T) {
	r := newRig(t, fakeaws.Options{ShuttingDown: time.Hour})
	r.up()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.aws.Fault(fakeaws.Fault{Action: "TerminateInstances", Hook: func(at fakeaws.Stage, _ fakeaws.Call) {
		if at == fakeaws.Replied {
			cancel()
		}
	}})
	receipt, err := r.provider().Down(ctx, r.life, r.say)
	if err == nil || receipt.Proven() || r.ledger.open() != 4 {
		t.Fatalf("%d open entries, %v\n%+v", r.ledger.open(), err, receipt)
	}
	for _, res := range receipt.Resources {
		if res.State == cloud.Gone {
			t.Errorf("%+v", res)
		}
	}
	r.aws.Advance(2 * time.Hour)
	r.down()
}

func TestALedgerThatTakesNothingKeepsEverythingFromBeingMade(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.ledger.full = true
	if _, err := r.provider().Up(t.Context(), r.life, r.spec, r.say); err == nil || !strings.Contains(err.Error(), errFull.Error()) {
		t.Error("up says", err)
	}
	for _, c := range r.aws.Calls() {
		if !c.Reads() {
			t.Errorf("%s was called", c.Action)
		}
	}
}

func TestNothingWasBegunNothingIsAsked(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	receipt, err := r.provider().Down(t.Context(), r.life, r.say)
	if err != nil || !receipt.Proven() || len(r.aws.Calls()) > 0 {
		t.Error(fmt.Sprint(err, receipt, r.aws.Calls()))
	}
}

// Some emulators of EC2 don't know the filter for the client token; every
// machine carries it as a tag too.
func TestWithoutTheTokensFilterTheTagIsAskedFor(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	byToken := func(v url.Values) bool {
		for key, values := range v {
			if strings.HasPrefix(key, "Filter.") && strings.HasSuffix(key, ".Name") && values[0] == "client-token" {
				return true
			}
		}
		return false
	}
	r.aws.Fault(fakeaws.Fault{Action: "DescribeInstances", Match: byToken, Do: fakeaws.Refuse, Code: "InvalidParameterValue"})
	r.aws.Fault(fakeaws.Fault{Action: "RunInstances", Match: func(v url.Values) bool { return v.Get("DryRun") == "" }, Times: 1, Do: fakeaws.LoseReply})
	r.up()
	r.down()
	if n := r.aws.Launched(); n != 2 {
		t.Errorf("%d machines were launched, and 2 asked for", n)
	}
}

func TestWhatAnEndpointHasNeverHeardOfIsNotThere(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	for _, action := range []string{"DescribeSpotInstanceRequests", "DescribeAddresses"} {
		r.aws.Fault(fakeaws.Fault{Action: action, Do: fakeaws.Refuse, Code: "InvalidAction"})
	}
	r.up()
	r.down()
	r.aws.Heal()
	r.aws.Fault(fakeaws.Fault{Action: "DescribeAddresses", Do: fakeaws.Refuse, Code: "UnauthorizedOperation"})
	r.life.ID = "ba9876543210"
	r.up()
	if receipt, err := r.provider().Down(r.Context(), r.life, r.say); err == nil || receipt.Proven() {
		t.Errorf("what may not be looked at was called gone: %v", receipt)
	}
}
