package ecs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricetypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/vpc"
	"github.com/dlwb/dlwb/cloud/ecs/options"
)

const (
	reachDirect = options.Direct
	reachSSM    = options.SSM
)

// place is where the machines go, and from what they boot.
type place struct {
	vpc, subnet, zone string
	public            bool // the subnet gives its machines public addresses
	images            map[string]image
	facts             map[string]facts
}

// image is that of a part's machines.
type image struct {
	id, root string
	disk     int32 // GiB, at least
}

// facts are those of an instance type.
type facts struct {
	memoryMiB int32
	gpus      int
	arm       bool
}

// place finds the zone, the images and what the types have.
func (d *door) place(ctx context.Context, spec cloud.Spec, m options.Machines) (p place, err error) {
	p.images, p.facts = map[string]image{}, map[string]facts{}
	for part, name := range map[string]string{head: m.Head, worker: spec.Instance} {
		if p.facts[part], err = d.typeFacts(ctx, name); err != nil {
			return p, err
		}
		if p.images[part], err = d.image(ctx, p.facts[part]); err != nil {
			return p, err
		}
	}
	return p, d.subnet(ctx, m, []string{m.Head, spec.Instance}, &p)
}

func (d *door) typeFacts(ctx context.Context, name string) (f facts, err error) {
	out, err := d.ec2.DescribeInstanceTypes(ctx, &awsec2.DescribeInstanceTypesInput{InstanceTypes: []ec2types.InstanceType{ec2types.InstanceType(name)}})
	if code, _ := awsapi.CodeOf(err); code == "InvalidInstanceType" || err == nil && len(out.InstanceTypes) == 0 {
		return f, &plainError{"EC2 has no instance type " + name + " in " + d.region, "dlwb offers --region " + d.region + " lists them"}
	}
	if err != nil {
		return f, d.explain(err)
	}
	t := out.InstanceTypes[0]
	if t.MemoryInfo != nil {
		f.memoryMiB = int32(min(aws.ToInt64(t.MemoryInfo.SizeInMiB), 1<<30))
	}
	if t.GpuInfo != nil {
		for _, g := range t.GpuInfo.Gpus {
			f.gpus += int(max(aws.ToInt32(g.Count), aws.ToInt32(g.LogicalGpuCount)))
		}
	}
	f.arm = t.ProcessorInfo != nil && slices.Contains(t.ProcessorInfo.SupportedArchitectures, ec2types.ArchitectureTypeArm64)
	return f, nil
}

// parameterOf is where Systems Manager has the id of the newest image for ECS; %s is
// the system.
func parameterOf(f facts) (string, error) {
	middle := ""
	switch {
	case f.arm && f.gpus > 0:
		return "", &plainError{"there is no GPU image of ECS for arm64 that dlwb knows", "a type with x86_64 processors"}
	case f.arm:
		middle = "arm64/"
	case f.gpus > 0:
		middle = "gpu/"
	}
	return "/aws/service/ecs/optimized-ami/%s/" + middle + "recommended/image_id", nil
}

// systems are those of ECS's images, the newer first: not every partition has it.
var systems = []string{"amazon-linux-2023", "amazon-linux-2"}

// parameter is the value of the first parameter that is there.
func (d *door) parameter(ctx context.Context, form string) (string, error) {
	for _, system := range systems {
		name := fmt.Sprintf(form, system)
		p, err := d.api.SSM(d.region).GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
		if code, _ := awsapi.CodeOf(err); code == "ParameterNotFound" {
			continue
		}
		if err == nil && (p.Parameter == nil || aws.ToString(p.Parameter.Value) == "") {
			err = &plainError{"it has no value", ""}
		}
		if err != nil {
			return "", fmt.Errorf("look for ECS's image by %s: %w", name, d.explain(err))
		}
		return aws.ToString(p.Parameter.Value), nil
	}
	return "", &plainError{fmt.Sprintf("Systems Manager has none of the parameters of ECS's image in %s: %s", d.region, fmt.Sprintf(form, strings.Join(systems, "|"))), "another region in machines.region"}
}

