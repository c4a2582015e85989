package ecs

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// The ports of Ray.
const (
	portGCS       = "6379"
	portDashboard = "8265"
)

// containerOf is the name of a part's container, as in the blueprint.
var containerOf = map[string]string{head: "ray_head", worker: "ray_work"}

// workerResource is what each worker has one of: a replica takes it, so that no two
// are on one machine and none on the head.
const workerResource = "dlwb_worker"

// rayCommand starts a part of Ray. The containers are on the machine's network: a
// machine has one, and its address is the machine's.
func (m *maker) rayCommand(part, headIP string) []string {
	start := `exec ray start --block --disable-usage-stats --node-ip-address="$(` + ownIP + `)"`
	if part == worker {
		return []string{"sh", "-c", fmt.Sprintf(`ulimit -n 65536 2>/dev/null; %s --num-gpus=%d --resources='{"%s":1}' --address=%s:%s`,
			start, m.place.facts[worker].gpus, workerResource, headIP, portGCS)}
	}
	listen := "127.0.0.1" // Systems Manager's agent connects from the machine itself
	if m.own.Reach == reachDirect {
		listen = "0.0.0.0" // the security group lets nobody in from outside the cluster but whom the user allows
	}
	return []string{"sh", "-c", fmt.Sprintf(`ulimit -n 65536 2>/dev/null; %s --head --port=%s --dashboard-host=%s --dashboard-port=%s --num-cpus=0 --num-gpus=0`,
		start, portGCS, listen, portDashboard)}
}

// ownIP prints the address of the machine: that of the route out. Whoever knows
// better sets DLWB_NODE_IP in the image.
const ownIP = `python3 -c 'import os,socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect(("169.254.169.254",80)); print(os.environ.get("DLWB_NODE_IP") or s.getsockname()[0])'`

// task registers the task definition of a part.
func (m *maker) task(ctx context.Context, part, headIP string) (string, error) {
	facts := m.place.facts[part]
	env, secrets, err := m.rayToken(ctx)
	if err != nil {
		return "", err
	}
	c := ecstypes.ContainerDefinition{
		Name: aws.String(containerOf[part]), Image: &m.spec.Image, Essential: aws.Bool(true), Command: m.rayCommand(part, headIP), EntryPoint: []string{},
		// What a machine's own programs need stays free.
		MemoryReservation: aws.Int32(max(512, facts.memoryMiB*3/4)), StopTimeout: aws.Int32(30),
		Environment: pairs(append(env, "RAY_AUTH_MODE", "token", "RAY_DEDUP_LOGS", "0")...), Secrets: secrets,
		Ulimits:         []ecstypes.Ulimit{{Name: ecstypes.UlimitNameNofile, SoftLimit: 65536, HardLimit: 65536}, {Name: ecstypes.UlimitNameMemlock, SoftLimit: -1, HardLimit: -1}},
		LinuxParameters: &ecstypes.LinuxParameters{SharedMemorySize: aws.Int32(m.sharedMiB(part)), InitProcessEnabled: aws.Bool(true)},
		LogConfiguration: &ecstypes.LogConfiguration{LogDriver: ecstypes.LogDriverAwslogs, Options: map[string]string{
			"awslogs-group": logGroup(clusterName(m.life)), "awslogs-region": m.region, "awslogs-stream-prefix": "ray"}},
	}
	if facts.gpus > 0 && part == worker {
		c.ResourceRequirements = []ecstypes.ResourceRequirement{{Type: ecstypes.ResourceTypeGpu, Value: aws.String(fmt.Sprint(facts.gpus))}}
	}
	family := partName(m.life, part)
	in := &awsecs.RegisterTaskDefinitionInput{Family: &family, NetworkMode: ecstypes.NetworkModeHost,
		ContainerDefinitions: []ecstypes.ContainerDefinition{c}, Tags: m.ecsTags()}
	if m.own.TaskRole != "" {
		in.TaskRoleArn = &m.own.TaskRole
	}
	if m.own.ExecutionRole != "" {
		in.ExecutionRoleArn = &m.own.ExecutionRole
	}
	return m.ensure(ctx, kindTask, family, 0, func() (string, error) {
		out, err := m.ecs.RegisterTaskDefinition(ctx, in)
		if err != nil || out.TaskDefinition == nil {
			return "", err
		}
		return aws.ToString(out.TaskDefinition.TaskDefinitionArn), nil
	}, findTask)
}

