package ecs

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ecs/options"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/waits"
)

// maker makes the Ray cluster of a life, or what of it is not there yet.
type maker struct {
	*door
	life     cloud.Life
	spec     cloud.Spec
	own      options.Machines
	account  string
	place    place
	ends     time.Time
	prices   map[string]float64 // of a machine, by part
	progress cloud.Progress
}

// ensure makes something, or takes what an earlier attempt has made. Its entry is in
// the ledger before the call. Names have the life's id in them, so that what has one
// is of this life, and a call that was lost is found by the name.
func (m *maker) ensure(ctx context.Context, kind, name string, perHour float64, create func() (id string, err error), find finder) (string, error) {
	all, err := m.life.Ledger.Entries()
	if err != nil {
		return "", err
	}
	e := entry(all, kind, name)
	if e != nil && e.ID != "" && e.Open() {
		return e.ID, nil
	}
	if e != nil && !e.Open() {
		return "", &plainError{kind + " " + name + " was removed: this life of the cluster is over", "dlwb down " + m.life.Name + ", then run it again"}
	}
	if e == nil {
		d := detail{Region: m.region, Account: m.account, Name: name, PerHour: perHour}
		if kind == kindScaling {
			d.Ends, d.Count, d.Of = m.ends, m.count(name[strings.LastIndex(name, "-")+1:]), m.of()
		}
		if err := m.life.Ledger.Intend(kind, token(kind, name), d); err != nil {
			return "", err
		}
	} else if id, err := find(ctx, m.door, name); err != nil {
		return "", m.explain(err)
	} else if id != "" {
		return id, m.life.Ledger.Resolve(token(kind, name), id)
	}
	id, err := create()
	if exists(err) {
		id, err = find(ctx, m.door, name)
		if err == nil && id == "" {
			err = fmt.Errorf("%s %s is there, and AWS does not show it", kind, name)
		}
	}
	if err != nil {
		return "", fmt.Errorf("make %s %s: %w", kind, name, m.explain(err))
	}
	if id == "" {
		return "", fmt.Errorf("make %s %s: AWS's answer has no id in it", kind, name)
	}
	return id, m.life.Ledger.Resolve(token(kind, name), id)
}

func (m *maker) ec2Tags(kinds ...ec2types.ResourceType) (all []ec2types.TagSpecification) {
	var list []ec2types.Tag
	for _, t := range tagsOf(m.life, m.ends, m.own.Tags) {
		list = append(list, ec2types.Tag{Key: aws.String(t[0]), Value: aws.String(t[1])})
	}
	for _, k := range kinds {
		all = append(all, ec2types.TagSpecification{ResourceType: k, Tags: list})
	}
	return all
}

func (m *maker) ecsTags() (all []ecstypes.Tag) {
	for _, t := range tagsOf(m.life, m.ends, m.own.Tags) {
		all = append(all, ecstypes.Tag{Key: aws.String(t[0]), Value: aws.String(t[1])})
	}
	return all
}

// group makes the security group, in which the machines reach each other and nobody
// else reaches them.
func (m *maker) group(ctx context.Context) (string, error) {
	id, err := m.ensure(ctx, kindGroup, clusterName(m.life), 0, func() (string, error) {
		out, err := m.ec2.CreateSecurityGroup(ctx, &awsec2.CreateSecurityGroupInput{GroupName: aws.String(clusterName(m.life)), VpcId: &m.place.vpc,
			Description: aws.String("Ray cluster of dlwb"), TagSpecifications: m.ec2Tags(ec2types.ResourceTypeSecurityGroup)})
		if err != nil {
			return "", err
		}
		return aws.ToString(out.GroupId), nil
	}, findGroup)
	if err != nil {
		return "", err
	}
	_, err = m.ec2.AuthorizeSecurityGroupIngress(ctx, &awsec2.AuthorizeSecurityGroupIngressInput{GroupId: &id,
		IpPermissions: []ec2types.IpPermission{{IpProtocol: aws.String("-1"), UserIdGroupPairs: []ec2types.UserIdGroupPair{{GroupId: &id}}}}})
	if code, _ := awsapi.CodeOf(err); code == "InvalidPermission.Duplicate" {
		err = nil
	}
	return id, m.explain(err)
}

// burstable types can't be in a placement group.
var burstable = pattern.New(`^t\d`)

