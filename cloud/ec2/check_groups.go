package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/door"
)

// existing says whether the security groups that the profile names let in whom the
// nodes need: ssh by the way to them, and the nodes each other.
func (c *preflight) existing(ctx context.Context, named []string) cloud.Finding {
	const what = "address"
	ec2, err := c.p.connect(ctx, c.region)
	if err != nil {
		return failed(what, err, "")
	}
	ids, err := existingGroups(ctx, ec2, c.region, c.net.VPC, named)
	if err != nil {
		return failed(what, err, "machines.security_groups: groups of "+c.net.VPC+", or leave the key out")
	}
	all, err := describeGroups(ctx, ec2, c.region, c.net.VPC)
	if err != nil {
		return failed(what, err, "")
	}
	all = slices.DeleteFunc(all, func(g types.SecurityGroup) bool { return !slices.Contains(ids, aws.ToString(g.GroupId)) })
	text := "security groups " + strings.Join(ids, ", ")
	port := (&up{spec: c.spec}).port()
	next := "aws ec2 authorize-security-group-ingress --region " + c.region + " --group-id " + ids[0]
	d, err := c.p.door(ctx, c.spec, c.net)
	if err != nil {
		return cloud.Unchecked(what, text+"; whether they let ssh in is not known: "+err.Error(), "")
	}
	if from := d.Shut(all, port); from != "" {
		return cloud.Warning(what, fmt.Sprintf("%s let no ssh in from %s, unless by a prefix list", text, from), fmt.Sprintf("%s --protocol tcp --port %d --cidr …", next, port))
	}
	if nodesOf(c.spec) > 1 && !door.Meshed(all, ids) {
		return cloud.Warning(what, text+" do not let the nodes reach each other on all ports", next+" --protocol all --source-group "+ids[0])
	}
	return found(what, text+", which let ssh in")
}
