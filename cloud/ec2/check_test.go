package ec2_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// aws starts a fake and leads everything to it.
func aws(t *testing.T, o fakeaws.Options) *fakeaws.Server {
	t.Helper()
	s := fakeaws.New(o)
	t.Cleanup(s.Close)
	for _, v := range s.Env() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DLWB_SOURCE_ADDRESS", "")
	return s
}

// two is a spec that can be launched.
func two() cloud.Spec {
	return cloud.Spec{Name: "charlm", Count: 2, Regions: []string{"us-east-1"}, Instance: "g5.xlarge",
		Lifetime: 24 * time.Hour, Budget: 20, Idle: time.Hour}
}

func check(t *testing.T, spec cloud.Spec) cloud.Preflight {
	t.Helper()
	return ec2.New(ec2.Options{Dir: t.TempDir()}).Check(t.Context(), spec)
}

// finding is the one about something; it has to be there.
func finding(t *testing.T, p cloud.Preflight, what string) cloud.Finding {
	t.Helper()
	for _, f := range p.Findings {
		if f.What == what {
			return f
		}
	}
	t.Fatalf("nothing is said of %q: %+v", what, p.Findings)
	return cloud.Finding{}
}

// says holds a finding against the words that it must have.
func says(t *testing.T, f cloud.Finding, ok bool, words ...string) {
	t.Helper()
	if f.OK != ok {
		t.Errorf("%s: ok is %v: %s", f.What, f.OK, f.Text)
	}
	if bad := strings.Contains(f.Text, "not checked") || strings.Contains(f.Text, "is 0 vCPUs") && f.What != "machine"; bad && f.Mark() == "✓" {
		t.Errorf("%s has the mark of what is fine: %s", f.What, f.Text)
	}
	if !f.OK && f.Next == "" {
		t.Errorf("%s says nothing of what to do: %s", f.What, f.Text)
	}
	for _, w := range words {
		if !strings.Contains(f.Text+"\n"+f.Next, w) {
			t.Errorf("%s does not say %q: %s\n  next: %s", f.What, w, f.Text, f.Next)
		}
	}
}

func TestCheckFindsEverythingThatALaunchNeeds(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	p := check(t, two())
	for _, f := range p.Findings {
		if !f.OK {
			t.Errorf("%s: %s", f.What, f.Text)
		}
		t.Logf("%s: %s", f.What, f.Text)
	}
	says(t, finding(t, p, "credentials"), true, s.ARN(), s.Account(), "environment", s.URL)
	says(t, finding(t, p, "region"), true, "us-east-1")
	says(t, finding(t, p, "machine"), true, "2 × g5.xlarge", "A10G")
	says(t, finding(t, p, "zones"), true, "us-east-1a")
	says(t, finding(t, p, "quota"), true, "8 vCPUs are needed", "L-DB2E81BA")
	says(t, finding(t, p, "image"), true, "ami-", "login ubuntu", "GiB")
	says(t, finding(t, p, "network"), true, "vpc-", "us-east-1a")
	says(t, finding(t, p, "permissions"), true, "RunInstances", "CreateSecurityGroup", "CreatePlacementGroup", "ImportKeyPair")
	says(t, finding(t, p, "address"), true, "127.0.0.1/32")
	says(t, finding(t, p, "price"), true, "$1.01/h")
	says(t, finding(t, p, "limits"), true, "$20.00 at most", "limits.budget")
	if p.Offer == nil || p.Offer.Instance != "g5.xlarge" {
		t.Errorf("the offer is %+v", p.Offer)
	}
	if p.PricePerHour < 2.012 || p.PricePerHour > 2.1 || p.MostPerHour < p.PricePerHour || len(p.Costs) != 3 {
		t.Errorf("$%v an hour, at most $%v, of %+v", p.PricePerHour, p.MostPerHour, p.Costs)
	}
}