// placement makes the group that puts the workers near each other; empty: they need none.
func (m *maker) placement(ctx context.Context) (string, error) {
	if m.spec.Count < 2 || burstable.MatchString(m.spec.Instance) {
		return "", nil
	}
	name := clusterName(m.life)
	_, err := m.ensure(ctx, kindPlacement, name, 0, func() (string, error) {
		out, err := m.ec2.CreatePlacementGroup(ctx, &awsec2.CreatePlacementGroupInput{GroupName: &name, Strategy: ec2types.PlacementStrategyCluster,
			TagSpecifications: m.ec2Tags(ec2types.ResourceTypePlacementGroup)})
		if err != nil || out.PlacementGroup == nil {
			return "", err
		}
		return aws.ToString(out.PlacementGroup.GroupId), nil
	}, findPlacement)
	return name, err
}

// logGroup is where CloudWatch has the logs of the containers.
func logGroup(cluster string) string { return "/dlwb/" + cluster }

func (m *maker) logGroup(ctx context.Context) error {
	name := logGroup(clusterName(m.life))
	tags := map[string]string{}
	for _, t := range tagsOf(m.life, m.ends, m.own.Tags) {
		tags[t[0]] = t[1]
	}
	_, err := m.ensure(ctx, kindLogs, name, 0, func() (string, error) {
		_, err := m.logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &name, Tags: tags})
		return name, err
	}, findLogs)
	return err
}

func (m *maker) cluster(ctx context.Context) error {
	name := clusterName(m.life)
	_, err := m.ensure(ctx, kindCluster, name, 0, func() (string, error) {
		out, err := m.ecs.CreateCluster(ctx, &awsecs.CreateClusterInput{ClusterName: &name, Tags: m.ecsTags()})
		if err != nil || out.Cluster == nil {
			return "", err
		}
		return aws.ToString(out.Cluster.ClusterArn), nil
	}, findCluster)
	return err
}

// userData has a machine join the cluster. Credentials of the machine stay reachable
// from its containers: they are on its network.
func userData(cluster string) string {
	return base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\ncat >> /etc/ecs/ecs.config <<'END'\nECS_CLUSTER=" + cluster +
		"\nECS_ENABLE_GPU_SUPPORT=true\nECS_CONTAINER_STOP_TIMEOUT=30s\nEND\n"))
}

// template makes the launch template of a part.
func (m *maker) template(ctx context.Context, part, group, near string) (string, error) {
	name, image := partName(m.life, part), m.place.images[part]
	data := &ec2types.RequestLaunchTemplateData{
		ImageId: &image.id, InstanceType: ec2types.InstanceType(m.instance(part)),
		IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &m.own.Profile},
		UserData:           aws.String(userData(clusterName(m.life))),
		NetworkInterfaces: []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0),
			AssociatePublicIpAddress: aws.Bool(m.place.public), Groups: []string{group}, DeleteOnTermination: aws.Bool(true)}},
		MetadataOptions: &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: ec2types.LaunchTemplateHttpTokensStateRequired, HttpPutResponseHopLimit: aws.Int32(2)},
		BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: &image.root,
			Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(m.disk(part)), VolumeType: ec2types.VolumeTypeGp3, DeleteOnTermination: aws.Bool(true)}}},
	}
	for _, s := range m.ec2Tags(ec2types.ResourceTypeInstance, ec2types.ResourceTypeVolume) {
		data.TagSpecifications = append(data.TagSpecifications, ec2types.LaunchTemplateTagSpecificationRequest{ResourceType: s.ResourceType, Tags: s.Tags})
	}
	if part == worker && near != "" {
		data.Placement = &ec2types.LaunchTemplatePlacementRequest{GroupName: &near}
	}
	if part == worker && m.spec.Spot {
		data.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeSpot}
	}
	return m.ensure(ctx, kindTemplate, name, 0, func() (string, error) {
		out, err := m.ec2.CreateLaunchTemplate(ctx, &awsec2.CreateLaunchTemplateInput{LaunchTemplateName: &name, ClientToken: aws.String(m.life.ID + "-" + part),
			LaunchTemplateData: data, TagSpecifications: m.ec2Tags(ec2types.ResourceTypeLaunchTemplate)})
		if err != nil || out.LaunchTemplate == nil {
			return "", err
		}
		return aws.ToString(out.LaunchTemplate.LaunchTemplateId), nil
	}, findTemplate)
}

