package ecs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/dlwb/dlwb/cloud/rayjobs"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// How long each wait may last: for machines, for an image to come and its container
// to run, for Ray to have all nodes. Beyond that the run is given up with its reason.
const (
	machinesLimit = 20 * time.Minute
	tasksLimit    = 20 * time.Minute
	rayLimit      = 10 * time.Minute
)

const (
	firstLook = 200 * time.Millisecond
	lookEvery = 3 * time.Second
)

// silent is how long a node may be missing before it is named with its log.
const silent = 45 * time.Second

// until looks again and again; each new text is told. A look that fails says nothing,
// unless asking again can't help.
func (m *maker) until(ctx context.Context, limit time.Duration, what string, look func() (done bool, text string, err error)) error {
	said, why := "", ""
	for wait, end := firstLook, time.Now().Add(limit); ; wait = min(wait*2, lookEvery) {
		done, text, err := look()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && permanent(err):
			return err
		case err != nil:
			text = "it can't be asked: " + err.Error()
		case done:
			return nil
		}
		if why = text; text != said && text != "" {
			said = text
			m.progress(-1, text)
		}
		if time.Now().After(end) {
			if m.own.Cluster != "" {
				return &plainError{fmt.Sprintf("%s: not within %s; %s", what, units.Duration(limit), why), "look at the services of ECS cluster " + m.own.Cluster}
			}
			return &plainError{fmt.Sprintf("%s: not within %s; %s", what, units.Duration(limit), why), "dlwb down " + m.life.Name + " removes what there is; machines end at " + m.ends.Local().Format("15:04") + " by themselves"}
		}
		if err := waits.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// machinesUp waits until the machines of both parts are in the cluster.
func (m *maker) machinesUp(ctx context.Context) error {
	cluster := clusterName(m.life)
	return m.until(ctx, machinesLimit, "the machines", func() (bool, string, error) {
		var texts []string
		for _, part := range []string{head, worker} {
			have, why, err := m.door.group(ctx, partName(m.life, part), m.count(part))
			if err != nil {
				return false, "", err
			}
			switch want := int(m.count(part)); {
			case have < want:
				texts = append(texts, fmt.Sprintf("%d of %d × %s for the %s%s", have, want, m.instance(part), part, why))
			case have > want:
				texts = append(texts, fmt.Sprintf("%d × %s more than are asked for go", have-want, m.instance(part)))
			}
		}
		if len(texts) > 0 {
			return false, strings.Join(texts, "; "), nil
		}
		out, err := m.ecs.DescribeClusters(ctx, &awsecs.DescribeClustersInput{Clusters: []string{cluster}})
		if err != nil || len(out.Clusters) == 0 {
			return false, "", m.explain(err)
		}
		all := int32(1 + m.spec.Count)
		n := out.Clusters[0].RegisteredContainerInstancesCount
		return n >= all, fmt.Sprintf("%d of %d machines have joined the ECS cluster; that takes 1 to 3 minutes, and never ends where the instance profile %s lacks AmazonEC2ContainerServiceforEC2Role", n, all, m.own.Profile), nil
	})
}

// group counts the machines of a group that are in service, and says what its last
// activity failed by.
func (d *door) group(ctx context.Context, name string, want int32) (have int, why string, err error) {
	out, err := d.asg.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err != nil {
		return 0, "", d.explain(err)
	}
	if len(out.AutoScalingGroups) == 0 {
		return 0, "", &plainError{"the auto scaling group " + name + " is gone", "somebody removed it; dlwb down, and run it again"}
	}
	g := out.AutoScalingGroups[0]
	if aws.ToInt32(g.DesiredCapacity) != want {
		return 0, "", &plainError{fmt.Sprintf("the auto scaling group %s is to have %d machines, not %d: its time is over, or somebody changed it", name, aws.ToInt32(g.DesiredCapacity), want), "dlwb down, and run it again"}
	}
	for _, i := range g.Instances {
		if i.LifecycleState == asgtypes.LifecycleStateInService {
			have++
		}
	}
	if have >= int(want) {
		return have, "", nil
	}
	acts, err := d.asg.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &name, MaxRecords: aws.Int32(1)})
	if err == nil && len(acts.Activities) > 0 && acts.Activities[0].StatusCode == asgtypes.ScalingActivityStatusCodeFailed {
		why = ": " + aws.ToString(acts.Activities[0].StatusMessage)
	}
	return have, why, nil
}