// sharedMiB is the shared memory of a container: no more than half of its machine's
// memory.
func (m *maker) sharedMiB(part string) int32 {
	asked := int32(m.own.Shm) << 10
	if part == head {
		asked = 2 << 10
	}
	return max(64, min(asked, m.place.facts[part].memoryMiB/2))
}

// service makes the service of a part: one container on each machine of its group. A
// container that ends is started again, and none is replaced before it has ended.
func (m *maker) service(ctx context.Context, part, task, capacity string) error {
	name, cluster := partName(m.life, part), clusterName(m.life)
	_, err := m.ensure(ctx, kindService, name, 0, func() (string, error) {
		out, err := m.ecs.CreateService(ctx, &awsecs.CreateServiceInput{Cluster: &cluster, ServiceName: &name, TaskDefinition: &task, DesiredCount: aws.Int32(m.count(part)),
			ClientToken:              aws.String(m.life.ID + "-" + part),
			CapacityProviderStrategy: []ecstypes.CapacityProviderStrategyItem{{CapacityProvider: &capacity, Weight: 1}},
			PlacementConstraints:     []ecstypes.PlacementConstraint{{Type: ecstypes.PlacementConstraintTypeDistinctInstance}},
			DeploymentConfiguration:  &ecstypes.DeploymentConfiguration{MinimumHealthyPercent: aws.Int32(0), MaximumPercent: aws.Int32(100)},
			EnableECSManagedTags:     true, PropagateTags: ecstypes.PropagateTagsService, Tags: m.ecsTags()})
		if err != nil || out.Service == nil {
			return "", err
		}
		return aws.ToString(out.Service.ServiceArn), nil
	}, findService)
	return err
}

// seen is a container of a service as ECS has it.
type seen struct {
	arn, status, why string
	machine          string // of ECS
	ip               string // of its own, where it has one
	stopped          bool
	failed           bool // it has ended by itself, or could not begin: nobody ended it
}

// idOf is the last part of a container's ARN, which names its log.
func idOf(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

// tasksOf are the containers of a part, those that have stopped too.
func (d *door) tasksOf(ctx context.Context, cluster, part string) (all []seen, err error) {
	return d.tasksOfService(ctx, cluster, cluster+"-"+part)
}

// tasksOfService are those of a service by its name.
func (d *door) tasksOfService(ctx context.Context, cluster, service string) (all []seen, err error) {
	for _, status := range []ecstypes.DesiredStatus{ecstypes.DesiredStatusRunning, ecstypes.DesiredStatusStopped} {
		pages := awsecs.NewListTasksPaginator(d.ecs, &awsecs.ListTasksInput{Cluster: &cluster, ServiceName: &service, DesiredStatus: status})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if absent(err) {
				return all, nil
			}
			if err != nil {
				return nil, err
			}
			if len(page.TaskArns) == 0 {
				continue
			}
			out, err := d.ecs.DescribeTasks(ctx, &awsecs.DescribeTasksInput{Cluster: &cluster, Tasks: page.TaskArns})
			if err != nil {
				return nil, err
			}
			for _, t := range out.Tasks {
				all = append(all, seenOf(t))
			}
		}
	}
	return all, nil
}

func seenOf(t ecstypes.Task) seen {
	s := seen{arn: aws.ToString(t.TaskArn), status: aws.ToString(t.LastStatus), machine: aws.ToString(t.ContainerInstanceArn), why: aws.ToString(t.StoppedReason)}
	s.stopped = aws.ToString(t.DesiredStatus) == "STOPPED" || s.status == "STOPPED"
	switch t.StopCode {
	case ecstypes.TaskStopCodeEssentialContainerExited, ecstypes.TaskStopCodeTaskFailedToStart, "":
		s.failed = s.stopped
	}
	for _, c := range t.Containers {
		if len(c.NetworkInterfaces) > 0 {
			s.ip = aws.ToString(c.NetworkInterfaces[0].PrivateIpv4Address)
		}
		if reason := aws.ToString(c.Reason); reason != "" {
			s.why = cmp.Or(s.why, reason)
			if !strings.Contains(s.why, reason) {
				s.why += " (" + reason + ")"
			}
		}
		if c.ExitCode != nil && s.stopped {
			s.why += fmt.Sprintf(", exit code %d", *c.ExitCode)
		}
	}
	return s
}

func pairs(words ...string) (all []ecstypes.KeyValuePair) {
	for i := 0; i+1 < len(words); i += 2 {
		all = append(all, ecstypes.KeyValuePair{Name: &words[i], Value: &words[i+1]})
	}
	return all
}
