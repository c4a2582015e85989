package ecs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/reach"
	"github.com/dlwb/dlwb/cloud/ecs/options"
	"github.com/dlwb/dlwb/cloud/ownimage"
	"github.com/dlwb/dlwb/internal/units"
)

// checkLimit bounds all of a check.
const checkLimit = 9 * time.Second

// Check asks AWS for what would keep the cluster from coming up, most of it at once.
func (p *Provider) Check(ctx context.Context, spec cloud.Spec) cloud.Preflight {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	var out cloud.Preflight
	gpus := p.Shape(spec).GPUs
	for range spec.Count {
		out.GPUs = append(out.GPUs, gpus)
	}
	c := &check{spec: spec, own: own(spec)}
	out.Findings = c.still()
	d, err := p.doors.Open(ctx, regionOf(spec))
	if err != nil {
		out.Findings = append(out.Findings, cloud.FromError("region", err, "aws configure"))
		return out
	}
	c.door = d
	id, err := d.api.Identity(ctx)
	if err != nil {
		out.Findings = append(out.Findings, cloud.FromError("credentials", awsapi.Explain(err, awsapi.Call{Region: d.region}), ""))
		return out
	}
	out.Findings = append(out.Findings, cloud.Passed("credentials", id.ARN+" in "+d.region))
	if c.own.Cluster != "" {
		c.there(ctx, &out)
		return out
	}
	parts := []func(context.Context) []cloud.Finding{c.checkPlace, c.checkProfile, c.checkToken, c.checkOutput, c.checkPrice, c.checkImage}
	found := make([][]cloud.Finding, len(parts))
	var every sync.WaitGroup
	for i, part := range parts {
		every.Go(func() { found[i] = part(ctx) })
	}
	every.Wait()
	for _, some := range found {
		out.Findings = append(out.Findings, some...)
	}
	if c.built != nil && c.place.facts[worker].arm {
		out.Findings = append(out.Findings, cloud.FromError("image", otherProcessor(spec.Instance), ""))
	}
	c.money(&out)
	out.Script = c.shown()
	return out
}

// check is one check of a profile.
type check struct {
	*door
	spec   cloud.Spec
	own    options.Machines
	place  place
	prices map[string]float64
	built  *ownimage.Built // of the profile's Dockerfile, as far as it is known; nil: it has none
}

// still looks for what is wrong without asking anybody.
func (c *check) still() (all []cloud.Finding) {
	if c.own.Reach == options.SSM {
		if _, err := reach.PluginAt(); err != nil {
			all = append(all, cloud.Finding{What: "reach", Text: "Ray's dashboard is reached by Systems Manager, and " + err.Error(), Next: "install it, or machines.reach: private from within the VPC"})
		}
	}
	if len(c.spec.Regions) > 1 {
		all = append(all, cloud.Warning("region", "the cluster is made in one region: "+c.spec.Regions[0], ""))
	}
	if c.spec.Idle > 0 && c.own.Cluster == "" { // of a cluster that is there all limits are told of at once
		all = append(all, cloud.Warning("idle", "limits.idle is not acted on: the machines end by limits.lifetime, limits.budget or dlwb down", ""))
	}
	return all
}

func (c *check) checkPlace(ctx context.Context) []cloud.Finding {
	var err error
	if c.place, err = c.door.place(ctx, c.spec, c.own); err != nil {
		return []cloud.Finding{cloud.FromError("machines", err, "")}
	}
	f := c.place.facts[worker]
	all := []cloud.Finding{cloud.Passed("machines", fmt.Sprintf("%d × %s with %s and %d GPUs each, %s for the head, in %s", c.spec.Count, c.spec.Instance, units.Bytes(int64(f.memoryMiB)<<20), f.gpus, c.own.Head, c.place.zone)),
		cloud.Passed("machine image", c.place.images[worker].id+", ECS's own")}
	if !c.place.public {
		all = append(all, cloud.Warning("subnet", "subnet "+c.place.subnet+" gives no public addresses: it needs a NAT gateway, or endpoints of ECS, ECR, S3, CloudWatch Logs and Systems Manager", ""))
	}
	return all
}

