package ec2

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud/ec2/policy"
)

// allowed are the actions of a policy.
func allowed(t *testing.T, text string) []string {
	t.Helper()
	var p policy.Document
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range p.Statement {
		all = append(all, s.Action...)
	}
	return all
}

// inputs are how a call shows in the source.
var inputs = regexp.MustCompile(`\b(ec2|awsec2|ssm|servicequotas|pricing)\.([A-Z][A-Za-z]+)Input\{`)

// What the policy allows is what the source asks for, and no more.
func TestThePolicyIsTheLeast(t *testing.T) {
	asked := map[string]bool{"ec2:CreateTags": true, "iam:CreateServiceLinkedRole": true}
	calls := reflect.TypeFor[client]()
	for i := range calls.NumMethod() {
		asked["ec2:"+calls.Method(i).Name] = true
	}
	for _, dir := range []string{".", "catalog", "awsapi", "ami", "vpc", "door", "volume"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range inputs.FindAllStringSubmatch(string(b), -1) {
				asked[strings.TrimPrefix(m[1], "aws")+":"+m[2]] = true
			}
		}
	}
	all := allowed(t, policy.Least(""))
	for action := range asked {
		if !slices.Contains(all, action) {
			t.Errorf("%s is called and not allowed", action)
		}
	}
	for _, action := range all {
		if !asked[action] {
			t.Errorf("%s is allowed and never called", action)
		}
	}
}

// Whatever ends something may end only what is dlwb's.
func TestThePolicyEndsOnlyWhatIsTagged(t *testing.T) {
	var p policy.Document
	if err := json.Unmarshal([]byte(policy.Least("arn:aws:iam::123456789012:role/results", "us-east-1")), &p); err != nil {
		t.Fatal(err)
	}
	dangerous := regexp.MustCompile(`^ec2:(Terminate|Stop|Start|Delete|Revoke|Modify|Cancel|Release|Authorize)`)
	regional := 0
	for _, s := range p.Statement {
		for _, action := range s.Action {
			if dangerous.MatchString(action) && !slices.Equal(s.Condition["StringLike"]["aws:ResourceTag/dlwb:life"], []string{"*"}) {
				t.Errorf("%s is allowed on everything", action)
			}
		}
		if slices.Equal(s.Condition["StringEquals"]["aws:RequestedRegion"], []string{"us-east-1"}) {
			regional++
		}
	}
	if regional != 3 {
		t.Errorf("%d statements are for the region only, want 3", regional)
	}
	if last := p.Statement[len(p.Statement)-1]; last.Action[0] != "iam:PassRole" || last.Resource[0] != "arn:aws:iam::123456789012:role/results" {
		t.Errorf("%+v", last)
	}
}

func TestThePageHasThePolicy(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "aws.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```json\n"+policy.Least("")+"\n```") {
		t.Errorf("docs/aws.md does not have the policy of today:\n%s", policy.Least(""))
	}
}

func TestAGrantIsForWhoAsks(t *testing.T) {
	for arn, want := range map[string]string{
		"arn:aws:iam::123456789012:user/team/ann":                                          "put-user-policy --user-name ann ",
		"arn:aws:sts::123456789012:assumed-role/trainer/ann":                               "put-role-policy --role-name trainer ",
		"arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Power_0123456789abcdef/ann": "permission set",
		"arn:aws:iam::123456789012:root":                                                   "allows:",
		"":                                                                                 "allows:",
	} {
		got := policy.Grant(arn, []string{"ec2:RunInstances", "ec2:CreateTags", "ec2:RunInstances"})
		if !strings.Contains(got, want) || !strings.Contains(got, `"Action":["ec2:CreateTags","ec2:RunInstances"]`) {
			t.Errorf("%s: %s", arn, got)
		}
	}
}
