package ec2story

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
)

const quiet = "environment: system\nrun: {engine: plain, command: \"sh train.sh\"}\n"

// refusals are reasons not to launch anything, each with what is said of it
// and what to do next.
var refusals = []struct {
	name     string
	options  fakeaws.Options
	spoil    func(*fakeaws.Server)
	machines string // in the profile
	env      []string
	says     string
	next     string
}{
	{name: "no credentials", env: []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="},
		says: "no AWS credentials", next: "aws "},
	{name: "credentials that AWS does not take", spoil: refuse("GetCallerIdentity", "InvalidClientTokenId", 403),
		says: "AWS does not know", next: "aws "},
	{name: "quota 0", spoil: func(s *fakeaws.Server) { s.SetQuota("us-east-1", "L-DB2E81BA", 0) },
		says: "quota", next: "aws service-quotas request-service-quota-increase"},
	{name: "no permission", spoil: refuse("RunInstances", "UnauthorizedOperation", 403),
		says: "no permission for ec2:RunInstances", next: "ec2:RunInstances"},
	{name: "not offered", machines: "instance: p5e.48xlarge, region: us-east-1",
		says: "p5e.48xlarge", next: "dlwb offers"},
	{name: "wrong image", machines: "instance: g5.xlarge, region: us-east-1, image: ami-0123456789abcdef0",
		says: "ami-0123456789abcdef0", next: "machines.image"},
	{name: "no default VPC", options: fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1", NoDefaultVPC: true}}},
		says: "default VPC", next: "aws ec2 create-default-vpc"},
	{name: "region not enabled", machines: "instance: g5.xlarge, region: ap-east-1",
		says: "has not enabled ap-east-1", next: "aws account enable-region"},
}

func refuse(action, code string, status int) func(*fakeaws.Server) {
	return func(s *fakeaws.Server) {
		s.Fault(fakeaws.Fault{Action: action, Do: fakeaws.Refuse, Code: code, Status: status})
	}
}

// Whatever stands in the way is found before anything is made, and each thing
// has its own sentence with what to do next.
func TestWhatStandsInTheWayIsSaidBeforeAnythingIsMade(t *testing.T) {
	long(t)
	t.Parallel()
	var sentences []string
	for _, c := range refusals {
		b := newBench(t, c.options)
		machines := c.machines
		if machines == "" {
			machines = "instance: g5.xlarge, region: us-east-1"
		}
		b.write("dlwb.yaml", fmt.Sprintf("name: story\nprovider: ec2\nmachines: {%s, count: 2, ssh_port: %d}\n%s", machines, b.rig.SSHPort(), quiet))
		if c.spoil != nil {
			c.spoil(b.aws)
		}
		cmd := b.command("up", "--json")
		cmd.Env = append(cmd.Env, c.env...)
		r := b.play(cmd)
		if r.code != 1 {
			t.Errorf("%s: %s", c.name, r)
			continue
		}
		failed := r.last(t, "failed")
		why, next := fmt.Sprint(failed["why"]), fmt.Sprint(failed["next"])
		if !strings.Contains(why, c.says) || !strings.Contains(next, c.next) {
			t.Errorf("%s: why %q, next %q: want %q and %q", c.name, why, next, c.says, c.next)
		}
		if slices.Contains(sentences, why) {
			t.Errorf("%s is told as something else is: %q", c.name, why)
		}
		sentences = append(sentences, why)
		t.Logf("%s: %s → %s", c.name, why, next)
		if n := b.aws.Launched(); n > 0 {
			t.Errorf("%s: %d instances were launched", c.name, n)
		}
		for _, call := range b.aws.Calls() {
			if !call.Reads() {
				t.Errorf("%s: %s was sent", c.name, call.Action)
			}
		}
		b.nothingLeft(c.name)
		if ls := b.run("ls", "--plain"); !strings.Contains(ls.stdout, "no clusters") {
			t.Errorf("%s: a cluster is left: %s", c.name, ls)
		}
	}
}

// Where there is no room the next zone is tried, then the next region, and in
// the end what is paid on demand; each attempt is on screen with its reason.
func TestNoRoomLeadsToTheNextZoneRegionAndMarket(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.write("dlwb.yaml", fmt.Sprintf("name: story\nprovider: ec2\nmachines: {region: [us-east-1, us-west-2], instance: g5.xlarge, count: 2, "+
		"spot: true, spot_fallback: true, ssh_port: %d}\n%s", b.rig.SSHPort(), quiet))
	for _, region := range []string{"us-east-1", "us-west-2"} {
		b.aws.SetSpotCapacity(region, "", "g5.xlarge", 1) // one is not two
		b.aws.SetCapacity(region, "", "g5.xlarge", 0)
	}
	b.aws.SetCapacity("us-west-2", "us-west-2c", "g5.xlarge", 2)
	began := time.Now()
	r := b.run("up", "--plain")
	if r.code != 0 {
		t.Fatal(r)
	}
	var tried []string
	for line := range strings.Lines(r.stdout) {
		if _, attempt, ok := strings.Cut(line, "launching "); ok {
			tried = append(tried, strings.TrimSpace(attempt))
		}
	}
	t.Logf("%d attempts in %.1f s: %s", len(tried), time.Since(began).Seconds(), strings.Join(tried, "; "))
	for _, market := range []string{"spot", "on demand"} {
		for _, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c", "us-west-2a", "us-west-2b", "us-west-2c"} {
			if attempt := "2 × g5.xlarge, " + market + " in " + zone; !slices.Contains(tried, attempt) {
				t.Errorf("not tried, or not said: %s", attempt)
			}
		}
	}
	if last := tried[len(tried)-1]; last != "2 × g5.xlarge, on demand in us-west-2c" {
		t.Errorf("it ended with %q", last)
	}
	if n := strings.Count(r.stdout, "AWS has no room for 2 × g5.xlarge"); n != len(tried)-1 {
		t.Errorf("%d attempts and %d reasons:\n%s", len(tried), n, r)
	}
	if n := b.running(); n != 2 {
		t.Errorf("%d instances run, want 2", n)
	}
	if d := b.run("down", "story", "--plain"); d.code != 0 {
		t.Error(d)
	}
	b.nothingLeft("in both regions")
}

