package awsapi

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
)

var update = flag.Bool("update", false, "write the golden files anew")

// isolate gives a test an AWS configuration of its own.
func isolate(t *testing.T, endpoint string) {
	t.Helper()
	dir := t.TempDir()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL":            endpoint,
		"AWS_ACCESS_KEY_ID":           "AKIAIOSFODNN7EXAMPLE",
		"AWS_SECRET_ACCESS_KEY":       canary,
		"AWS_SESSION_TOKEN":           "",
		"AWS_REGION":                  "us-east-1",
		"AWS_DEFAULT_REGION":          "",
		"AWS_PROFILE":                 "",
		"AWS_CA_BUNDLE":               "",
		"AWS_EC2_METADATA_DISABLED":   "true",
		"AWS_CONFIG_FILE":             filepath.Join(dir, "config"),
		"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "credentials"),
		"HOME":                        dir,
	} {
		t.Setenv(name, value)
	}
}

// canary is the secret that must never be shown.
const canary = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYcanarycanary"

// load reads the present configuration.
func load(t *testing.T) *API {
	t.Helper()
	api, err := Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// launch is the call that most cases are about.
func launch(ctx context.Context, api *API) error {
	_, err := api.EC2("us-east-1").RunInstances(ctx, &ec2.RunInstancesInput{
		MinCount: aws.Int32(2), MaxCount: aws.Int32(2), ClientToken: aws.String("dlwb-0123456789ab-run-0")}, Once)
	return err
}

var asked = Call{Action: "RunInstances", Region: "us-east-1", Zone: "us-east-1a", Instance: "g5.xlarge", Count: 2, VCPUs: 4, Quota: "L-DB2E81BA"}

// refusals are AWS's codes with the status and the words that it sends.
var refusals = []struct {
	code   string
	status int
	says   string
}{
	{"InsufficientInstanceCapacity", 500, "We currently do not have sufficient g5.xlarge capacity in the Availability Zone you requested (us-east-1a)."},
	{"InsufficientHostCapacity", 500, "There is insufficient capacity."},
	{"InsufficientReservedInstanceCapacity", 500, "There is insufficient reserved capacity."},
	{"ReservationCapacityExceeded", 400, "The capacity reservation is used up."},
	{"UnfulfillableCapacity", 500, "Unable to fulfill capacity due to your request configuration."},
	{"SpotMaxPriceTooLow", 400, "Your Spot request price of 0.1 is lower than the minimum required Spot request fulfillment price of 0.4."},
	{"InsufficientFreeAddressesInSubnet", 400, "Not enough free addresses in subnet 'subnet-0123456789abcdef0' to satisfy the requested number of instances."},
	{"VcpuLimitExceeded", 400, "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the specified instance type belongs to."},
	{"VcpuLimitExceeded", 400, "You have requested more vCPU capacity than your current vCPU limit of 4 allows for the instance bucket that the specified instance type belongs to."},
	{"MaxSpotInstanceCountExceeded", 400, "Max spot instance count exceeded"},
	{"InstanceLimitExceeded", 400, "You have requested more instances (2) than your current instance limit of 1 allows."},
	{"AddressLimitExceeded", 400, "The maximum number of addresses has been reached."},
	{"VolumeLimitExceeded", 400, "You have exceeded your maximum gp3 storage limit of 50 TiB in this region."},
	{"MaxIOPSLimitExceeded", 400, "You have exceeded your maximum io2 IOPS."},
	{"SecurityGroupLimitExceeded", 400, "The maximum number of security groups for VPC 'vpc-0123456789abcdef0' has been reached."},
	{"SomethingLimitExceeded", 400, "Too many of it."},
	{"Unsupported", 400, "Your requested instance type (g5.xlarge) is not supported in your requested Availability Zone (us-east-1e)."},
	{"UnsupportedOperation", 400, "The functionality you requested is not available in this region."},
	{"UnauthorizedOperation", 403, "You are not authorized to perform this operation. User: arn:aws:iam::123456789012:user/ann is not authorized to perform: ec2:CreateTags on resource: arn:aws:ec2:us-east-1:123456789012:instance/* because no identity-based policy allows the ec2:CreateTags action. Encoded authorization failure message: abcDEF_-0123"},
	{"UnauthorizedOperation", 403, "You are not authorized to perform this operation. User: arn:aws:iam::123456789012:user/ann is not authorized to perform: ec2:RunInstances on resource: arn:aws:ec2:us-east-1:123456789012:instance/* with an explicit deny in a service control policy."},
	{"UnauthorizedOperation", 403, "You are not authorized to perform this operation."},
	{"AccessDenied", 403, "User: arn:aws:iam::123456789012:user/ann is not authorized to perform: iam:PassRole on resource: arn:aws:iam::123456789012:role/x with an explicit deny"},
	{"AuthFailure", 401, "AWS was not able to validate the provided access credentials"},
	{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", 403, "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances."},
	{"InvalidClientTokenId", 403, "The security token included in the request is invalid."},
	{"SignatureDoesNotMatch", 403, "The request signature we calculated does not match. The Canonical String for this request should have been 'POST / x-amz-security-token:" + canary + "'"},
	{"IncompleteSignature", 403, "Authorization header requires 'Signature'. Authorization=AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/" + canary},
	{"ExpiredToken", 400, "The security token included in the request is expired"},
	{"RequestExpired", 400, "Request has expired."},
	{"OptInRequired", 401, "You are not subscribed to this service. Please go to http://aws.amazon.com to subscribe."},
	{"PendingVerification", 400, "Your request for accessing resources in this region is being validated."},
	{"Blocked", 403, "This account is currently blocked and not recognized as a valid account."},
	{"RequestLimitExceeded", 503, "Request limit exceeded."},
	{"Throttling", 400, "Rate exceeded"},
	{"InvalidAMIID.NotFound", 400, "The image id '[ami-0123456789abcdef0]' does not exist"},
	{"InvalidAMIID.Unavailable", 400, "The image id '[ami-0123456789abcdef0]' is not available"},
	{"InvalidAMIID.Malformed", 400, "Invalid id: \"nonsense\" (expecting \"ami-...\")"},
	{"InvalidKeyPair.NotFound", 400, "The key pair 'dlwb-charlm-0123456789ab' does not exist"},
	{"InvalidKeyPair.Duplicate", 400, "The keypair already exists"},
	{"InvalidGroup.NotFound", 400, "The security group 'sg-0123456789abcdef0' does not exist"},
	{"InvalidGroup.Duplicate", 400, "The security group 'dlwb-charlm-0123456789ab' already exists for VPC 'vpc-0123456789abcdef0'"},
	{"InvalidGroup.InUse", 400, "The security group is in use."},
	{"InvalidSubnetID.NotFound", 400, "The subnet ID 'subnet-0123456789abcdef0' does not exist"},
	{"VPCIdNotSpecified", 400, "No default VPC for this user. GroupName is only supported for EC2-Classic and default VPC."},
	{"DefaultVpcDoesNotExist", 400, "There is no default VPC."},
	{"MissingInput", 400, "No subnets found for the default VPC 'vpc-0123456789abcdef0'. Please specify a subnet."},
	{"InvalidParameterValue", 400, "Invalid value 'g5.tiny' for InstanceType."},
	{"InvalidParameterCombination", 400, "Network interfaces and an instance-level subnet ID may not be specified on the same request"},
	{"InvalidBlockDeviceMapping", 400, "Volume of size 8GB is smaller than snapshot 'snap-0123456789abcdef0', expect size>= 75GB"},
	{"IdempotentParameterMismatch", 400, "Arguments on this idempotent request are inconsistent with arguments used in previous request(s)."},
	{"InvalidInstanceID.NotFound", 400, "The instance ID 'i-0123456789abcdef0' does not exist"},
	{"IncorrectInstanceState", 400, "The instance 'i-0123456789abcdef0' is not in a state from which it can be started."},
	{"OperationNotPermitted", 400, "The instance 'i-0123456789abcdef0' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again."},
	{"DependencyViolation", 400, "resource sg-0123456789abcdef0 has a dependent object"},
	{"InvalidPlacementGroup.InUse", 400, "The placement group is in use and may not be deleted."},
	{"InvalidPlacementGroup.Unknown", 400, "The Placement Group 'dlwb-charlm-0123456789ab' is unknown."},
	{"InvalidPlacementGroup.Duplicate", 400, "The Placement Group 'dlwb-charlm-0123456789ab' already exists."},
	{"InternalError", 500, "An internal error has occurred"},
	{"ServerInternal", 500, "An internal error has occurred"},
	{"Unavailable", 503, "The service is unavailable. Please try again shortly."},
	{"SomethingElse", 500, "It failed."},
	{"InvalidParameterValue", 500, "A code of a refusal, and a status of a failure."},
	{"SomethingElse", 400, "It is refused.\n\nFor more, ask."},
	{"InvalidThing.NotFound", 400, "The thing 'x; rm -rf ~' does not exist"},
}

// refuse is a server that answers every call as EC2 refuses one.
func refuse(t *testing.T, code string, status int, says string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>7a62c49f</RequestID></Response>`,
			code, html.EscapeString(says))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestEveryRefusalHasACauseAndANextStep(t *testing.T) {
	var text strings.Builder
	codes := map[string]bool{}
	for _, r := range refusals {
		isolate(t, refuse(t, r.code, r.status, r.says).URL)
		call := asked
		if strings.Contains(r.code, "Spot") {
			call.Spot, call.Quota = true, "L-3819A6DF"
		}
		p := Explain(launch(t.Context(), load(t)), call)
		if p.Code != r.code {
			t.Errorf("%s: the code is %q", r.code, p.Code)
		}
		codes[r.code] = true
		fmt.Fprintf(&text, "%s (HTTP %d)\n  kind:  %s\n  cause: %s\n  next:  %s\n\n", p.Code, r.status, p.Kind, p.Cause, p.Next)
		sound(t, r.code, p)
	}
	if len(codes) < 40 {
		t.Errorf("%d codes; at least 40 are wanted", len(codes))
	}
	golden(t, "refusals.golden", text.String())
}

// sound holds what is true of every problem.
func sound(t *testing.T, what string, p *Problem) {
	t.Helper()
	if p.Cause == "" || p.Next == "" || p.Kind == "" {
		t.Errorf("%s: %+v lacks something", what, p)
	}
	for _, s := range []string{canary, "AKIAIOSFODNN7EXAMPLE", "{", "}"} {
		for _, text := range []string{p.Cause, p.Next, p.Error()} {
			if strings.Contains(text, s) {
				t.Errorf("%s: %q contains %q", what, text, s)
			}
		}
	}
	if strings.ContainsAny(p.Cause+p.Next, "\n\r\x1b") {
		t.Errorf("%s: more than one line: %q", what, p.Cause)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is said now; see git diff after go test -update:\n%s", path, got)
	}
}

func TestNoQuotaNoCapacityBadConfigurationAndNoPermissionAreFourSentences(t *testing.T) {
	kinds, causes := map[Kind]bool{}, map[string]bool{}
	for _, r := range []struct {
		code   string
		status int
		says   string
		want   Kind
	}{
		{"VcpuLimitExceeded", 400, "your current vCPU limit of 0 allows", NoQuota},
		{"InsufficientInstanceCapacity", 500, "no capacity", NoCapacity},
		{"InvalidParameterValue", 400, "bad value", BadRequest},
		{"UnauthorizedOperation", 403, "You are not authorized to perform this operation.", NoPermission},
	} {
		isolate(t, refuse(t, r.code, r.status, r.says).URL)
		p := Explain(launch(t.Context(), load(t)), asked)
		if p.Kind != r.want {
			t.Errorf("%s is %q, want %q", r.code, p.Kind, r.want)
		}
		kinds[p.Kind], causes[p.Cause] = true, true
	}
	if len(kinds) != 4 || len(causes) != 4 {
		t.Errorf("%d kinds and %d causes, want 4 of each: %v", len(kinds), len(causes), causes)
	}
}

// A placeholder that the program does not know would reach the screen.
func TestEveryRuleIsComplete(t *testing.T) {
	words := Call{}.words("Code", "words")
	for code, r := range rules {
		if r.kind == "" || r.cause == "" || r.next == "" {
			t.Errorf("%s lacks something: %+v", code, r)
		}
		if got := words.Replace(r.cause + r.next); strings.ContainsAny(got, "{}") {
			t.Errorf("%s: %s", code, got)
		}
	}
	if len(rules) < 40 {
		t.Errorf("%d rules", len(rules))
	}
}

// Service Quotas and Systems Manager answer in JSON.
func TestRefusalsInJSONAreExplainedToo(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"__type":"AccessDeniedException","Message":"User: arn:aws:iam::1:user/ann is not allowed"}`)
	}))
	t.Cleanup(s.Close)
	isolate(t, s.URL)
	_, err := load(t).Quotas("us-east-1").GetServiceQuota(t.Context(), &servicequotas.GetServiceQuotaInput{
		ServiceCode: aws.String("ec2"), QuotaCode: aws.String("L-DB2E81BA")})
	p := Explain(err, Call{Region: "us-east-1"})
	if p.Kind != NoPermission || p.Missing != "servicequotas:GetServiceQuota" {
		t.Errorf("%+v", p)
	}
}

