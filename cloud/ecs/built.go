package ecs

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ownimage"
)

// build makes the image of a profile's Dockerfile; nil: its image exists already.
func (p *Provider) build(ctx context.Context, j cloud.Job, enter func(step, text string), progress cloud.Progress) (*ownimage.Built, error) {
	order, err := ownimage.Ordered(j.Spec.Image, own(j.Spec).Repository)
	if err != nil || order == nil {
		return nil, err
	}
	d, err := p.doors.Open(ctx, regionOf(j.Spec))
	if err != nil {
		return nil, err
	}
	f, err := d.typeFacts(ctx, j.Spec.Instance)
	if err == nil && f.arm {
		err = otherProcessor(j.Spec.Instance)
	}
	if err != nil {
		return nil, err
	}
	b, err := ownimage.Make(ctx, d.api, d.region, *order, j.Code, enter, progress)
	return &b, err
}

func otherProcessor(instance string) error {
	return &plainError{"the image of a Dockerfile is built for " + ownimage.Platform + ", and " + instance + " has arm64 processors", "a type with x86_64 processors, or an image that exists"}
}

// checkImage looks what would be built of a Dockerfile, and whether ECS may pull it.
func (c *check) checkImage(ctx context.Context) []cloud.Finding {
	order, err := ownimage.Ordered(c.spec.Image, c.own.Repository)
	if err != nil {
		return []cloud.Finding{cloud.FromError("image", err, "")}
	}
	if order == nil {
		return nil
	}
	b, found := ownimage.Check(ctx, c.api, c.region, *order, c.spec.Code)
	if b.Address == "" {
		return []cloud.Finding{found}
	}
	c.built = &b
	return []cloud.Finding{found, c.mayPull(ctx, b)}
}

// mayPull looks whether the role by which ECS pulls the image may do so: the execution
// role of the tasks, else that of the machines.
func (c *check) mayPull(ctx context.Context, b ownimage.Built) cloud.Finding {
	const what = "image's role"
	role, next := c.own.ExecutionRole, "allow it "+strings.Join(append([]string{ownimage.All + " on *"}, ownimage.Pulls...), ", ")+" on "+b.ARN
	if role == "" {
		out, err := c.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &c.own.Profile})
		if err != nil || out.InstanceProfile == nil || len(out.InstanceProfile.Roles) == 0 {
			return cloud.Unchecked(what, "whether the machines may pull the image is not visible to you", next)
		}
		role = aws.ToString(out.InstanceProfile.Roles[0].Arn)
	}
	var refused []string
	for resource, actions := range map[string][]string{"*": {ownimage.All}, b.ARN: ownimage.Pulls} {
		sim, err := c.iam.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &role, ActionNames: actions, ResourceArns: []string{resource}})
		if err != nil {
			return cloud.Unchecked(what, "whether "+role+" may pull the image is not visible to you: "+c.explain(err).Error(), next)
		}
		for _, r := range sim.EvaluationResults {
			if r.EvalDecision != iamtypes.PolicyEvaluationDecisionTypeAllowed {
				refused = append(refused, aws.ToString(r.EvalActionName))
			}
		}
	}
	if slices.Sort(refused); len(refused) > 0 {
		return cloud.Finding{What: what, Text: role + " may not " + strings.Join(refused, ", ") + ": no container would start", Next: next}
	}
	return cloud.Passed(what, role+" may pull the image")
}

// images tells which images of a life's jobs stay in their repositories.
func images(entries []cloud.Entry, progress cloud.Progress) {
	var told []string
	for i := range entries {
		if entries[i].Kind != kindJob {
			continue
		}
		r, err := jobOf(&entries[i])
		if err != nil || r.Built == nil || slices.Contains(told, r.Built.Stays()) {
			continue
		}
		told = append(told, r.Built.Stays())
		progress(-1, r.Built.Stays())
	}
}
