package ec2

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/door"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/cloud/ec2/reach"
	"github.com/dlwb/dlwb/cloud/ec2/vpc"
)

// wayKind is a kind of way to machines.
type wayKind string

const (
	wayPublic   wayKind = options.ReachPublic
	wayPrivate  wayKind = options.ReachPrivate
	wayEndpoint wayKind = options.ReachEndpoint
	waySSM      wayKind = options.ReachSSM
	wayJump     wayKind = "jump"
)

// way is how the machines of a network are reached.
type way struct {
	kind     wayKind
	jump     string
	endpoint reach.Endpoint
	groups   []string // of the endpoint
	// showsClient says that the endpoint's tunnels come from the caller's address.
	showsClient bool
}

// word is what is kept with a node; empty where TCP leads there.
func (w way) word() string {
	switch w.kind {
	case wayEndpoint:
		return reach.Through(w.endpoint)
	case waySSM:
		return reach.SSM
	}
	return ""
}

// wayText is the way for a person.
func (n network) wayText() string {
	w, family := n.Way, ""
	if n.Six {
		family = "IPv6 "
	}
	switch w.kind {
	case wayPrivate:
		return "reached by their private " + family + "addresses"
	case wayEndpoint:
		return "reached through the Instance Connect endpoint " + w.endpoint.ID
	case waySSM:
		return "reached through Systems Manager"
	case wayJump:
		return "reached through " + w.jump
	}
	return "reached by public " + family + "addresses"
}

// findWay is the way that the spec names, or the first that there is. routes says
// that some subnet has a route to the internet.
func findWay(ctx context.Context, ec2 client, region string, spec cloud.Spec, n network, all []types.Subnet, routes bool) (way, error) {
	named, of, noRoute := own(spec).Reach, n.VPC, errNoRoute
	if n.Six {
		noRoute = errNoRouteBySix
	}
	switch {
	case named == "" && own(spec).Jump != "":
		return way{kind: wayJump, jump: own(spec).Jump}, nil
	case (named == "" || named == options.ReachPublic) && routes:
		return way{kind: wayPublic}, nil
	case named == options.ReachPublic:
		return way{}, fmt.Errorf("%s of %s: %w", vpc.Text(all), of, noRoute)
	case named == options.ReachPrivate, named == options.ReachSSM:
		return way{kind: wayKind(named)}, nil
	}
	w, err := endpoint(ctx, ec2, region, n, named, all)
	if err != nil {
		return way{}, err
	}
	if w.kind == "" && named == "" {
		return way{}, fmt.Errorf("%s of %s: %w; an EC2 Instance Connect endpoint (aws ec2 create-instance-connect-endpoint --subnet-id %s --region %s), "+
			"a jump host (machines.jump) or Systems Manager (machines.reach: ssm) lead there; or name a subnet with such a route in machines.subnet", vpc.Text(all), of, noRoute, aws.ToString(all[0].SubnetId), region)
	}
	if w.kind == "" {
		return way{}, fmt.Errorf("%s in %s has no EC2 Instance Connect endpoint that can be used: aws ec2 create-instance-connect-endpoint --subnet-id %s --region %s",
			of, region, aws.ToString(all[0].SubnetId), region)
	}
	return w, nil
}

// usableStates are those in which an endpoint opens tunnels.
var usableStates = []string{"create-complete", "update-in-progress", "update-failed", "update-complete"}