// tasksUp waits until all containers of a part run, and gives their machines.
func (m *maker) tasksUp(ctx context.Context, part string) (where map[string]machine, err error) {
	d := &deaths{}
	err = m.until(ctx, tasksLimit, "the "+part, func() (bool, string, error) {
		var text string
		where, text, err = m.running(ctx, part, d)
		return err == nil && len(where) == int(m.count(part)), text, err
	})
	return where, err
}

// running are the machines of a part's containers that run, by the container, and in
// words how many there are. A container whose machine is gone does not count: ECS shows
// it as running for a minute or two, and starts another one then.
func (m *maker) running(ctx context.Context, part string, d *deaths) (where map[string]machine, text string, err error) {
	found, err := m.tasksOf(ctx, clusterName(m.life), part)
	if err != nil {
		return nil, "", m.explain(err)
	}
	if err := m.tellDeaths(ctx, part, found, d); err != nil {
		return nil, "", err
	}
	var up []seen
	states := map[string]int{}
	for _, t := range found {
		switch {
		case t.stopped:
		case t.status == "RUNNING":
			up = append(up, t)
		default:
			states[t.status]++
		}
	}
	if where, err = m.machinesOf(ctx, up); err != nil {
		return nil, "", err
	}
	text = fmt.Sprintf("%d of %d containers run", len(where), m.count(part))
	for _, s := range []string{"PROVISIONING", "PENDING"} {
		if states[s] > 0 {
			text += fmt.Sprintf(", %d %s (the image comes; 2 to 8 minutes for Ray's own with CUDA)", states[s], strings.ToLower(s))
		}
	}
	if gone := len(up) - len(where); gone > 0 {
		text += fmt.Sprintf(", %d on machines that are gone", gone)
	}
	if len(found) == 0 {
		text += m.lastEvent(ctx, part)
	}
	return where, text, nil
}

// deaths are the containers of a part that ended by themselves.
type deaths struct {
	before map[string]bool // all that had ended before the first look; nil: nobody has looked
	now    map[string]bool // those that were told since
}

// tellDeaths tells of each container that has ended by itself since the first look,
// with its log. Those that ECS ended, since there are to be fewer or their machine went,
// are none of them.
func (m *maker) tellDeaths(ctx context.Context, part string, found []seen, d *deaths) error {
	if d.before == nil {
		d.before, d.now = map[string]bool{}, map[string]bool{}
		for _, t := range found {
			d.before[t.arn] = t.stopped
		}
	}
	for _, t := range found {
		if !t.failed || d.before[t.arn] || d.now[t.arn] {
			continue
		}
		d.now[t.arn] = true
		m.progress(-1, fmt.Sprintf("a container of the %s has ended: %s%s", part, t.why, m.lastLines(ctx, part, t.arn)))
	}
	if len(d.now) >= mostDeaths {
		return &plainError{fmt.Sprintf("the containers of the %s end again and again", part), "look at machines.image: it needs ray and python3; their last lines are above"}
	}
	return nil
}

// mostDeaths is how many containers may end before the run is given up.
const mostDeaths = 4

// lastEvent is what ECS says last of a service.
func (m *maker) lastEvent(ctx context.Context, part string) string {
	cluster := clusterName(m.life)
	out, err := m.ecs.DescribeServices(ctx, &awsecs.DescribeServicesInput{Cluster: &cluster, Services: []string{partName(m.life, part)}})
	if err != nil || len(out.Services) == 0 || len(out.Services[0].Events) == 0 {
		return ""
	}
	return "; ECS says: " + aws.ToString(out.Services[0].Events[0].Message)
}