// image finds the image of ECS for a type, with its root disk.
func (d *door) image(ctx context.Context, f facts) (i image, err error) {
	name, err := parameterOf(f)
	if err != nil {
		return i, err
	}
	if i.id, err = d.parameter(ctx, name); err != nil {
		return i, err
	}
	out, err := d.ec2.DescribeImages(ctx, &awsec2.DescribeImagesInput{ImageIds: []string{i.id}})
	if err != nil {
		return i, d.explain(err)
	}
	if len(out.Images) == 0 {
		return i, &plainError{"ECS's image " + i.id + " is not visible in " + d.region, ""}
	}
	i.root, i.disk = cmp.Or(aws.ToString(out.Images[0].RootDeviceName), "/dev/xvda"), 30
	for _, b := range out.Images[0].BlockDeviceMappings {
		if b.Ebs != nil && aws.ToString(b.DeviceName) == i.root {
			i.disk = max(i.disk, aws.ToInt32(b.Ebs.VolumeSize))
		}
	}
	return i, nil
}

// subnet chooses one subnet for all machines: the profile's, or that of the default
// VPC with the most free addresses, in a zone which has all types.
func (d *door) subnet(ctx context.Context, m options.Machines, instances []string, p *place) error {
	in := &awsec2.DescribeSubnetsInput{Filters: []ec2types.Filter{filter("default-for-az", "true")}}
	if m.Subnet != "" {
		in = &awsec2.DescribeSubnetsInput{SubnetIds: []string{m.Subnet}}
	}
	out, err := d.ec2.DescribeSubnets(ctx, in)
	if code, _ := awsapi.CodeOf(err); code == "InvalidSubnetID.NotFound" || err == nil && len(out.Subnets) == 0 && m.Subnet != "" {
		return &plainError{"there is no subnet " + m.Subnet + " in " + d.region, "aws ec2 describe-subnets --region " + d.region}
	}
	if err != nil {
		return d.explain(err)
	}
	if len(out.Subnets) == 0 {
		return &plainError{"there is no default VPC in " + d.region, "machines.subnet: one that leads to the internet; or aws ec2 create-default-vpc"}
	}
	placed, err := vpc.Placed(out.Subnets, d.region)
	if err != nil {
		return err
	}
	zones, err := d.zonesOf(ctx, instances)
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(placed, func(s ec2types.Subnet) bool { return !zones[aws.ToString(s.AvailabilityZone)] })
	if len(all) == 0 {
		return &plainError{"no zone of these subnets has both " + strings.Join(instances, " and "), "another type, region or machines.subnet"}
	}
	best := slices.MaxFunc(all, func(a, b ec2types.Subnet) int {
		return cmp.Compare(aws.ToInt32(a.AvailableIpAddressCount), aws.ToInt32(b.AvailableIpAddressCount))
	})
	p.vpc, p.subnet, p.zone = aws.ToString(best.VpcId), aws.ToString(best.SubnetId), aws.ToString(best.AvailabilityZone)
	p.public = aws.ToBool(best.MapPublicIpOnLaunch) || m.Subnet == ""
	return nil
}

// zonesOf are the zones that have all types.
func (d *door) zonesOf(ctx context.Context, instances []string) (map[string]bool, error) {
	have := map[string]map[string]bool{}
	pages := awsec2.NewDescribeInstanceTypeOfferingsPaginator(d.ec2, &awsec2.DescribeInstanceTypeOfferingsInput{LocationType: ec2types.LocationTypeAvailabilityZone,
		Filters: []ec2types.Filter{filter("instance-type", instances...)}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, d.explain(err)
		}
		for _, o := range page.InstanceTypeOfferings {
			zone := aws.ToString(o.Location)
			if have[zone] == nil {
				have[zone] = map[string]bool{}
			}
			have[zone][string(o.InstanceType)] = true
		}
	}
	all := map[string]bool{}
	for zone, types := range have {
		all[zone] = !slices.ContainsFunc(instances, func(name string) bool { return !types[name] })
	}
	return all, nil
}

// priceSource is what a price is said to be from.
const priceSource = "AWS Price List, on demand"

// price is what a machine costs for an hour on demand, in US dollars; 0: not known.
func (d *door) price(ctx context.Context, instance string) float64 {
	match := func(field, value string) pricetypes.Filter {
		return pricetypes.Filter{Type: pricetypes.FilterTypeTermMatch, Field: aws.String(field), Value: aws.String(value)}
	}
	out, err := d.api.Pricing(d.region).GetProducts(ctx, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), Filters: []pricetypes.Filter{
		match("regionCode", d.region), match("instanceType", instance), match("operatingSystem", "Linux"), match("tenancy", "Shared"),
		match("preInstalledSw", "NA"), match("capacitystatus", "Used")}})
	if err != nil {
		return 0
	}
	for _, text := range out.PriceList {
		if price := awsapi.PerHour(text); price > 0 {
			return price
		}
	}
	return 0
}
