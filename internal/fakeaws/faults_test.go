package fakeaws

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func TestEachEffectDoesWhatItSays(t *testing.T) {
	for _, c := range []struct {
		do       Effect
		err      string // part of the client's error; empty: none
		launched int
		outcome  string
	}{
		{None, "", 1, "ok"},
		{Refuse, "UnauthorizedOperation", 0, "UnauthorizedOperation, refused"},
		{Throttle, "RequestLimitExceeded", 0, "RequestLimitExceeded, throttled"},
		{FailBefore, "InternalError", 0, "InternalError, failed before"},
		{LoseReply, "EOF", 1, "ok, reply lost"},
		{Duplicate, "", 2, "ok, duplicated"},
		{Ignore, "", 0, "ok, ignored"},
		{Truncate, "EOF", 1, "ok, truncated"},
	} {
		t.Run(c.do.String(), func(t *testing.T) {
			r := start(t, Options{})
			r.Fault(Fault{Action: "RunInstances", Times: 1, Do: c.do})
			in := r.order(1)
			if _, err := r.ec2.RunInstances(t.Context(), in, withoutToken, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }); c.err == "" && err != nil ||
				c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("the client got %v, want %q", err, c.err)
			}
			same(t, "launched", r.Launched(), c.launched)
			until(t, "the outcome", func() bool { return r.Calls()[0].Outcome == c.outcome })
			same(t, "calls", len(r.Calls()), 1)
			r.launch(1) // the fault was for one time
		})
	}
}

// withoutToken keeps the SDK from making a client token.
func withoutToken(o *ec2.Options) { o.IdempotencyTokenProvider = noToken{} }

type noToken struct{}

func (noToken) GetIdempotencyToken() (string, error) { return "", nil }

func TestADuplicateWithAClientTokenLaunchesOnce(t *testing.T) {
	r := start(t, Options{})
	r.Fault(Fault{Action: "RunInstances", Do: Duplicate})
	r.launch(2)
	same(t, "launched", r.Launched(), 2)
	r.Fault(Fault{Action: "CreateSecurityGroup", Do: Duplicate})
	_, err := r.ec2.CreateSecurityGroup(t.Context(), &ec2.CreateSecurityGroupInput{GroupName: aws.String("g"), Description: aws.String("d")})
	r.refuses("InvalidGroup.Duplicate", err)
	same(t, "groups", len(slices.DeleteFunc(r.Left(), func(s string) bool { return !strings.Contains(s, "security-group") })), 1)
}

func TestADelayedCallIsAppliedWhenItsCallerIsGone(t *testing.T) {
	r := start(t, Options{})
	var mu sync.Mutex
	var stages []Stage
	r.Fault(Fault{Action: "RunInstances", Do: DelayApply, Delay: time.Hour, Hook: func(at Stage, c Call) {
		mu.Lock()
		defer mu.Unlock()
		stages = append(stages, at)
	}})
	if _, err := r.run(r.order(1)); err == nil {
		t.Fatal("the reply was not lost")
	}
	same(t, "launched at once", r.Launched(), 0)
	r.Advance(time.Hour)
	until(t, "the launch", func() bool { return r.Launched() == 1 })
	until(t, "both stages", func() bool { mu.Lock(); defer mu.Unlock(); return slices.Equal(stages, []Stage{Before, Applied}) })
}

func TestACallThatHangsAnswersNobody(t *testing.T) {
	r := start(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.Fault(Fault{Action: "DescribeInstances", Do: Hang, Times: 1, Hook: func(Stage, Call) { cancel() }}) // not before it has come
	if _, err := r.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{}); err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
	r.describe()
}

