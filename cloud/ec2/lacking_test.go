package ec2

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// What an endpoint carries out although it was asked for a dry run is taken back
// at once, and no machine is started by one.
func TestAPlanLeavesNothingWhereDryRunsAreCarriedOut(t *testing.T) {
	makers := []string{"ImportKeyPair", "CreatePlacementGroup", "CreateSecurityGroup"}
	for name, carriedOut := range map[string][]string{
		"all":                   append([]string{"DescribeRegions", "RunInstances"}, makers...),
		"what makes something":  append([]string{"RunInstances"}, makers...),
		"placement groups only": {"CreatePlacementGroup", "RunInstances"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fakeaws.Options{Lacks: fakeaws.Lacks{DryRuns: carriedOut}})
			p := r.provider()
			f := findingOf(t, p.Check(t.Context(), r.spec), "permissions")
			if !f.OK || !strings.Contains(f.Text, "does not know dry runs") {
				t.Errorf("%+v", f)
			}
			if left := r.aws.Left(); len(left) > 0 || r.aws.Launched() > 0 {
				t.Errorf("left: %v; %d machines", left, r.aws.Launched())
			}
			if len(r.calls("RunInstances")) > 0 {
				t.Error("a launch was tried")
			}
			r.up()
			r.down()
		})
	}
}

// findingOf is the finding of a check about one thing.
func findingOf(t *testing.T, p cloud.Preflight, what string) cloud.Finding {
	t.Helper()
	for _, f := range p.Findings {
		if f.What == what {
			return f
		}
	}
	t.Fatalf("nothing is said of %q: %+v", what, p.Findings)
	return cloud.Finding{}
}

func TestWhereTheClientTokenIsNoFilterALaunchIsFoundByItsTag(t *testing.T) {
	for name, lacks := range map[string]fakeaws.Lacks{"refused": {TokenFilter: true}, "silent": {TokenFilterSilent: true}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fakeaws.Options{Lacks: lacks})
			r.aws.Fault(fakeaws.Fault{Action: "RunInstances", Do: fakeaws.LoseReply, Times: 1})
			r.aws.Fault(fakeaws.Fault{Action: "RunInstances", Do: fakeaws.Refuse, Code: "InsufficientInstanceCapacity", Times: 1})
			if c := r.up(); len(c.Nodes) != 2 || r.aws.Launched() != 2 {
				t.Errorf("%d nodes of %d machines", len(c.Nodes), r.aws.Launched())
			}
			looks := r.calls("DescribeInstances")
			for i := 1; i < len(looks); i++ {
				if a, b := looks[i-1].Params.Get("Filter.1.Name"), looks[i].Params.Get("Filter.1.Name"); a == "client-token" && b == a {
					t.Error("what was refused was asked again")
				}
			}
			r.down()
		})
	}
}

func TestAKeyPairThatIsNotDeletedByItsIDIsByItsName(t *testing.T) {
	r := newRig(t, fakeaws.Options{Lacks: fakeaws.Lacks{KeysByID: true}})
	r.up()
	if receipt := r.down(); !receipt.Proven() {
		t.Errorf("%+v", receipt)
	}
}

func TestAKeyPairThatKeepsNoTagsIsTheLifesByTheIDThatAWSGave(t *testing.T) {
	r := newRig(t, fakeaws.Options{Lacks: fakeaws.Lacks{KeyTags: true}})
	r.up()
	if receipt := r.down(); !receipt.Proven() || len(r.aws.Left()) > 0 {
		t.Errorf("left %v: %+v", r.aws.Left(), receipt)
	}
}

// A machine that has ended is listed for an hour: who takes the cluster down again
// meanwhile is shown it once, and pays for it once.
func TestASecondDownCountsNothingTwice(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	r.up()
	r.aws.Advance(2 * time.Hour)
	r.aws.Fault(fakeaws.Fault{Action: "DeleteSecurityGroup", Do: fakeaws.Refuse, Code: "UnauthorizedOperation", Times: 1})
	first, err := r.provider().Down(t.Context(), r.life, r.say)
	if err == nil || first.Proven() {
		t.Fatalf("%v %+v", err, first)
	}
	second := r.down()
	seen := map[string]int{}
	for _, res := range second.Resources {
		if seen[res.Kind+res.ID]++; res.Kind == kindInstance && strings.Count(res.Proof, "seen terminated") != 1 {
			t.Errorf("the proof of %s is %q", res.ID, res.Proof)
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is in the receipt %d times", id, n)
		}
	}
	if second.Cost < first.Cost*0.99 || second.Cost > first.Cost*1.01 {
		t.Errorf("it costs %.4f, and then %.4f", first.Cost, second.Cost)
	}
}

// A cluster that never asked for a placement group is proven gone also where
// none can be listed.
func TestWhatWasNeverIntendedNeedNotBeSeen(t *testing.T) {
	r := newRig(t, fakeaws.Options{Lacks: fakeaws.Lacks{Unserved: []string{"DescribePlacementGroups"}}})
	r.spec.Count = 1
	r.up()
	r.down()
}