// instance is the type of a part's machines, count how many it has.
func (m *maker) instance(part string) string {
	if part == head {
		return m.own.Head
	}
	return m.spec.Instance
}

func (m *maker) count(part string) int32 {
	if part == head {
		return 1
	}
	return int32(m.spec.Count)
}

// roomGiB is what the image of the containers gets beside the machine's own.
const roomGiB = 70

func (m *maker) disk(part string) int32 {
	least := m.place.images[part].disk
	if asked := int32(min(m.spec.Disk>>30, 16<<10)); asked > 0 {
		return max(asked, least)
	}
	return least + roomGiB
}

// scaling makes the auto scaling group of a part. It is made empty: its machines come
// when the action that ends them is there.
func (m *maker) scaling(ctx context.Context, part, template string) (string, error) {
	name, n := partName(m.life, part), m.count(part)
	var tags []asgtypes.Tag
	for _, t := range append(tagsOf(m.life, m.ends, m.own.Tags), [2]string{"AmazonECSManaged", "true"}) {
		tags = append(tags, asgtypes.Tag{Key: aws.String(t[0]), Value: aws.String(t[1]), ResourceId: &name, ResourceType: aws.String("auto-scaling-group"), PropagateAtLaunch: aws.Bool(false)})
	}
	return m.ensure(ctx, kindScaling, name, m.prices[part]*float64(n), func() (string, error) {
		_, err := m.asg.CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: &name,
			LaunchTemplate: &asgtypes.LaunchTemplateSpecification{LaunchTemplateId: &template, Version: aws.String("1")},
			MinSize:        aws.Int32(0), MaxSize: &n, DesiredCapacity: aws.Int32(0), VPCZoneIdentifier: &m.place.subnet, Tags: tags})
		if err != nil {
			return "", err
		}
		return findScaling(ctx, m.door, name)
	}, findScaling)
}

// start has the machines of a part come, behind the action that ends them.
func (m *maker) start(ctx context.Context, part string) error {
	name, n := partName(m.life, part), m.count(part)
	_, err := m.asg.PutScheduledUpdateGroupAction(ctx, &autoscaling.PutScheduledUpdateGroupActionInput{AutoScalingGroupName: &name, ScheduledActionName: aws.String("end-of-lease"),
		StartTime: &m.ends, MinSize: aws.Int32(0), MaxSize: aws.Int32(0), DesiredCapacity: aws.Int32(0)})
	if err != nil {
		return m.explain(err)
	}
	_, err = m.asg.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: &name, MinSize: aws.Int32(0), MaxSize: &n, DesiredCapacity: &n})
	return m.explain(err)
}

// capacity makes the capacity provider of a part's group.
func (m *maker) capacity(ctx context.Context, part, groupARN string) (string, error) {
	name := partName(m.life, part)
	_, err := m.ensure(ctx, kindCapacity, name, 0, func() (string, error) {
		out, err := m.ecs.CreateCapacityProvider(ctx, &awsecs.CreateCapacityProviderInput{Name: &name, Tags: m.ecsTags(),
			AutoScalingGroupProvider: &ecstypes.AutoScalingGroupProvider{AutoScalingGroupArn: &groupARN, ManagedTerminationProtection: ecstypes.ManagedTerminationProtectionDisabled,
				ManagedScaling: &ecstypes.ManagedScaling{Status: ecstypes.ManagedScalingStatusDisabled}}})
		if err != nil || out.CapacityProvider == nil {
			return "", err
		}
		return aws.ToString(out.CapacityProvider.CapacityProviderArn), nil
	}, findCapacity)
	return name, err
}

// associate gives the cluster its capacity providers. One that was just made may not
// be there yet: that is asked again.
func (m *maker) associate(ctx context.Context, names []string) error {
	name := clusterName(m.life)
	for until := time.Now().Add(2 * time.Minute); ; {
		_, err := m.ecs.PutClusterCapacityProviders(ctx, &awsecs.PutClusterCapacityProvidersInput{Cluster: &name, CapacityProviders: names, DefaultCapacityProviderStrategy: []ecstypes.CapacityProviderStrategyItem{}})
		if err == nil || !busy(err) && !absent(err) || time.Now().After(until) {
			return m.explain(err)
		}
		if err := waits.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}