func TestFaultsSkipCountAndMatch(t *testing.T) {
	r := start(t, Options{})
	r.Fault(Fault{Action: "DescribeInstances", Skip: 1, Times: 2, Do: Refuse, Code: "Whatever", Status: 418,
		Match: func(v url.Values) bool { return v.Get("Filter.1.Value.1") == "x" }})
	ask := func(v string) string {
		_, err := r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{filter("instance-id", v)}})
		return code(err)
	}
	got := fmt.Sprint(ask("x"), ask("y"), ask("x"), ask("y"), ask("x"), ask("x"))
	same(t, "answers", got, fmt.Sprint("", "", "Whatever", "", "Whatever", ""))
	r.Fault(Fault{Action: "GetServiceQuota", Do: Throttle, Times: 1, Match: func(v url.Values) bool { return v.Get("QuotaCode") == "L-DB2E81BA" }})
	_, err := r.api.Quotas("us-east-1").GetServiceQuota(t.Context(), &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String("L-DB2E81BA")},
		func(o *servicequotas.Options) { o.Retryer = aws.NopRetryer{} })
	r.refuses("ThrottlingException", err)
	r.Fault(Fault{Do: Refuse})
	r.refuses("UnauthorizedOperation", func() error { _, err := r.run(r.order(1)); return err }())
	r.Heal()
	r.launch(1)
}

func TestHooksSeeTheCallAtEachStage(t *testing.T) {
	r := start(t, Options{})
	var mu sync.Mutex
	var seen []string
	r.Fault(Fault{Action: "RunInstances", Hook: func(at Stage, c Call) {
		n := r.Launched() // no lock is held
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprint(at, c.Action, c.Region, c.Params.Get("InstanceType"), n))
	}})
	r.launch(1)
	until(t, "three stages", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) == 3 })
	if want := []string{"0RunInstancesus-east-1c5.large0", "1RunInstancesus-east-1c5.large1", "2RunInstancesus-east-1c5.large1"}; !slices.Equal(seen, want) {
		t.Errorf("the hook saw %v, want %v", seen, want)
	}
	c := r.Calls()[0]
	same(t, "call", fmt.Sprint(c.N, c.Service, c.Action, c.Reads()), "0ec2RunInstancesfalse")
	r.Forget()
	r.describe()
	same(t, "number after forgetting", r.Calls()[0].N, 1)
}

// What is ignored is answered as if it were done, whatever was to be done.
func TestWhatIsIgnoredLeavesNoTrace(t *testing.T) {
	r := start(t, Options{Boot: &crew{}})
	id, g := r.launch(1)[0], r.group("g")
	until(t, "running", func() bool { return r.states(id) == "running" })
	r.Fault(Fault{Do: Ignore})
	out := must(r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))(t)
	same(t, "the answer", out.TerminatingInstances[0].CurrentState.Name, "shutting-down")
	must(r.ec2.DeleteSecurityGroup(t.Context(), &ec2.DeleteSecurityGroupInput{GroupId: &g}))(t)
	r.launch(3, func(in *ec2.RunInstancesInput) { in.ClientToken = aws.String("again") })
	r.Heal()
	r.Advance(time.Minute)
	same(t, "state", r.states(), "running")
	same(t, "group", r.Exists("us-east-1", g), true)
	r.launch(1, func(in *ec2.RunInstancesInput) { in.ClientToken = aws.String("again") }) // the token was not used
}

func TestADisabledRegionRefusesAndAHangingOneHangs(t *testing.T) {
	r := start(t, Options{Regions: []Region{{Name: "us-east-1"}, {Name: "ap-east-1", Disabled: true}, {Name: "us-west-2", Hangs: true}}})
	_, err := r.api.EC2("ap-east-1").DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	r.refuses("AuthFailure", err)
	_, err = r.api.EC2("mars-1").DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	r.refuses("AuthFailure", err)
	_, err = r.api.Quotas("ap-east-1").GetServiceQuota(t.Context(), &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String("x")})
	r.refuses("UnrecognizedClientException", err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.api.EC2("us-west-2").DescribeInstances(ctx, &ec2.DescribeInstancesInput{}); err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
}

