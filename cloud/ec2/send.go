package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/internal/waits"
)

// start launches machines: the intent first, then the call. It returns why AWS
// refused, when it is certain that nothing was made.
func (u *up) start(ctx context.Context, l launch, terms leaseTerms) (refused *awsapi.Problem, err error) {
	entries, err := u.life.Ledger.Entries()
	if err != nil {
		return nil, err
	}
	token := newToken(u.life, kindInstances, entries)
	text, err := u.userData(l, terms)
	if err != nil {
		return nil, err
	}
	if l.UserData, err = keepUserData(u.life.Dir, token, text); err != nil {
		return nil, err
	}
	if err := u.life.Ledger.Intend(kindInstances, token, l); err != nil {
		return nil, err
	}
	return u.send(ctx, token, l, false)
}

// send makes the call of an intent until it is known what became of it. The
// token makes AWS answer a repeated call with what the first one has made.
//
// doubt says that the call may have been sent before, and nobody knows with
// what result. A refusal proves then only that this time nothing was made: it
// takes the settle window to be sure of the times before.
func (u *up) send(ctx context.Context, token string, l launch, doubt bool) (refused *awsapi.Problem, err error) {
	text, err := userData(u.life.Dir, token, l.UserData)
	if err != nil {
		return nil, err
	}
	ec2, err := u.p.connect(ctx, l.Region)
	if err != nil {
		return nil, err
	}
	_, quota := catalog.QuotaName(l.Instance, l.Spot)
	call := awsapi.Call{Action: "RunInstances", Region: l.Region, Zone: l.Zone, Instance: l.Instance,
		Count: len(l.Nodes), VCPUs: l.VCPUs, Spot: l.Spot, Quota: quota}
	for b := u.p.backoff(); ; {
		made, problem := runOnce(ctx, ec2, l.input(token, text), call)
		if problem == nil {
			return nil, u.life.Ledger.Resolve(token, made)
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), problem)
		}
		doubt = doubt || problem.Kind == awsapi.Unknown || problem.Kind == awsapi.Mismatch
		switch problem.Kind {
		case awsapi.Unknown, awsapi.Throttled, awsapi.Unreachable, awsapi.NotFound:
			if b.wait(ctx) {
				u.say(-1, problem.Cause+"; asking again with the same token")
				continue
			}
			if problem.Kind == awsapi.Unknown || ctx.Err() != nil {
				return nil, errors.Join(ctx.Err(), problem)
			}
		}
		return u.refusal(ctx, ec2, token, l, problem, doubt)
	}
}

// refusal closes an intent that AWS has refused, unless an earlier call of it
// turns out to have made something.
func (u *up) refusal(ctx context.Context, ec2 machines, token string, l launch, problem *awsapi.Problem, doubt bool) (*awsapi.Problem, error) {
	proof := "AWS refused: " + problem.Cause
	if doubt {
		made, err := u.watch(ctx, ec2, token, len(l.Nodes))
		if err != nil {
			return nil, errors.Join(err, problem)
		}
		if made != "" {
			return nil, u.life.Ledger.Resolve(token, made)
		}
		proof += fmt.Sprintf("; nothing with the token %s was seen for %s", token, u.p.settle)
	}
	return problem, u.life.Ledger.Close(token, proof)
}

// runOnce sends the call once; it returns the ids of what it made, in the order
// of the nodes. An answer that does not say them all leaves it open what was
// made.
func runOnce(ctx context.Context, ec2 machines, in *awsec2.RunInstancesInput, call awsapi.Call) (made string, problem *awsapi.Problem) {
	out, err := ec2.RunInstances(ctx, in, awsapi.Once)
	if err != nil {
		return "", awsapi.Explain(err, call)
	}
	if made = inOrder(out.Instances, call.Count); made == "" {
		return "", &awsapi.Problem{Kind: awsapi.Unknown, Cause: "AWS's answer to RunInstances does not name every machine"}
	}
	return made, nil
}

// inOrder are the ids of machines by their launch index; empty unless they are
// all there.
func inOrder(all []types.Instance, count int) string {
	slices.SortFunc(all, func(a, b types.Instance) int {
		return cmp.Compare(aws.ToInt32(a.AmiLaunchIndex), aws.ToInt32(b.AmiLaunchIndex))
	})
	var ids []string
	for _, i := range all {
		if id := aws.ToString(i.InstanceId); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) != count {
		return ""
	}
	return strings.Join(ids, ",")
}

// watch looks for what a token has made, for the settle window; empty when it
// made nothing.
func (u *up) watch(ctx context.Context, ec2 machines, token string, count int) (made string, err error) {
	u.say(-1, fmt.Sprintf("an earlier call may have made machines all the same: looking for them for %s", u.p.settle))
	for limit := deadlineIn(u.p.settle); ; {
		late := limit.over() // before the look: what was made is to be seen by then
		var found []types.Instance
		err := eachOfTokens(ctx, ec2, []string{token}, func(i types.Instance) { found = append(found, i) })
		switch {
		case err == nil && inOrder(found, count) != "":
			return inOrder(found, count), nil
		case err == nil && late && len(found) == 0:
			return "", nil
		case err == nil && late:
			return "", fmt.Errorf("%d of the %d machines of %s are to be seen", len(found), count, token)
		case err != nil && late:
			return "", awsapi.Explain(err, awsapi.Call{Action: "DescribeInstances"})
		}
		if err := waits.Pause(ctx, u.p.poll()); err != nil {
			return "", err
		}
	}
}

// resume finds out what the launches of earlier Ups have come to, and which
// machines of theirs there still are.
func (u *up) resume(ctx context.Context) (crew, error) {
	entries, err := u.life.Ledger.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Kind != kindInstances || !e.Open() || e.ID != "" {
			continue
		}
		l, err := launchOf(e)
		if err != nil {
			return nil, err
		}
		u.say(-1, "asking what became of an earlier launch of "+l.what()+" in "+l.Zone)
		refused, err := u.send(ctx, e.Token, l, true)
		if err != nil {
			return nil, err
		}
		if refused != nil {
			u.say(-1, l.Zone+": "+refused.Cause)
		}
	}
	return u.crew(ctx)
}

// open are the launches that may have machines.
func (u *up) open() ([]cloud.Entry, error) {
	entries, err := u.life.Ledger.Entries()
	return slices.DeleteFunc(entries, func(e cloud.Entry) bool { return e.Kind != kindInstances || !e.Open() || e.ID == "" }), err
}