// checkProfile looks for the instance profile, and whether its role may do what the
// machines do.
func (c *check) checkProfile(ctx context.Context) []cloud.Finding {
	name := c.own.Profile
	out, err := c.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	switch code, _ := awsapi.CodeOf(err); {
	case code == "NoSuchEntity":
		return []cloud.Finding{{What: "instance profile", Text: "there is no instance profile " + name, Next: "docs/ecs.md has the four commands that make one; or another in machines.instance_profile"}}
	case err != nil:
		return []cloud.Finding{cloud.Unchecked("instance profile", "whether instance profile "+name+" is there is not visible to you: "+c.explain(err).Error(), "")}
	case out.InstanceProfile == nil || len(out.InstanceProfile.Roles) == 0:
		return []cloud.Finding{{What: "instance profile", Text: "instance profile " + name + " has no role", Next: "aws iam add-role-to-instance-profile --instance-profile-name " + name + " --role-name ROLE"}}
	}
	need := []string{"ecs:RegisterContainerInstance", "ecs:Poll", "ecs:SubmitTaskStateChange", "logs:CreateLogStream", "logs:PutLogEvents"}
	if c.own.Reach == options.SSM {
		need = append(need, "ssm:UpdateInstanceInformation", "ssmmessages:OpenDataChannel")
	}
	role := aws.ToString(out.InstanceProfile.Roles[0].Arn)
	refused, err := c.refusedTo(ctx, role, need...)
	if err != nil {
		return []cloud.Finding{cloud.Unchecked("instance profile", name+" is there; what its role may do is not visible to you: "+c.explain(err).Error(), "it needs "+strings.Join(need, ", "))}
	}
	if len(refused) > 0 {
		return []cloud.Finding{{What: "instance profile", Text: "the role of " + name + " may not " + strings.Join(refused, ", "),
			Next: "attach AmazonEC2ContainerServiceforEC2Role and AmazonSSMManagedInstanceCore to it"}}
	}
	return []cloud.Finding{cloud.Passed("instance profile", name+" may do what the machines do")}
}

func (c *check) checkPrice(ctx context.Context) []cloud.Finding {
	c.prices = map[string]float64{}
	for part, instance := range map[string]string{head: c.own.Head, worker: c.spec.Instance} {
		c.prices[part] = c.price(ctx, instance)
	}
	limit, err := cloud.PaidFor(c.spec, total(c.prices, c.spec.Count), 0, longest)
	if err != nil {
		return []cloud.Finding{cloud.FromError("limits", err, "")}
	}
	return []cloud.Finding{cloud.Passed("limits", "a scheduled action of the auto scaling groups ends the machines after "+units.Duration(limit.Truncate(time.Minute))+", without dlwb")}
}

// money puts on record what an hour costs.
func (c *check) money(out *cloud.Preflight) {
	sum := total(c.prices, c.spec.Count)
	if sum == 0 {
		out.Findings = append(out.Findings, cloud.Unchecked("price", "the price of "+c.spec.Instance+" is not known here", "https://aws.amazon.com/ec2/pricing"))
		return
	}
	out.PricePerHour, out.MostPerHour = sum, sum
	out.Costs = []cloud.Cost{{What: fmt.Sprintf("%d × %s", c.spec.Count, c.spec.Instance), PerHour: sum - c.prices[head], Source: priceSource},
		{What: "1 × " + c.own.Head + " for Ray's head", PerHour: c.prices[head], Source: priceSource}}
	if c.spec.Spot {
		out.Findings = append(out.Findings, cloud.Warning("spot", "spot machines that are taken back end the job; the price shown is that on demand, which they cost at most", ""))
	}
}

// shown is what would be made, as text.
func (c *check) shown() string {
	m := &maker{door: c.door, spec: c.spec, own: c.own, place: c.place}
	if c.built != nil {
		m.spec.Image = c.built.Name()
	}
	var b strings.Builder
	for _, part := range []string{head, worker} {
		_, _ = fmt.Fprintf(&b, "# auto scaling group, capacity provider, service and task definition of the %s: %d × %s, image %s, network of the machine\n%s\n",
			part, m.count(part), m.instance(part), m.spec.Image, strings.Join(m.rayCommand(part, "HEAD")[2:], " "))
	}
	if c.spec.Drain.S3 != "" {
		_, _ = fmt.Fprintf(&b, "# the least policy for results.s3, of %s\n%s\n", c.writer(), policyOf(c.rights()))
	}
	_, _ = fmt.Fprintf(&b, "# the job, by Ray's jobs API\n%s", entrypoint)
	return b.String()
}