// endpoint finds the Instance Connect endpoint of a VPC, or the one of that id: in
// one of the subnets, where there is one. Its kind is empty when there is none.
func endpoint(ctx context.Context, ec2 client, region string, n network, named string, all []types.Subnet) (way, error) {
	in := &awsec2.DescribeInstanceConnectEndpointsInput{Filters: []types.Filter{filter("state", usableStates...), filter("vpc-id", n.VPC)}}
	if strings.HasPrefix(named, "eice-") {
		in.InstanceConnectEndpointIds = []string{named}
	}
	var found []types.Ec2InstanceConnectEndpoint
	for pages := awsec2.NewDescribeInstanceConnectEndpointsPaginator(ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil && named == "" && !is(awsapi.Explain(err, awsapi.Call{}), awsapi.NoPermission) {
			return way{}, nil // nobody asked for one
		}
		if err != nil {
			return way{}, awsapi.Explain(err, awsapi.Call{Action: "DescribeInstanceConnectEndpoints", Region: region, ID: named})
		}
		found = append(found, page.InstanceConnectEndpoints...)
	}
	found = slices.DeleteFunc(found, func(e types.Ec2InstanceConnectEndpoint) bool {
		return aws.ToString(e.DnsName) == "" || !leadsTo(e, n.Six)
	})
	if len(found) == 0 {
		return way{}, nil
	}
	at := max(0, slices.IndexFunc(found, func(e types.Ec2InstanceConnectEndpoint) bool {
		return slices.ContainsFunc(all, func(s types.Subnet) bool { return aws.ToString(s.SubnetId) == aws.ToString(e.SubnetId) })
	}))
	e := found[at]
	return way{kind: wayEndpoint, endpoint: reach.Endpoint{ID: aws.ToString(e.InstanceConnectEndpointId), DNS: aws.ToString(e.DnsName)},
		groups: e.SecurityGroupIds, showsClient: aws.ToBool(e.PreserveClientIp)}, nil
}

// leadsTo reports whether an endpoint opens tunnels to addresses of a family
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-ec2-instance-connect-endpoints.html).
func leadsTo(e types.Ec2InstanceConnectEndpoint, six bool) bool {
	if six {
		return e.IpAddressType == types.IpAddressTypeDualstack || e.IpAddressType == types.IpAddressTypeIpv6
	}
	return e.IpAddressType != types.IpAddressTypeIpv6
}

// Reach connects to the sshd of a machine that has no public address.
func (p *Provider) Reach(ctx context.Context, c cloud.Cluster, n cloud.Node) (net.Conn, error) {
	api, err := p.api(ctx)
	if err != nil {
		return nil, err
	}
	if n.Way == reach.SSM {
		_, port, err := net.SplitHostPort(n.Addr)
		if err != nil {
			return nil, err
		}
		conn, err := reach.Session(ctx, api.SSM(c.Region), c.Region, api.Endpoint(), n.ID, port)
		if problem := sessionProblem(err, c.Region, n.ID); problem != nil {
			return nil, problem
		}
		return conn, err
	}
	e, err := reach.EndpointOf(n.Way)
	if err != nil {
		return nil, err
	}
	by := reach.Caller{Credentials: api.Credentials(), Region: c.Region, HTTP: api.Web(),
		Plain: strings.HasPrefix(api.Endpoint(), "http://") && door.Local(api.Endpoint())}
	return by.Tunnel(ctx, e, n.Addr)
}

// sessionProblem says what AWS's refusal of a session means; nil for another error.
func sessionProblem(err error, region, instance string) error {
	if err == nil || !strings.Contains(err.Error(), "operation error SSM") {
		return nil
	}
	p := awsapi.Explain(err, awsapi.Call{Action: "StartSession", Region: region, ID: instance})
	if p.Code == "TargetNotConnected" {
		return fmt.Errorf("the agent of Systems Manager on %s has not registered: it needs machines.instance_profile with AmazonSSMManagedInstanceCore, "+
			"and a way out to ssm, ssmmessages and ec2messages (NAT or VPC endpoints)", instance)
	}
	return p
}

// jumps are the hosts on the way, as plain data.
func (p *Provider) jumps(ctx context.Context, w way, ask bool) ([]cloud.Jump, error) {
	switch {
	case w.kind != wayJump || w.jump == "":
		return nil, nil
	case p.jumpTo == nil:
		return nil, fmt.Errorf("this dlwb can't go through %s", w.jump)
	}
	return p.jumpTo(ctx, w.jump, ask)
}

var _ cloud.Reacher = (*Provider)(nil)
