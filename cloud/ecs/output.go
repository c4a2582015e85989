package ecs

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/objects"
)

// A run on ECS writes what is to come home to S3 itself, below an address of its own in
// results.s3: the training libraries of Ray do so from every worker, and what is there
// outlasts the machines, however they end.

var _ cloud.Keeper = (*Provider)(nil)

// outputVar is the variable in which a run finds its place in S3.
const outputVar = "DLWB_OUTPUT"

// The words of run.command that stand for that place: all of the address, and what is
// behind s3:// of it, for scripts that take a bucket's name.
const (
	outputMark = "{output}"
	bucketMark = "{bucket}"
)

const scheme = "s3://"

// outputOf is where a run writes; empty: nowhere. The life keeps two people apart whose
// runs have one id.
func outputOf(spec cloud.Spec, life cloud.Life, run string) string {
	if spec.Drain.S3 == "" {
		return ""
	}
	return strings.Join([]string{strings.TrimRight(spec.Drain.S3, "/"), life.Name, life.ID, run}, "/")
}

// told are processes whose words have the place of the run in S3.
func told(procs []cloud.JobProc, output string) []cloud.JobProc {
	put := strings.NewReplacer(outputMark, output, bucketMark, strings.TrimPrefix(output, scheme))
	all := slices.Clone(procs)
	for i := range all {
		all[i].Argv = slices.Clone(all[i].Argv)
		for n, word := range all[i].Argv {
			all[i].Argv[n] = put.Replace(word)
		}
	}
	return all
}

// Bring brings what a run has at its place in S3, which is there whether its cluster is
// or not.
func (p *Provider) Bring(ctx context.Context, _ cloud.Life, text string, into *os.Root) (left []string, err error) {
	r, err := readRef(text)
	if err != nil || r.Output == "" {
		return nil, err
	}
	if _, err := p.enter(ctx, r.Region, r.Account); err != nil {
		return nil, err // of another account, which may see nothing there
	}
	b, err := objects.Open(ctx, r.Output)
	if err != nil {
		return nil, err
	}
	return b.Bring(ctx, into)
}

// right is what the containers have to be allowed.
type right struct {
	resource string
	actions  []string
}

// rights are those to the place in S3: what Ray's and PyArrow's writers call, which
// remove older checkpoints too.
func (c *check) rights() []right {
	bucket, prefix, err := objects.Parse(c.spec.Drain.S3)
	if err != nil {
		return nil
	}
	base := "arn:" + c.partition() + ":s3:::" + bucket
	below := base + "/"
	if prefix != "" {
		below += prefix + "/"
	}
	return []right{{base, []string{"s3:ListBucket", "s3:GetBucketLocation"}},
		{below + "*", []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}}}
}

// partition is that of the region: aws, aws-cn, aws-us-gov.
func (c *check) partition() string {
	switch {
	case strings.HasPrefix(c.region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(c.region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// writer says whose rights the containers have.
func (c *check) writer() string {
	return cmp.Or(c.own.TaskRole, "the role of the instance profile "+c.own.Profile)
}

// policyOf is the least policy of rights, as JSON.
func policyOf(rights []right) string {
	type statement struct {
		Effect   string
		Action   []string
		Resource string
	}
	d := struct {
		Version   string
		Statement []statement
	}{Version: "2012-10-17"}
	for _, r := range rights {
		d.Statement = append(d.Statement, statement{"Allow", r.actions, r.resource})
	}
	text, _ := json.Marshal(d)
	return string(text)
}

// checkOutput looks whether the bucket of results.s3 is there, and whether the
// containers may write to it.
func (c *check) checkOutput(ctx context.Context) []cloud.Finding {
	const what = "results"
	place := c.spec.Drain.S3
	if place == "" {
		return nil
	}
	if _, err := objects.Open(ctx, place); err != nil {
		return []cloud.Finding{cloud.FromError(what, err, "")}
	}
	role, err := c.roleOfContainers(ctx)
	var refused []string
	if err == nil && role != "" {
		refused, err = c.refusedOn(ctx, role, c.rights())
	}
	switch {
	case err != nil:
		return []cloud.Finding{cloud.Unchecked(what, place+" is there; what "+c.writer()+" may do there is not visible to you: "+c.explain(err).Error(), "the policy that it needs is in the plan")}
	case role == "":
		return nil // what is wrong with the instance profile is said of that
	case len(refused) > 0:
		return []cloud.Finding{{What: what, Text: c.writer() + " may not " + strings.Join(refused, ", "), Next: "give it the policy that the plan shows"}}
	}
	return []cloud.Finding{cloud.Passed(what, "what the run writes to "+outputVar+", in "+place+", comes home; "+c.writer()+" may write there")}
}

// roleOfContainers is the ARN of the role whose rights the containers have; empty: there
// is no such instance profile.
func (c *check) roleOfContainers(ctx context.Context) (string, error) {
	if c.own.TaskRole != "" {
		return c.own.TaskRole, nil
	}
	out, err := c.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &c.own.Profile})
	if err != nil || out.InstanceProfile == nil || len(out.InstanceProfile.Roles) == 0 {
		return "", err
	}
	return aws.ToString(out.InstanceProfile.Roles[0].Arn), nil
}

// refusedOn are the rights that a role has not, by IAM's simulator.
func (c *check) refusedOn(ctx context.Context, role string, rights []right) (refused []string, err error) {
	for _, r := range rights {
		sim, err := c.iam.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &role, ActionNames: r.actions, ResourceArns: []string{r.resource}})
		if err != nil {
			return nil, err
		}
		for _, e := range sim.EvaluationResults {
			if e.EvalDecision != iamtypes.PolicyEvaluationDecisionTypeAllowed {
				refused = append(refused, aws.ToString(e.EvalActionName)+" on "+r.resource)
			}
		}
	}
	return refused, nil
}
