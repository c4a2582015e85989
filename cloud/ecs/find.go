package ecs

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// finder looks for a thing by its name; empty: AWS says that there is none.
type finder func(ctx context.Context, d *door, name string) (id string, err error)

func filter(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: &name, Values: values}
}

func findGroup(ctx context.Context, d *door, name string) (string, error) {
	out, err := d.ec2.DescribeSecurityGroups(ctx, &awsec2.DescribeSecurityGroupsInput{Filters: []ec2types.Filter{filter("group-name", name)}})
	if err != nil || len(out.SecurityGroups) == 0 {
		return "", err
	}
	return aws.ToString(out.SecurityGroups[0].GroupId), nil
}

func findPlacement(ctx context.Context, d *door, name string) (string, error) {
	out, err := d.ec2.DescribePlacementGroups(ctx, &awsec2.DescribePlacementGroupsInput{Filters: []ec2types.Filter{filter("group-name", name)}})
	if err != nil {
		return "", err
	}
	for _, g := range out.PlacementGroups {
		if g.State != ec2types.PlacementGroupStateDeleted {
			return aws.ToString(g.GroupId), nil
		}
	}
	return "", nil
}

func findTemplate(ctx context.Context, d *door, name string) (string, error) {
	out, err := d.ec2.DescribeLaunchTemplates(ctx, &awsec2.DescribeLaunchTemplatesInput{Filters: []ec2types.Filter{filter("launch-template-name", name)}})
	if err != nil || len(out.LaunchTemplates) == 0 {
		return "", err
	}
	return aws.ToString(out.LaunchTemplates[0].LaunchTemplateId), nil
}

func findScaling(ctx context.Context, d *door, name string) (string, error) {
	out, err := d.asg.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err != nil || len(out.AutoScalingGroups) == 0 {
		return "", err
	}
	return aws.ToString(out.AutoScalingGroups[0].AutoScalingGroupARN), nil
}

func findLogs(ctx context.Context, d *door, name string) (string, error) {
	out, err := d.logs.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &name})
	if err != nil {
		return "", err
	}
	for _, g := range out.LogGroups {
		if aws.ToString(g.LogGroupName) == name {
			return name, nil
		}
	}
	return "", nil
}

// findCluster finds one that is not deleted: ECS shows those for a while.
func findCluster(ctx context.Context, d *door, name string) (string, error) {
	out, err := d.ecs.DescribeClusters(ctx, &awsecs.DescribeClustersInput{Clusters: []string{name}})
	if err != nil || len(out.Clusters) == 0 || aws.ToString(out.Clusters[0].Status) == "INACTIVE" {
		return "", err
	}
	return aws.ToString(out.Clusters[0].ClusterArn), nil
}

func findCapacity(ctx context.Context, d *door, name string) (string, error) {
	out, err := d.ecs.DescribeCapacityProviders(ctx, &awsecs.DescribeCapacityProvidersInput{CapacityProviders: []string{name}})
	if absent(err) {
		return "", nil
	}
	if err != nil || len(out.CapacityProviders) == 0 || out.CapacityProviders[0].Status == "INACTIVE" {
		return "", err
	}
	return aws.ToString(out.CapacityProviders[0].CapacityProviderArn), nil
}

// findTask finds the newest task definition of a family that is active. Others of
// the family are only left from calls whose answers were lost.
func findTask(ctx context.Context, d *door, family string) (string, error) {
	all, err := d.revisions(ctx, family)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[len(all)-1], nil
}

// revisions are the active task definitions of a family, the oldest first.
func (d *door) revisions(ctx context.Context, family string) (all []string, err error) {
	pages := awsecs.NewListTaskDefinitionsPaginator(d.ecs, &awsecs.ListTaskDefinitionsInput{FamilyPrefix: &family, Status: "ACTIVE"})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, arn := range page.TaskDefinitionArns {
			if _, name, _ := strings.Cut(arn, ":task-definition/"); strings.HasPrefix(name, family+":") {
				all = append(all, arn)
			}
		}
	}
	return all, nil
}

// findService finds the service of a part, by the name that it shares with its
// cluster: a service is looked for in that. One that is being drained is still there.
func findService(ctx context.Context, d *door, name string) (string, error) {
	s, err := d.serviceNamed(ctx, name)
	if s == nil || err != nil {
		return "", err
	}
	return aws.ToString(s.ServiceArn), nil
}

// serviceNamed is a service that is not gone; nil: there is none.
func (d *door) serviceNamed(ctx context.Context, name string) (*ecstypes.Service, error) {
	cluster := name[:strings.LastIndex(name, "-")]
	out, err := d.ecs.DescribeServices(ctx, &awsecs.DescribeServicesInput{Cluster: &cluster, Services: []string{name}})
	if absent(err) {
		return nil, nil
	}
	if err != nil || len(out.Services) == 0 || aws.ToString(out.Services[0].Status) == "INACTIVE" {
		return nil, err
	}
	return &out.Services[0], nil
}

// finders are those of each kind.
var finders = map[string]finder{kindGroup: findGroup, kindPlacement: findPlacement, kindTemplate: findTemplate, kindScaling: findScaling, kindLogs: findLogs,
	kindCluster: findCluster, kindCapacity: findCapacity, kindTask: findTask, kindService: findService, kindSecret: findSecret}