// A check makes and changes nothing.
func TestCheckChangesNothing(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	spec := two()
	spec.Spot, spec.Own = true, &options.Machines{SpotFallback: true}
	check(t, spec)
	dry := map[string]bool{}
	for _, c := range s.Calls() {
		if !c.Reads() {
			t.Errorf("%s %s is no question", c.Service, c.Action)
		}
		if c.DryRun {
			dry[c.Action] = true
		}
	}
	for _, action := range []string{"RunInstances", "CreateSecurityGroup", "CreatePlacementGroup", "ImportKeyPair"} {
		if !dry[action] {
			t.Errorf("%s was not tried", action)
		}
	}
	if left := s.Left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAQuotaOfZeroOneTooSmallAndOneUnknownAreThreeSentences(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	s.SetQuota("us-east-1", "L-DB2E81BA", 0)
	zero := finding(t, check(t, two()), "quota")
	says(t, zero, false, "is 0 vCPUs", "8 are needed",
		"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-DB2E81BA --desired-value 8 --region us-east-1")
	s.SetQuota("us-east-1", "L-DB2E81BA", 4)
	says(t, finding(t, check(t, two()), "quota"), false, "too small", "4 of 4 are left", "--desired-value 8")
	spec := two()
	spec.Have = 2
	says(t, finding(t, check(t, spec), "quota"), true, "already")
	for _, action := range []string{"GetServiceQuota", "GetAWSDefaultServiceQuota", "ListServiceQuotas", "ListAWSDefaultServiceQuotas"} {
		s.Fault(fakeaws.Fault{Action: action, Do: fakeaws.Refuse, Code: "AccessDeniedException", Status: 400})
	}
	says(t, finding(t, check(t, two()), "quota"), true, "not checked", "8 vCPUs are needed")
}

func TestAPermissionThatIsMissingIsNamedWithThePolicyThatGivesIt(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	for _, action := range []string{"RunInstances", "ImportKeyPair"} {
		s.Fault(fakeaws.Fault{Action: action, Do: fakeaws.Refuse, Code: "UnauthorizedOperation", Status: 403})
	}
	f := finding(t, check(t, two()), "permissions")
	says(t, f, false, "ec2:ImportKeyPair", "ec2:RunInstances", "aws iam put-user-policy --user-name dlwb",
		`"Action":["ec2:ImportKeyPair","ec2:RunInstances"]`)
	if strings.Contains(f.Text, "CreateSecurityGroup") {
		t.Errorf("more is said to be missing than is: %s", f.Text)
	}
}

// Doubt whether something is allowed keeps nobody from trying.
func TestADryRunWithoutAnAnswerStandsInNobodysWay(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	s.Fault(fakeaws.Fault{Action: "CreateSecurityGroup", Do: fakeaws.Refuse, Code: "InternalError", Status: 500})
	says(t, finding(t, check(t, two()), "permissions"), true, "not checked")
}

func TestARequestThatAWSDoesNotTakeIsFoundBeforeItIsPaid(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	s.Fault(fakeaws.Fault{Action: "RunInstances", Do: fakeaws.Refuse, Code: "InvalidParameterValue", Status: 400})
	says(t, finding(t, check(t, two()), "launch"), false, "AWS does not take a value")
}

func TestARegionThatIsNotEnabledIsNamed(t *testing.T) {
	aws(t, fakeaws.Options{})
	spec := two()
	spec.Regions = []string{"us-east-1", "ap-east-1"}
	says(t, finding(t, check(t, spec), "region"), false, "ap-east-1", "aws account enable-region --region-name ap-east-1")
	spec.Regions = []string{"us-east-1", "mars-north-1"}
	says(t, finding(t, check(t, spec), "region"), false, "mars-north-1 is no region")
}

func TestADiskThatIsSmallerThanItsImageIsFound(t *testing.T) {
	aws(t, fakeaws.Options{})
	spec := two()
	spec.Disk = 1e9
	says(t, finding(t, check(t, spec), "image"), false, "too small", "machines.disk")
	spec = two()
	spec.Image = "ami-00000000000000000"
	says(t, finding(t, check(t, spec), "image"), false, "ami-00000000000000000")
	spec.Image = "tensorflow"
	says(t, finding(t, check(t, spec), "image"), false, "tensorflow", "pytorch")
}

func TestASubnetThatIsNotThereIsFound(t *testing.T) {
	aws(t, fakeaws.Options{})
	spec := two()
	spec.Own = &options.Machines{Subnet: "subnet-00000000000000000"}
	says(t, finding(t, check(t, spec), "network"), false, "subnet-00000000000000000")
}

func TestASubnetThatNobodyCanReachIsFoundBeforeItIsPaid(t *testing.T) {
	s := aws(t, fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1", Private: []string{"b"}}}})
	spec := two()
	for zone, reached := range map[string]bool{"us-east-1a": true, "us-east-1b": false} {
		spec.Own = &options.Machines{Subnet: s.Subnet("us-east-1", zone)}
		f := finding(t, check(t, spec), "network")
		if reached {
			says(t, f, true, zone)
		} else {
			says(t, f, false, zone, "no route to an internet gateway", "machines.subnet")
		}
	}
	s.Fault(fakeaws.Fault{Action: "DescribeRouteTables", Do: fakeaws.Refuse})
	says(t, finding(t, check(t, spec), "network"), true, "not known", "DescribeRouteTables")
}

func TestAMachineThatNobodyHasIsFound(t *testing.T) {
	aws(t, fakeaws.Options{})
	spec := two()
	spec.Instance = "g5.nothing"
	p := check(t, spec)
	says(t, finding(t, p, "machine"), false, "g5.nothing")
	if p.Offer != nil || p.PricePerHour != 0 {
		t.Errorf("%+v, $%v", p.Offer, p.PricePerHour)
	}
}

func TestASpotMachineCostsAtMostWhatItCostsOnDemand(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	spec := two()
	spec.Spot, spec.Budget = true, 0
	p := check(t, spec)
	says(t, finding(t, p, "spot"), true, "below the price on demand", "notice", "checkpoints")
	says(t, finding(t, p, "spot quota"), true, "L-3819A6DF")
	if p.PricePerHour >= 2.012 || p.MostPerHour < 2.012 {
		t.Errorf("$%v an hour, at most $%v", p.PricePerHour, p.MostPerHour)
	}
	says(t, finding(t, p, "limits"), true, "limits.lifetime", "24h")
	s.SetQuota("us-east-1", "L-3819A6DF", 0)
	says(t, finding(t, check(t, spec), "spot quota"), false, "is 0 vCPUs")
	spec.Own = &options.Machines{SpotFallback: true}
	p = check(t, spec)
	says(t, finding(t, p, "spot quota"), true, "is 0 vCPUs")
	says(t, finding(t, p, "on-demand quota"), true, "8 vCPUs are needed")
}

func TestANeedIsAnsweredWithAMachine(t *testing.T) {
	aws(t, fakeaws.Options{})
	spec := two()
	spec.Instance, spec.Need = "", cloud.Need{GPU: []string{"A10G", "L4"}, GPUs: 1, MaxPrice: 1.5}
	p := check(t, spec)
	if p.Offer == nil || !slices.Contains([]string{"A10G", "L4"}, p.Offer.GPU) || p.Offer.OnDemand.PerHour > 1.5 {
		t.Fatalf("%+v", p.Offer)
	}
	says(t, finding(t, p, "machine"), true, p.Offer.Instance, "where there is no room, then")
}

func TestWithoutLimitsNothingIsLaunched(t *testing.T) {
	aws(t, fakeaws.Options{})
	spec := two()
	spec.Lifetime, spec.Budget = 0, 0
	says(t, finding(t, check(t, spec), "limits"), false, "nothing limits")
}

func TestWithoutCredentialsOneFindingSaysHowToGetThem(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	p := check(t, two())
	says(t, finding(t, p, "credentials"), false, "no AWS credentials were found", "aws configure sso", "AWS_ACCESS_KEY_ID")
	says(t, finding(t, p, "machine"), true, "not checked with AWS", "g5.xlarge")
	says(t, finding(t, p, "price"), true, "not checked with AWS", "dlwb's own table")
	for _, f := range p.Findings {
		if !f.OK && f.What != "credentials" {
			t.Errorf("%s is more than one cause: %s", f.What, f.Text)
		}
	}
	if p.Offer == nil || p.PricePerHour < 2 {
		t.Errorf("%+v, $%v", p.Offer, p.PricePerHour)
	}
	if n := len(s.Calls()); n != 0 {
		t.Errorf("%d calls without credentials", n)
	}
}

func TestAProfileThatIsNotThereIsAFinding(t *testing.T) {
	aws(t, fakeaws.Options{})
	t.Setenv("AWS_PROFILE", "nobody")
	p := check(t, two())
	says(t, finding(t, p, "credentials"), false, `"nobody"`, "aws configure list-profiles")
	says(t, finding(t, p, "machine"), true, "not checked with AWS")
}

func TestAnAWSThatDoesNotAnswerIsWaitedForAWhile(t *testing.T) {
	if testing.Short() {
		t.Skip("waits 20 s for an AWS that does not answer; run without -short")
	}
	aws(t, fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1", Hangs: true}}})
	began := time.Now()
	p := check(t, two())
	if d := time.Since(began); d > 25*time.Second {
		t.Errorf("it took %s", d)
	}
	says(t, finding(t, p, "credentials"), false, "did not answer", "nothing below is checked")
	says(t, finding(t, p, "machine"), true, "not checked with AWS", "g5.xlarge")
}

// The plan is to be on the screen within a second once the offers are known.
func TestCheckTakesLessThanASecond(t *testing.T) {
	aws(t, fakeaws.Options{ReplyDelay: 3 * time.Millisecond})
	p := ec2.New(ec2.Options{Dir: t.TempDir()})
	p.Check(t.Context(), two())
	best := time.Hour
	for tries := 0; best > time.Second && tries < 10; tries++ { // a machine that is busy with other tests takes longer now and then
		began := time.Now()
		p.Check(t.Context(), two())
		best = min(best, time.Since(began))
	}
	if best > time.Second {
		t.Errorf("it took %s, and no less before", best)
	}
}

// No finding says what a credential is.
func TestCheckShowsNoSecrets(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	dir := t.TempDir()
	look := func() {
		for _, f := range ec2.New(ec2.Options{Dir: dir}).Check(t.Context(), two()).Findings {
			for _, secret := range []string{fakeaws.SecretKey, fakeaws.AccessKey} {
				if strings.Contains(f.Text+f.Next, secret) {
					t.Errorf("%s shows a secret: %s; %s", f.What, f.Text, f.Next)
				}
			}
		}
	}
	look()
	s.Fault(fakeaws.Fault{Do: fakeaws.Refuse, Code: "SignatureDoesNotMatch", Status: 403})
	look()
	s.Heal()
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte("[default]\ncredential_process = echo "+fakeaws.SecretKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	look()
	// nothing of it stays on the disk either
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "config" {
			return err
		}
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), fakeaws.SecretKey) {
			t.Errorf("%s has the secret in it", path)
		}
		return nil
	})
}