// Nowhere is room: that is said with every reason, and nothing is left.
func TestNoRoomAnywhereLeavesNothing(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(2, quiet)
	b.aws.SetCapacity("us-east-1", "", "g5.xlarge", 0)
	r := b.run("up", "--plain")
	if r.code != 1 || b.aws.Launched() != 0 {
		t.Errorf("%d instances: %s", b.aws.Launched(), r)
	}
	r.says(t, "no place has room for the machines", "us-east-1a", "us-east-1b", "us-east-1c")
	b.nothingLeft("no room")
}

// An AWS that takes TerminateInstances and does nothing is not believed.
func TestATeardownThatIsIgnoredIsUnresolved(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(2, quiet)
	if r := b.run("up", "--plain"); r.code != 0 {
		t.Fatal(r)
	}
	b.aws.Fault(fakeaws.Fault{Action: "TerminateInstances", Do: fakeaws.Ignore})
	began := time.Now()
	r := b.run("down", "story", "--plain")
	t.Logf("it gave up after %.1f s, with a settle window of %s", time.Since(began).Seconds(), settle)
	if r.code != 3 {
		t.Errorf("exit code %d, want 3", r.code)
	}
	r.says(t, "UNRESOLVED", "/h", "dlwb down story tries again")
	for _, id := range b.ids("running") {
		r.says(t, "aws ec2 terminate-instances --region us-east-1 --instance-ids "+id)
	}
	j := b.run("down", "story", "--json")
	if j.code != 3 || j.last(t, "receipt")["proven"] != false {
		t.Errorf("again, with --json: %s", j)
	}
	if ls := b.run("ls", "--json"); !strings.Contains(ls.stdout, `"phase":"unresolved"`) {
		t.Errorf("ls: %s", ls)
	}
	ls := b.run("ls", "--plain")
	ls.says(t, "unresolved", "2.0") // $/h of two g5.xlarge
	b.aws.Heal()
	if r := b.run("down", "story", "--plain"); r.code != 0 {
		t.Errorf("healed: %s", r)
	}
	b.nothingLeft("healed")
}

// The second dlwb that wants to change a cluster is told that it is busy; the
// first one, interrupted, removes what it began.
func TestTwoAtOnceAndAnInterruptedUp(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(2, quiet)
	b.rig.AnswerAfter("", time.Hour)
	first := b.start("up", "--json")
	first.await("both machines running", func(e printedEvent) bool { return b.running() == 2 && e["event"] == "step_progress" })
	second := b.run("up", "--plain")
	if second.code != 4 {
		t.Errorf("the second up: %s", second)
	}
	second.says(t, "story", fmt.Sprint(first.cmd.Process.Pid))
	if down := b.run("down", "story", "--plain"); down.code != 4 {
		t.Errorf("a down meanwhile: %s", down)
	}
	began := time.Now()
	first.signal(syscall.SIGINT)
	r := first.end()
	t.Logf("interrupted, it had removed all after %.1f s", time.Since(began).Seconds())
	if r.code != 130 || r.one(t, "receipt")["proven"] != true {
		t.Errorf("the first up, interrupted: %s", r)
	}
	if n := b.aws.Launched(); n != 2 {
		t.Errorf("%d instances were launched, want 2", n)
	}
	b.nothingLeft("interrupted")
}

// A failed set-up once removed machines that had just been paid for. They stay
// now, and it is said what they cost, when they end by themselves, how to go on
// and how to remove them.
func TestFailedSetUpKeepsPaidMachinesAndSaysSo(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(1, "environment: {python: /nowhere/python3}\nrun: {engine: plain, command: \"sh train.sh\"}\nlimits: {idle: 40m, lifetime: 5h}\n")
	r := b.run("run", "--plain")
	if r.code != 1 {
		t.Errorf("a set-up that fails: %s", r)
	}
	r.says(t, "warning: cluster story stays: 1 node of ec2, $", "/h; they end by themselves after 40m without work, at ",
		"dlwb run ", "goes on with them", "dlwb down story removes them")
	if n := b.running(); n != 1 {
		t.Errorf("%d machines run, want the one that stays", n)
	}
	b.profile(1, quiet)
	if r := b.run("up", "--plain"); r.code != 0 || b.aws.Launched() != 1 {
		t.Errorf("it does not go on with what is there (%d launched): %s", b.aws.Launched(), r)
	}
	if r := b.run("down", "story", "--plain"); r.code != 0 {
		t.Errorf("down: %s", r)
	}
	b.nothingLeft("after a failed set-up")
}
