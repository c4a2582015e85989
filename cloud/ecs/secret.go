package ecs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/dlwb/dlwb/cloud"
)

// tokenVar is the variable from which Ray takes the token that everybody shows.
const tokenVar = "RAY_AUTH_TOKEN"

// secretName is the parameter of Systems Manager that holds the token of a life.
func secretName(life cloud.Life) string { return "/dlwb/" + clusterName(life) + "/ray-token" }

// rayToken brings the token of Ray to the containers: by an encrypted parameter that
// ECS reads with the execution role, where there is one, else in the task definition,
// which everybody reads who may describe it.
func (m *maker) rayToken(ctx context.Context) (env []string, secrets []ecstypes.Secret, err error) {
	token, err := tokenOf(m.life)
	if err != nil {
		return nil, nil, err
	}
	if m.own.ExecutionRole == "" {
		return []string{tokenVar, token}, nil, nil
	}
	name := secretName(m.life)
	arn, err := m.ensure(ctx, kindSecret, name, 0, func() (string, error) {
		in := &ssm.PutParameterInput{Name: &name, Type: ssmtypes.ParameterTypeSecureString, Value: &token, Description: aws.String("token of a Ray cluster of dlwb")}
		for _, t := range tagsOf(m.life, m.ends, m.own.Tags) {
			in.Tags = append(in.Tags, ssmtypes.Tag{Key: aws.String(t[0]), Value: aws.String(t[1])})
		}
		if _, err := m.api.SSM(m.region).PutParameter(ctx, in); err != nil {
			return "", err
		}
		return findSecret(ctx, m.door, name)
	}, findSecret)
	return nil, []ecstypes.Secret{{Name: aws.String(tokenVar), ValueFrom: &arn}}, err
}

// findSecret finds a parameter. What it holds stays encrypted.
func findSecret(ctx context.Context, d *door, name string) (string, error) {
	out, err := d.api.SSM(d.region).GetParameter(ctx, &ssm.GetParameterInput{Name: &name, WithDecryption: aws.Bool(false)})
	if absent(err) {
		return "", nil
	}
	if err != nil || out.Parameter == nil {
		return "", err
	}
	return aws.ToString(out.Parameter.ARN), nil
}

// checkToken looks whether ECS can read the token of Ray, and says where it stands
// without that.
func (c *check) checkToken(ctx context.Context) []cloud.Finding {
	const what = "token"
	role := c.own.ExecutionRole
	if role == "" {
		return []cloud.Finding{cloud.Warning(what, "the token of Ray stands in the task definitions: who may describe those in the account can read it", "machines.task_execution_role has it in an encrypted parameter")}
	}
	refused, err := c.refusedTo(ctx, role, "ssm:GetParameters")
	switch {
	case err != nil:
		return []cloud.Finding{cloud.Unchecked(what, "what "+role+" may do is not visible to you: "+c.explain(err).Error(), "it needs ssm:GetParameters")}
	case len(refused) > 0:
		return []cloud.Finding{{What: what, Text: role + " may not ssm:GetParameters: no container would start", Next: "allow it that on parameter/dlwb/*, or leave machines.task_execution_role out"}}
	}
	return []cloud.Finding{cloud.Passed(what, "the token of Ray is an encrypted parameter, which "+role+" reads")}
}

// refusedTo are those of some actions that a role may not do, by IAM's simulator.
func (c *check) refusedTo(ctx context.Context, role string, actions ...string) (refused []string, err error) {
	sim, err := c.iam.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &role, ActionNames: actions})
	if err != nil {
		return nil, err
	}
	for _, r := range sim.EvaluationResults {
		if r.EvalDecision != iamtypes.PolicyEvaluationDecisionTypeAllowed {
			refused = append(refused, aws.ToString(r.EvalActionName))
		}
	}
	return refused, nil
}