// The second plan does not page through AWS's images again, and an image that
// is no longer there is looked for anew.
func TestAPlanRemembersTheImageForAWhile(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	dir := t.TempDir()
	look := func() (image cloud.Finding, searched bool) {
		s.Forget()
		p := ec2.New(ec2.Options{Dir: dir}).Check(t.Context(), two())
		return finding(t, p, "image"), slices.ContainsFunc(s.Calls(), func(c fakeaws.Call) bool { return c.Action == "GetParametersByPath" })
	}
	first, searched := look()
	if !searched {
		t.Error("the first plan did not look for the newest image")
	}
	second, searched := look()
	if searched || second.Text != first.Text {
		t.Errorf("the second plan looked again: %v, %s", searched, second.Text)
	}
	file := filepath.Join(dir, "images.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Fields(first.Text)[0]
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), id, "ami-00000000000000000")), 0o600); err != nil {
		t.Fatal(err)
	}
	third, searched := look()
	if !searched || third.Text != first.Text {
		t.Errorf("an image that is gone was not looked for anew: %s", third.Text)
	}
}

func TestCheckLooksAtTheHeadByItself(t *testing.T) {
	s := aws(t, fakeaws.Options{})
	without := check(t, two())
	spec := two()
	spec.Own = &options.Machines{Head: "m5.xlarge"}
	p := check(t, spec)
	for _, f := range p.Findings {
		if !f.OK {
			t.Errorf("%s: %s", f.What, f.Text)
		}
	}
	says(t, finding(t, p, "head"), true, "m5.xlarge", "on demand", "4 vCPUs are needed", "L-1216C47A")
	says(t, finding(t, p, "quota"), true, "8 vCPUs are needed", "L-DB2E81BA")
	says(t, finding(t, p, "price"), true, "for the head")
	if more := p.PricePerHour - without.PricePerHour; more < 0.19 || more > 0.25 || p.MostPerHour < p.PricePerHour {
		t.Errorf("the head costs $%v more an hour, $%v at most in all", more, p.MostPerHour)
	}
	types := map[string]int{}
	for _, c := range s.Calls() {
		if c.Action == "RunInstances" {
			types[c.Params.Get("InstanceType")]++
		}
	}
	if types["m5.xlarge"] != 1 || types["g5.xlarge"] != 2 {
		t.Errorf("launches that were tried: %v", types)
	}
	s.SetQuota("us-east-1", "L-1216C47A", 0)
	says(t, finding(t, check(t, spec), "head"), false, "m5.xlarge", "L-1216C47A", "is 0 vCPUs")
	spec.Own = &options.Machines{Head: "g5g.xlarge"}
	says(t, finding(t, check(t, spec), "head"), false, "arm64", "x86_64", "same architecture")
	spec.Own = &options.Machines{Head: "m5.nosuch"}
	says(t, finding(t, check(t, spec), "head"), false, "m5.nosuch")
	spec.Spot, spec.Have, spec.Own = true, 3, &options.Machines{Head: "m5.xlarge"}
	says(t, finding(t, check(t, spec), "spot quota"), true, "there already")
}
