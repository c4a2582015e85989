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

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// Stop stops the machines of a cluster. Their disks stay, and cost.
func (p *Provider) Stop(ctx context.Context, life cloud.Life, c cloud.Cluster, progress cloud.Progress) (cloud.Cluster, error) {
	stopped, err := p.suspend(ctx, life, c, orSilent(progress))
	if err != nil {
		return c, fmt.Errorf("stop cluster %s: %w", life.Name, err)
	}
	return stopped, nil
}

func (p *Provider) suspend(ctx context.Context, life cloud.Life, c cloud.Cluster, say cloud.Progress) (cloud.Cluster, error) {
	u, crew, err := p.muster(ctx, life, c, say)
	if err != nil {
		return c, err
	}
	if slices.ContainsFunc(crew.launches(), func(l launch) bool { return l.Spot }) {
		return c, errors.New("machines of the spot market can't be stopped, only ended: take the cluster down")
	}
	all := crew.sorted()
	if err := u.noteStop(c.Region, all); err != nil {
		return c, err
	}
	err = p.insist(ctx, awsapi.Call{Action: "StopInstances", Region: c.Region}, func() error {
		ec2, err := p.connect(ctx, c.Region)
		if err != nil {
			return err
		}
		_, err = ec2.StopInstances(ctx, &awsec2.StopInstancesInput{InstanceIds: idsOf(all)}, awsapi.Once)
		return err
	})
	if err != nil {
		return c, err
	}
	if err := u.await(ctx, all, func(m *member) bool { return phaseOf(m.seen) == "stopped" }); err != nil {
		return c, err
	}
	c.Stopped, c.Nodes = true, slices.Clone(c.Nodes)
	for i := range c.Nodes {
		c.Nodes[i].Addr = ""
	}
	c.Costs = stoppedCosts(crew.launches())
	c.PricePerHour = sum(c.Costs)
	return c, nil
}

// Start starts the machines of a cluster again. Their public addresses are new.
func (p *Provider) Start(ctx context.Context, life cloud.Life, c cloud.Cluster, progress cloud.Progress) (cloud.Cluster, error) {
	started, err := p.wake(ctx, life, c, orSilent(progress))
	if err != nil {
		return c, fmt.Errorf("start cluster %s: %w", life.Name, err)
	}
	return started, nil
}

func (p *Provider) wake(ctx context.Context, life cloud.Life, c cloud.Cluster, say cloud.Progress) (cloud.Cluster, error) {
	u, crew, err := p.muster(ctx, life, c, say)
	if err != nil {
		return c, err
	}
	all := crew.sorted()
	if slices.ContainsFunc(all, func(m *member) bool { return phaseOf(m.seen) == "stopping" }) {
		if err := u.await(ctx, all, func(m *member) bool { return phaseOf(m.seen) != "stopping" }); err != nil {
			return c, err
		}
	}
	slept := sleptSince(all)
	l := crew.sorted()[len(all)-1].launch // not the head's
	call := awsapi.Call{Action: "StartInstances", Region: l.Region, Zone: l.Zone, Instance: l.Instance, Count: len(all), VCPUs: l.VCPUs}
	err = p.insist(ctx, call, func() error {
		ec2, err := p.connect(ctx, c.Region)
		if err != nil {
			return err
		}
		_, err = ec2.StartInstances(ctx, &awsec2.StartInstancesInput{InstanceIds: idsOf(all)}, awsapi.Once)
		return err
	})
	if err != nil {
		return c, err
	}
	if err := u.ready(ctx, crew); err != nil {
		return c, err
	}
	if err := u.noteStart(); err != nil {
		return c, err
	}
	c.Stopped, c.Nodes = false, slices.Clone(c.Nodes)
	for i, m := range all {
		n := &c.Nodes[i]
		n.Addr = m.addr(n.PeerPort)
		n.PeerHost = m.peer()
	}
	if !slept.IsZero() && !c.ExpiresAt.IsZero() {
		c.ExpiresAt = c.ExpiresAt.Add(max(0, time.Since(slept))) // the lease counts the time that machines run
	}
	c.Costs = costs(crew.launches())
	c.PricePerHour = sum(c.Costs)
	return c, nil
}

// noteStop writes down from when on only the disks cost.
func (u *up) noteStop(region string, all []*member) error {
	entries, err := u.life.Ledger.Entries()
	if err != nil || slices.ContainsFunc(entries, func(e cloud.Entry) bool { return e.Kind == kindStop && e.Open() }) {
		return err
	}
	token := newToken(u.life, kindStop, entries)
	if err := u.life.Ledger.Intend(kindStop, token, free{Region: region, Name: baseName(u.life)}); err != nil {
		return err
	}
	return u.life.Ledger.Resolve(token, strings.Join(idsOf(all), ","))
}

// noteStart writes down that everything costs again.
func (u *up) noteStart() error {
	entries, err := u.life.Ledger.Entries()
	for _, e := range entries {
		if e.Kind == kindStop && e.Open() {
			err = errors.Join(err, u.life.Ledger.Close(e.Token, "the machines were started again"))
		}
	}
	return err
}

// muster finds the machines of a cluster that was up.
func (p *Provider) muster(ctx context.Context, life cloud.Life, c cloud.Cluster, say cloud.Progress) (*up, crew, error) {
	u := &up{p: p, life: life, say: say, spec: cloud.Spec{Name: c.Name, Count: len(c.Nodes)}}
	crew, err := u.crew(ctx)
	if err != nil {
		return nil, nil, err
	}
	if missing := crew.missing(len(c.Nodes)); len(missing) > 0 || len(c.Nodes) == 0 {
		return nil, nil, fmt.Errorf("%d of %d machines are not there any more: %w", len(missing), len(c.Nodes), errLost)
	}
	return u, crew, nil
}

func idsOf(all []*member) []string {
	var ids []string
	for _, m := range all {
		ids = append(ids, m.id)
	}
	return ids
}

// sleptSince is when the last of the machines was stopped; zero when AWS does
// not tell.
func sleptSince(all []*member) time.Time {
	var last time.Time
	for _, m := range all {
		if t := transition(aws.ToString(m.seen.StateTransitionReason)); phaseOf(m.seen) == "stopped" && t.After(last) {
			last = t
		}
	}
	return last
}
