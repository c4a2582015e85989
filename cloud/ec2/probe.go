package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
)

// Probe asks AWS what each node's machine is doing. A machine that AWS does not
// list is Unknown: it may be too young to be seen, or long gone.
func (p *Provider) Probe(ctx context.Context, c cloud.Cluster) ([]cloud.Status, error) {
	all := make([]cloud.Status, len(c.Nodes))
	var ids []string
	for i, n := range c.Nodes {
		all[i].State = cloud.Unknown
		ids = append(ids, n.ID)
	}
	seen := map[string]types.Instance{}
	if err := p.instances(ctx, c.Region, ids, seen); err != nil {
		return all, err
	}
	for i, n := range c.Nodes {
		if instance, ok := seen[n.ID]; ok {
			all[i] = statusOf(instance)
		} else {
			all[i].Why = "AWS does not list " + n.ID
		}
	}
	return all, nil
}

func statusOf(i types.Instance) cloud.Status {
	s := cloud.Status{State: cloud.Alive, Phase: phaseOf(i)}
	switch s.Phase {
	case "":
		s.State = cloud.Unknown
	case "terminated":
		s.State = cloud.Gone
	}
	if s.Phase != "pending" && s.Phase != "running" {
		s.Why = reasonText(aws.ToString(i.StateTransitionReason), whyOf(i))
	}
	return s
}

// reasonText is how an instance came to its state, in words where it has some.
func reasonText(transition, code string) string {
	switch code {
	case "":
		return transition
	case "Server.SpotInstanceTermination", "Server.SpotInstanceShutdown":
		return "reclaimed by EC2: " + code
	case "Client.InstanceInitiatedShutdown":
		return "it shut itself down: " + code
	case "Client.UserInitiatedShutdown":
		return "somebody ended it: " + code
	}
	return code
}