// lastLines are the last lines of a container's log, as far as CloudWatch has them.
func (m *maker) lastLines(ctx context.Context, part, task string) string {
	group, stream := logGroup(clusterName(m.life)), "ray/"+containerOf[part]+"/"+idOf(task)
	out, err := m.logs.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupName: &group, LogStreamName: &stream, Limit: aws.Int32(8), StartFromHead: aws.Bool(false)})
	if err != nil || len(out.Events) == 0 {
		return "; it has no log"
	}
	text := "; its log ends with"
	for _, e := range out.Events {
		text += "\n  " + aws.ToString(e.Message)
	}
	return text
}

// rayUp waits until Ray has all nodes and their GPUs. A node that is missing is named
// with its log. Where the workers are is asked again each time: ECS may move one.
func (m *maker) rayUp(ctx context.Context, g *gate) error {
	began, named, d := time.Now(), false, &deaths{}
	return m.until(ctx, rayLimit, "Ray", func() (bool, string, error) {
		where, text, err := m.running(ctx, worker, d)
		if err != nil || len(where) < m.spec.Count {
			return false, text, err
		}
		nodes, err := g.Nodes(ctx)
		if err != nil {
			return false, "", gateError(err)
		}
		missing, gpus := missingOf(nodes, where)
		want := m.spec.Count * m.place.facts[worker].gpus
		if len(missing) == 0 && gpus >= want && len(nodes) > len(where) {
			return true, "", nil
		}
		if len(missing) > 0 && !named && time.Since(began) > silent {
			named = true
			for _, task := range missing {
				m.progress(-1, fmt.Sprintf("machine %s (%s) has not joined Ray for %s%s", where[task].instance, where[task].ip, units.Duration(time.Since(began).Round(time.Second)), m.lastLines(ctx, worker, task)))
			}
		}
		return false, fmt.Sprintf("Ray shows %d of %d nodes and %d of %d GPUs%s", len(nodes), len(where)+1, gpus, want, lackText(missing, where)), nil
	})
}

func lackText(missing []string, where map[string]machine) string {
	var names []string
	for _, task := range missing {
		names = append(names, where[task].instance)
	}
	if len(names) == 0 {
		return ""
	}
	return "; missing: " + strings.Join(names, ", ")
}

// gateError says what it means that the dashboard is not reached: that the plugin is
// not installed does not pass.
func gateError(err error) error {
	if strings.Contains(err.Error(), "is not installed here") {
		return &plainError{err.Error(), "install it, or machines.reach: private from within the VPC"}
	}
	var refused *rayjobs.Refused
	if errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("the dashboard is not reached: %w", err)
}

// machinesOf are the machines of containers that are there, by the container.
func (m *maker) machinesOf(ctx context.Context, tasks []seen) (map[string]machine, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	var names []string
	for _, t := range tasks {
		names = append(names, t.machine)
	}
	found, err := m.machines(ctx, clusterName(m.life), names)
	if err != nil {
		return nil, err
	}
	at := map[string]machine{}
	for _, t := range tasks {
		if there, is := found[t.machine]; is {
			at[t.arn] = there
		}
	}
	return at, nil
}

// missingOf are the containers whose machines Ray does not have, and how many GPUs
// those that it has bring.
func missingOf(nodes []rayjobs.Node, where map[string]machine) (missing []string, gpus int) {
	have := map[string]bool{}
	for _, n := range nodes {
		have[n.IP] = true
		gpus += int(n.Resources["GPU"])
	}
	for task, at := range where {
		if !have[at.ip] {
			missing = append(missing, task)
		}
	}
	slices.Sort(missing)
	return missing, gpus
}