func TestADryRunThatIsAllowedIsNoProblem(t *testing.T) {
	isolate(t, refuse(t, "DryRunOperation", 412, "Request would have succeeded, but DryRun flag is set.").URL)
	if err := launch(t.Context(), load(t)); !Allowed(err) {
		t.Errorf("not allowed: %v", err)
	}
	isolate(t, refuse(t, "UnauthorizedOperation", 403, "DryRunOperation").URL)
	if err := launch(t.Context(), load(t)); Allowed(err) {
		t.Errorf("allowed: %v", err)
	}
	if Explain(nil, asked) != nil || Allowed(nil) {
		t.Error("no error is a problem")
	}
}

// Of a call that only asks nobody says that it may have been carried out, whatever the
// service calls it.
func TestAQuestionWithoutAnAnswerLeavesNothingInDoubt(t *testing.T) {
	for action, doubt := range map[string]bool{"SimulatePrincipalPolicy": false, "HeadBucket": false, "ListServiceQuotas": false, "DescribeInstances": false, "RunInstances": true, "PutObject": true} {
		p := Explain(errors.New("an error page"), Call{Action: action, Region: "us-west-2"})
		if is := strings.Contains(p.Cause, "nobody knows yet whether it was carried out"); is != doubt {
			t.Errorf("%s: %s", action, p.Cause)
		}
	}
	if p := Explain(errors.New("an error page"), Call{Action: "RunInstances", Dry: true}); strings.Contains(p.Cause+p.Next, "carried out") || strings.Contains(p.Next, "what became of it") {
		t.Errorf("a dry run: %s; %s", p.Cause, p.Next)
	}
}

// A configuration that can't be used has made no call, and is the user's to look at.
func TestAConfigurationThatCanNotBeUsedIsNoCallThatBroke(t *testing.T) {
	for name, c := range map[string]struct{ key, value, says string }{
		"a way to repeat": {"AWS_RETRY_MODE", "nonsense", "nonsense"},
		"certificates":    {"AWS_CA_BUNDLE", "/no/such/bundle.pem", "/no/such/bundle.pem"},
		"no number":       {"AWS_MAX_ATTEMPTS", "many", "many"},
		"no address":      {"AWS_ENDPOINT_URL", "not a url", "the AWS endpoint can't be used"},
	} {
		isolate(t, "http://127.0.0.1:1")
		t.Setenv(c.key, c.value)
		api, err := Load(t.Context())
		if err == nil {
			_, err = api.Identity(t.Context())
		}
		p := Explain(err, Call{Action: "GetCallerIdentity"})
		if p == nil || p.Kind != NoCredentials && p.Kind != BadRequest || !strings.Contains(p.Cause, c.says) || !strings.Contains(p.Next, "AWS_") || strings.Contains(p.Cause, "carried out") {
			t.Errorf("%s: %+v", name, p)
		}
		t.Setenv(c.key, "")
	}
}