// What an endpoint does not serve is asked for once, and nobody waits for it.
func TestWhatAnEndpointDoesNotServeIsAskedForOnce(t *testing.T) {
	r := newRig(t, fakeaws.Options{Lacks: fakeaws.Lacks{Unserved: []string{"GetServiceQuota", "GetProducts"}}})
	p := r.provider()
	f := findingOf(t, p.Check(t.Context(), r.spec), "quota")
	if !f.OK || !strings.Contains(f.Text, "does not serve GetServiceQuota") {
		t.Errorf("%+v", f)
	}
	asked := map[string]int{}
	for _, c := range append(r.calls("GetServiceQuota"), r.calls("GetProducts")...) {
		asked[c.Action+" "+c.Params.Encode()]++
	}
	for what, n := range asked {
		if n != 1 {
			t.Errorf("%s: %d times", what, n)
		}
	}
	if len(asked) < 3 {
		t.Errorf("too little was asked for: %v", asked)
	}
}

func TestANeedIsMetWhereTypesCanNotBeAskedForByPattern(t *testing.T) {
	r := newRig(t, fakeaws.Options{Lacks: fakeaws.Lacks{Wildcards: true}})
	r.spec.Instance, r.spec.Need = "", cloud.Need{GPU: []string{"A10G"}, GPUs: 1}
	p := r.provider()
	pre := p.Check(t.Context(), r.spec)
	for _, what := range []string{"machine", "zones"} {
		if f := findingOf(t, pre, what); !f.OK || strings.Contains(f.Text, "no zone") {
			t.Errorf("%+v", f)
		}
	}
	if f := findingOf(t, pre, "zones"); !strings.Contains(f.Text, "us-east-1a") {
		t.Errorf("%+v", f)
	}
}

// An SDK names the session of a role by the time: what one dlwb has made belongs
// to the next one too.
func TestWhatARoleHasMadeIsItsOwnInTheNextSession(t *testing.T) {
	const role = "arn:aws:sts::123456789012:assumed-role/researcher/"
	r := newRig(t, fakeaws.Options{ARN: role + "aws-go-sdk-1763985600000000001"})
	r.up()
	r.aws.SetARN(role + "aws-go-sdk-1763989999000000002")
	p := r.provider() // the ledger is lost
	hunt, err := p.Orphans(t.Context(), func(string) bool { return false }, r.say)
	if err != nil || len(hunt.Orphans) != 1 || hunt.Orphans[0].Foreign {
		t.Fatalf("%v %+v", err, hunt.Orphans)
	}
	receipt, err := p.Collect(t.Context(), hunt.Orphans[0], r.say)
	if err != nil || !receipt.Proven() || len(r.aws.Left()) > 0 {
		t.Errorf("%v %+v, left %v", err, receipt, r.aws.Left())
	}
	r.aws.SetARN("arn:aws:sts::123456789012:assumed-role/another/aws-go-sdk-1763985600000000001")
	r.life.ID, r.ledger.entries = "ba9876543210", nil
	r.up()
	r.aws.SetARN(role + "aws-go-sdk-1763985600000000001")
	hunt, err = r.provider().Orphans(t.Context(), func(string) bool { return false }, r.say)
	if err != nil || len(hunt.Orphans) != 1 || !hunt.Orphans[0].Foreign {
		t.Errorf("another role's: %v %+v", err, hunt.Orphans)
	}
	r.aws.SetARN("arn:aws:sts::123456789012:assumed-role/another/x")
	r.down()
}

// An endpoint without placement groups has machines all the same, is waited for by
// nobody, and what was intended there is proven to be nothing.
func TestWherePlacementGroupsAreNotServedMachinesComeWithoutOne(t *testing.T) {
	r := newRig(t, fakeaws.Options{Lacks: fakeaws.Lacks{Unserved: []string{"CreatePlacementGroup", "DescribePlacementGroups"}}})
	r.settle = 20 * time.Second // what is not served is not asked for as long
	if f := findingOf(t, r.provider().Check(t.Context(), r.spec), "permissions"); !f.OK || f.State == cloud.NotChecked {
		t.Errorf("%+v", f)
	}
	began := time.Now()
	if c := r.up(); len(c.Nodes) != 2 || !r.heard("has no placement groups") {
		t.Errorf("%+v", c)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	hunt, err := r.provider().Orphans(t.Context(), func(string) bool { return false }, r.say)
	if err != nil || len(hunt.Blind) > 0 || len(hunt.Orphans) != 1 {
		t.Errorf("%v %+v", err, hunt)
	}
	r.settle = time.Second
	r.down()
}

// A group that was made is not forgotten because it can't be listed any more.
func TestAPlacementGroupThatWasMadeIsNotForgottenWhereItIsNotListed(t *testing.T) {
	r := newRig(t, fakeaws.Options{Lacks: fakeaws.Lacks{Unserved: []string{"DescribePlacementGroups"}}})
	r.up()
	receipt, err := r.provider().Down(t.Context(), r.life, r.say)
	if err == nil || receipt.Proven() {
		t.Errorf("%v %+v", err, receipt)
	}
}

func TestAnInstanceProfileMayBeNamedByItsARN(t *testing.T) {
	for word, byARN := range map[string]bool{"dlwb-results": false, "arn:aws:iam::123456789012:instance-profile/team/dlwb": true,
		"arn:aws-cn:iam::123456789012:instance-profile/dlwb": true, "arn:aws-us-gov:iam::123456789012:instance-profile/dlwb": true} {
		in := launch{Profile: word}.input("token", nil).IamInstanceProfile
		if got := in.Arn; byARN != (got != nil) || byARN == (in.Name != nil) {
			t.Errorf("%s: %+v", word, in)
		}
	}
}
