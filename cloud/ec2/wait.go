package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/waits"
)

// crew finds out which machines the cluster has. One that AWS does not show is
// looked for until the settle window is over: it may be too young to be seen.
// Launches of which nothing is left are closed.
func (u *up) crew(ctx context.Context) (crew, error) {
	entries, err := u.open()
	if err != nil {
		return nil, err
	}
	var all []*member
	byToken := map[string][]*member{}
	for _, e := range entries {
		l, err := launchOf(e)
		if err != nil {
			return nil, err
		}
		for _, id := range ids(e) {
			m := &member{launch: l, token: e.Token, id: id}
			all, byToken[e.Token] = append(all, m), append(byToken[e.Token], m)
		}
	}
	if err := u.show(ctx, all); err != nil {
		return nil, err
	}
	c := crew{}
	for _, e := range entries {
		if err := u.enlist(c, e, byToken[e.Token]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// enlist takes the living machines of one launch into the crew. When none is
// left the launch is closed.
func (u *up) enlist(c crew, e cloud.Entry, launched []*member) error {
	var proofs []string
	for i, m := range launched {
		proof := u.lost(m)
		if proof != "" {
			proofs = append(proofs, m.id+" "+proof)
		}
		if proof != "" || dying(m.seen) {
			continue
		}
		if i >= len(m.launch.Nodes) || m.launch.Nodes[i] >= nodesOf(u.spec) {
			return fmt.Errorf("this cluster was begun with more than %d nodes: %s is one too many", nodesOf(u.spec), m.id)
		}
		c[m.launch.Nodes[i]] = m
	}
	if len(proofs) < len(launched) {
		return nil
	}
	return u.life.Ledger.Close(e.Token, strings.Join(proofs, "; "))
}

// lost is the proof that a machine is no more; empty when there is none.
func (u *up) lost(m *member) string {
	switch {
	case !m.shown:
		return fmt.Sprintf("was not listed by AWS for %s", u.p.settle)
	case phaseOf(m.seen) == "terminated":
		return goneProof(instanceThing(m.seen), time.Now())
	}
	return ""
}

// dying reports whether a machine is on its way out, or was.
func dying(i types.Instance) bool {
	phase := phaseOf(i)
	return phase == "shutting-down" || phase == "terminated"
}

// show looks until every machine was seen, for the settle window at most.
func (u *up) show(ctx context.Context, all []*member) error {
	limit := deadlineIn(u.p.settle)
	for told := false; ; {
		err := u.look(ctx, all)
		unseen := slices.ContainsFunc(all, func(m *member) bool { return !m.shown })
		switch {
		case err == nil && !unseen:
			return nil
		case limit.over():
			return err
		case unseen && !told:
			u.say(-1, "AWS does not list every machine yet")
			told = true
		}
		if err := waits.Pause(ctx, u.p.poll()); err != nil {
			return err
		}
	}
}

// look asks AWS once for the state of machines. One that it does not list is
// left as it was.
func (u *up) look(ctx context.Context, all []*member) error {
	byRegion := map[string][]string{}
	for _, m := range all {
		byRegion[m.launch.Region] = append(byRegion[m.launch.Region], m.id)
	}
	seen := map[string]types.Instance{}
	for region, ids := range byRegion {
		if err := u.p.instances(ctx, region, ids, seen); err != nil {
			return err
		}
	}
	for _, m := range all {
		if i, ok := seen[m.id]; ok {
			m.seen, m.shown = i, true
		}
	}
	return nil
}

// instances asks for instances by id and puts those that AWS lists into seen.
func (p *Provider) instances(ctx context.Context, region string, ids []string, seen map[string]types.Instance) error {
	ec2, err := p.connect(ctx, region)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, mostValues) {
		err := eachInstance(ctx, ec2, []types.Filter{filter("instance-id", some...)}, func(i types.Instance) { seen[aws.ToString(i.InstanceId)] = i })
		if problem := awsapi.Explain(err, awsapi.Call{Action: "DescribeInstances", Region: region}); problem != nil {
			return problem
		}
	}
	return nil
}

// ready waits until all machines run and have their addresses, and makes sure
// that a shutdown ends them.
func (u *up) ready(ctx context.Context, c crew) error {
	err := u.await(ctx, c.sorted(), func(m *member) bool {
		return phaseOf(m.seen) == "running" && m.host() != "" && m.peer() != ""
	})
	if err != nil {
		return err
	}
	return u.mortal(ctx, c.sorted())
}

// await looks until all machines are as wanted. That one was lost ends it.
func (u *up) await(ctx context.Context, all []*member, wanted func(*member) bool) error {
	said := make([]string, len(all))
	for limit := deadlineIn(phaseLimit * u.p.settle); ; {
		left := 0
		for node, m := range all {
			if dying(m.seen) {
				return fmt.Errorf("node %d (%s) was lost: %s; %w", node, m.id, lossText(m.seen), errLost)
			}
			if !wanted(m) {
				left++
			}
			if now := phaseOf(m.seen); now != said[node] {
				said[node] = now
				u.say(node, m.id+" is "+phaseText(now))
			}
		}
		if left == 0 {
			return nil
		}
		if limit.over() {
			return fmt.Errorf("%d of %d machines are not ready after %s; see aws ec2 describe-instances --region %s --instance-ids %s",
				left, len(all), phaseLimit*u.p.settle, all[0].launch.Region, all[0].id)
		}
		if err := waits.Pause(ctx, u.p.poll()); err != nil {
			return err
		}
		if err := u.look(ctx, all); err != nil && !passing(err) {
			return err
		}
	}
}

// phaseLimit is how many settle windows machines have for a change of phase.
const phaseLimit = 5

// passing reports whether a look that failed is worth repeating.
func passing(err error) bool {
	return is(err, awsapi.Unknown) || is(err, awsapi.Throttled) || is(err, awsapi.Unreachable)
}

// phaseText says what to expect of an instance's phase.
func phaseText(phase string) string {
	switch phase {
	case "pending":
		return "pending; it usually runs within a minute"
	case "stopping":
		return "stopping; that usually takes a minute"
	}
	return phase
}

// lossText is what AWS says of how a machine came to its end.
func lossText(i types.Instance) string {
	if i.StateReason == nil {
		return "AWS does not say why"
	}
	return aws.ToString(i.StateReason.Code) + " (" + aws.ToString(i.StateReason.Message) + ")"
}

// mortal makes sure that machines end when they shut themselves down: on that
// their lease relies.
func (u *up) mortal(ctx context.Context, all []*member) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, m := range all {
		g.Go(func() error { return u.p.mortal(ctx, m.launch.Region, m.id) })
	}
	return g.Wait()
}

// errImmortal is that a machine would only stop.
var errImmortal = errors.New("would not end when its lease shuts it down: take the cluster down, or set its shutdown behaviour to terminate by hand")

func (p *Provider) mortal(ctx context.Context, region, id string) error {
	ec2, err := p.connect(ctx, region)
	if err != nil {
		return err
	}
	ok, err := p.terminates(ctx, ec2, region, id)
	if ok || err != nil {
		return err
	}
	behaviour := string(types.ShutdownBehaviorTerminate)
	err = p.insist(ctx, awsapi.Call{Action: "ModifyInstanceAttribute", Region: region, ID: id}, func() error {
		_, err := ec2.ModifyInstanceAttribute(ctx, &awsec2.ModifyInstanceAttributeInput{InstanceId: &id,
			InstanceInitiatedShutdownBehavior: &types.AttributeValue{Value: &behaviour}}, awsapi.Once)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %w: %w", id, errImmortal, err)
	}
	for b := p.backoff(); ; { // the change may take a while to be seen
		ok, err := p.terminates(ctx, ec2, region, id)
		if ok || err != nil {
			return err
		}
		if !b.wait(ctx) {
			return fmt.Errorf("%s %w", id, errImmortal)
		}
	}
}

// terminates reports whether a machine ends when it shuts itself down.
func (p *Provider) terminates(ctx context.Context, ec2 machines, region, id string) (ok bool, err error) {
	err = p.insist(ctx, awsapi.Call{Action: "DescribeInstanceAttribute", Region: region, ID: id}, func() error {
		out, err := ec2.DescribeInstanceAttribute(ctx, &awsec2.DescribeInstanceAttributeInput{InstanceId: &id,
			Attribute: types.InstanceAttributeNameInstanceInitiatedShutdownBehavior})
		if err == nil && out.InstanceInitiatedShutdownBehavior != nil {
			ok = aws.ToString(out.InstanceInitiatedShutdownBehavior.Value) == string(types.ShutdownBehaviorTerminate)
		}
		return err
	})
	return ok, err
}