func TestOnlySignedCallsOfKnownActionsAreAnswered(t *testing.T) {
	r := start(t, Options{ARN: "arn:aws:sts::123456789012:assumed-role/dev/me"})
	resp, err := http.PostForm(r.URL, url.Values{"Action": {"DescribeInstances"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	same(t, "status without a signature", resp.StatusCode, 403)
	_, err = r.ec2.DescribeCarrierGateways(t.Context(), &ec2.DescribeCarrierGatewaysInput{})
	r.refuses("InvalidAction", err)
	who := must(r.api.Identity(t.Context()))(t)
	same(t, "account", who.Account, "123456789012")
	same(t, "ARN", who.ARN, "arn:aws:sts::123456789012:assumed-role/dev/me")

	t.Setenv("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE0000")
	cfg := start2(t)
	_, err = cfg.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	r.refuses("InvalidClientTokenId", err)
}

func TestWhatChangesIsSeenAfterTheLag(t *testing.T) {
	lag := time.Hour
	o := slow
	o.Lag = func() time.Duration { return lag }
	r := start(t, o)
	ctx := t.Context()
	id := r.launch(1, func(in *ec2.RunInstancesInput) { in.ClientToken = aws.String("t") })[0]
	_, err := r.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	r.refuses("InvalidInstanceID.NotFound", err)
	_, err = r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	r.refuses("InvalidInstanceID.NotFound", err)
	same(t, "all", len(r.describe()), 0)
	again := must(r.run(r.order(1, func(in *ec2.RunInstancesInput) { in.ClientToken = aws.String("t") })))(t)
	same(t, "by its token it is known", *again.Instances[0].InstanceId, id)
	r.Advance(time.Hour)
	same(t, "state", r.states(id), "running")

	must(r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))(t)
	r.Advance(30 * time.Minute)
	same(t, "state seen", r.states(id), "running")
	same(t, "left", len(r.Left()), 0)
	lag = 0 // a later change is never seen before an earlier one
	must(r.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}}))(t)
	same(t, "state seen", r.states(id), "running")
	r.Advance(30 * time.Minute)
	same(t, "state seen", r.states(id), "terminated")

	lag = time.Hour
	g := r.group("g")
	_, err = r.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &g})
	r.refuses("InvalidGroup.NotFound", err)
	_, err = r.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("g"), Description: aws.String("d")})
	r.refuses("InvalidGroup.Duplicate", err)
	r.Advance(time.Hour)
	must(r.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &g}))(t)
	same(t, "seen after its end", len(must(r.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{g}}))(t).SecurityGroups), 1)
	r.Advance(time.Hour)
	_, err = r.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{g}})
	r.refuses("InvalidGroup.NotFound", err)
}

func TestWhatWasPlantedIsKnownWhenItIsTouched(t *testing.T) {
	r := start(t, Options{})
	ctx := t.Context()
	g := r.Plant(Planted{Kind: "security-group", Region: "us-east-1", Name: "theirs"})
	i := r.Plant(Planted{Kind: "instance", Region: "us-east-1", Tags: map[string]string{"dlwb:cluster": "x"}, Groups: []string{g}, Age: time.Hour, Token: "t"})
	kept := r.PlantAccount(rand.New(rand.NewPCG(1, 2)), 50, func(string) map[string]string { return map[string]string{"owner": "them"} })
	if len(kept) < 5 {
		t.Fatalf("%d planted", len(kept))
	}
	got := r.describe(i)[0]
	same(t, "planted", fmt.Sprint(got.State.Name, *got.ClientToken, *got.SecurityGroups[0].GroupName, *got.Tags[0].Value), "runningttheirsx")
	same(t, "left", len(r.Left()), 0)
	same(t, "touched", len(r.Touched()), 0)
	same(t, "spent", r.Spent(), 0)
	must(r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{i}}))(t)
	if got := r.Touched(); !slices.Contains(got, i) || slices.Contains(got, g) {
		t.Errorf("touched: %v", got)
	}
	r.Advance(time.Minute)
	same(t, "exists", r.Exists("us-east-1", i), false)
}
