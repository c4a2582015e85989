package ec2

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/door"
	"github.com/dlwb/dlwb/cloud/ec2/reach"
)

// consoleLines is how much of a console is shown.
const consoleLines = 12

// Testify says why a machine may be silent: what its security groups let in beside
// where this machine is seen to come from now, and what its way needs. It brings
// the end of its console.
func (p *Provider) Testify(ctx context.Context, c cloud.Cluster, node int) (causes, console []string) {
	if node < 0 || node >= len(c.Nodes) {
		return nil, nil
	}
	n := c.Nodes[node]
	seen := map[string]types.Instance{}
	if err := p.instances(ctx, c.Region, []string{n.ID}, seen); err != nil {
		return []string{"AWS can't be asked about it: " + err.Error()}, nil
	}
	i, listed := seen[n.ID]
	if !listed {
		return []string{"AWS does not list " + n.ID}, nil
	}
	if phase := phaseOf(i); phase != "running" {
		causes = append(causes, n.ID+" is "+phase)
	}
	switch {
	case n.Way == reach.SSM:
		causes = append(causes, "Systems Manager's agent on it registers only with an instance profile that has AmazonSSMManagedInstanceCore, and with a way out (NAT, or VPC endpoints for ssm and ssmmessages)")
	case n.Way != "":
		causes = append(causes, "the endpoint reaches it only where its security groups let the endpoint's group in on "+portOf(n.Addr))
	case len(n.Jumps) > 0:
		causes = append(causes, n.Jumps[len(n.Jumps)-1].Name+" reaches it only where its security groups let that host in on "+portOf(n.Addr))
	default:
		causes = append(causes, p.outside(ctx, c, i, n)...)
	}
	return causes, p.console(ctx, c.Region, n.ID)
}

func portOf(addr string) string {
	return "port " + addr[strings.LastIndex(addr, ":")+1:]
}

// outside compares where this machine is seen to come from with what the groups of
// an instance let in.
func (p *Provider) outside(ctx context.Context, c cloud.Cluster, i types.Instance, n cloud.Node) []string {
	ec2, err := p.connect(ctx, c.Region)
	if err != nil {
		return nil
	}
	all, err := describeGroups(ctx, ec2, c.Region, aws.ToString(i.VpcId))
	if err != nil {
		return nil
	}
	all = slices.DeleteFunc(all, func(g types.SecurityGroup) bool {
		return !slices.ContainsFunc(i.SecurityGroups, func(of types.GroupIdentifier) bool { return aws.ToString(of.GroupId) == aws.ToString(g.GroupId) })
	})
	let := door.LetIn(all)
	seen, err := p.seenFrom(ctx, strings.HasPrefix(n.Addr, "["))
	now := door.Names(seen)
	const many = "who goes out by several addresses (a proxy, a VPN, CGNAT) names them in machines.ssh_from; a firewall on this side may let no ssh out"
	switch {
	case err != nil:
		return []string{fmt.Sprintf("ssh is let in from %s only, and where this machine comes from can't be found out (%v); %s", let, err, many)}
	case (door.Door{Nets: seen}).Shut(all, portNumber(n.Addr)) != "":
		return []string{fmt.Sprintf("this machine now comes from %s, and ssh is let in from %s only: dlwb up lets it in from there; %s", now, let, many)}
	}
	return []string{fmt.Sprintf("ssh is let in from %s, and this machine is seen to come from %s; ssh itself may go out by another way: %s", let, now, many)}
}

func portNumber(addr string) int32 {
	var n int32
	_, _ = fmt.Sscanf(addr[strings.LastIndex(addr, ":")+1:], "%d", &n) // 0 is no port that a rule covers
	return n
}

// console is the end of what a machine has written to its console; nothing where
// AWS has none yet.
func (p *Provider) console(ctx context.Context, region, id string) []string {
	ec2, err := p.connect(ctx, region)
	if err != nil {
		return nil
	}
	out, err := ec2.GetConsoleOutput(ctx, &awsec2.GetConsoleOutputInput{InstanceId: &id, Latest: aws.Bool(true)})
	if err != nil { // only the newer types have the latest
		out, err = ec2.GetConsoleOutput(ctx, &awsec2.GetConsoleOutputInput{InstanceId: &id})
	}
	if err != nil {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(aws.ToString(out.Output))
	if err != nil {
		return nil
	}
	return lastLines(string(text), consoleLines)
}

// lastLines are the last lines of a text that say anything.
func lastLines(text string, most int) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all[max(0, len(all)-most):]
}

var _ cloud.Witness = (*Provider)(nil)
