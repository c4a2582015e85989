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
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/waits"
)

// removal is the order in which things can be removed. A capacity provider goes when
// no service uses it, a cluster when nothing is in it, a security group when no machine
// is. The services are drained before (see drain).
var removal = []string{kindScaling, kindService, kindJob, kindCapacity, kindTemplate, kindTask, kindSecret, kindCluster, kindLogs, kindPlacement, kindGroup}

// downLimit bounds the wait for one kind of things to be gone.
const downLimit = 10 * time.Minute

// drainLimit is how long the containers get to end before their machines do: these
// cost.
const drainLimit = 45 * time.Second

// Down ends the jobs and machines of a life and removes all that it has made, in the
// one order that AWS allows, and looks again. A thing that could not be removed keeps
// nothing from being removed that does not need it gone.
func (p *Provider) Down(ctx context.Context, life cloud.Life, progress cloud.Progress) (cloud.Receipt, error) {
	r := cloud.Receipt{Cluster: life.Name, Provider: p.Kind(), Lived: cloud.Lived(life.Began, time.Now())}
	entries, err := life.Ledger.Entries()
	if err != nil {
		return r, err
	}
	var all error
	for _, t := range p.teardowns(life, entries, progress, kindService) {
		t.drain(ctx)
	}
	for _, kind := range removal {
		for _, t := range p.teardowns(life, entries, progress, kind) {
			all = errors.Join(all, t.remove(ctx))
			r.Resources = append(r.Resources, t.found...)
			for _, res := range t.found {
				r.Cost += res.Cost
				if res.State != cloud.Gone && (res.Kind == kindInstance || res.Kind == kindJob) {
					r.ProcessesLeft++
				}
			}
		}
	}
	p.forget(clusterName(life))
	images(entries, progress)
	return r, all
}

func (p *Provider) forget(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.rays[cluster]; g != nil {
		g.Close()
		delete(p.rays, cluster)
	}
	for name, s := range p.logs {
		if s.ref.Cluster == cluster {
			s.close()
			delete(p.logs, name)
		}
	}
}

// teardown removes what one entry of the ledger stands for.
type teardown struct {
	*door
	p        *Provider
	life     cloud.Life
	e        *cloud.Entry
	d        detail
	progress cloud.Progress
	found    []cloud.Resource
}

func (p *Provider) teardowns(life cloud.Life, entries []cloud.Entry, progress cloud.Progress, kind string) (all []*teardown) {
	for i := range entries {
		if entries[i].Kind == kind {
			all = append(all, &teardown{p: p, life: life, e: &entries[i], progress: progress})
		}
	}
	return all
}

// drain removes a service while its machines can still end its containers: one whose
// machines are gone is drained for half an hour by ECS. It takes no longer than
// drainLimit, for machines cost; what it could not do, remove does behind them.
func (t *teardown) drain(ctx context.Context) {
	if t.enter(ctx) != nil || !t.e.Open() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	cluster, part := t.clusterPart()
	for {
		if err := t.deleteService(ctx); err != nil && !busy(err) {
			return
		}
		tasks, err := t.tasksOf(ctx, cluster, part)
		if err != nil || !slices.ContainsFunc(tasks, func(s seen) bool { return s.status != "STOPPED" }) {
			return
		}
		if waits.Pause(ctx, time.Second/2) != nil {
			return
		}
	}
}

// clusterPart takes the name of something of a part apart.
func (t *teardown) clusterPart() (cluster, part string) {
	at := strings.LastIndex(t.d.Name, "-")
	return t.d.Name[:max(at, 0)], t.d.Name[at+1:]
}

// enter reads what the ledger has, and opens the door to where that is.
func (t *teardown) enter(ctx context.Context) (err error) {
	if t.d, err = detailOf(t.e); err == nil {
		t.door, err = t.p.enter(ctx, t.d.Region, t.d.Account)
	}
	return err
}

// tell puts a resource on the receipt.
func (t *teardown) tell(state cloud.State, proof string) {
	id := t.d.Name
	if id == "" {
		id = t.e.Token
	}
	t.found = append(t.found, cloud.Resource{Kind: t.e.Kind, ID: id, State: state, Proof: proof, Lived: cloud.Lived(t.e.IntentAt, time.Now())})
}

func (t *teardown) remove(ctx context.Context) (err error) {
	if err := t.enter(ctx); err != nil {
		t.tell(cloud.Unknown, err.Error())
		return err
	}
	if t.e.Kind == kindJob {
		return t.closeJob(ctx)
	}
	if t.e.Kind == kindScaling {
		if err := t.endMachines(ctx); err != nil {
			return err
		}
	}
	gone, err := t.gone(ctx)
	switch {
	case err != nil:
		t.tell(cloud.Unknown, err.Error())
	case gone && !t.e.Open():
		t.tell(cloud.Gone, t.e.Proof)
	case gone:
		proof := "AWS shows none of that name"
		t.tell(cloud.Gone, proof)
		return t.life.Ledger.Close(t.e.Token, proof)
	default:
		t.tell(cloud.Alive, "AWS still shows it")
	}
	return err
}

// gone removes a thing and waits until AWS shows it no more. What was not seen may be
// too new to be shown, whether its making was answered or not. What AWS refuses to
// remove for as long as something else goes away is asked again.
func (t *teardown) gone(ctx context.Context) (bool, error) {
	find, said, asked := finders[t.e.Kind], "", false
	for until := time.Now().Add(downLimit); ; {
		look, cancel := context.WithTimeout(ctx, callLimit)
		id, err := find(look, t.door, t.d.Name)
		if absent(err) {
			id, err = "", nil
		}
		if err == nil && id != "" {
			if err = t.delete(look, id); err == nil {
				asked = true
			}
		}
		cancel()
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err == nil && id == "" && (asked || time.Since(t.e.IntentAt) > awsapi.Settle()):
			return true, nil
		case err == nil && id == "":
		case err != nil && !busy(err) && !absent(err):
			return false, t.explain(err)
		default:
			said = t.wait(said, err)
		}
		if time.Now().After(until) {
			return false, err
		}
		if err := waits.Pause(ctx, time.Second/2); err != nil {
			return false, err
		}
	}
}

// wait tells what is waited for, when that has changed.
func (t *teardown) wait(said string, err error) string {
	text := t.e.Kind + " " + t.d.Name + " is being removed"
	if err != nil {
		_, says := awsapi.CodeOf(err)
		text = t.e.Kind + " " + t.d.Name + " has to wait: " + says
	}
	if text != said {
		t.progress(-1, text)
	}
	return text
}

// delete asks for the removal of one thing.
func (t *teardown) delete(ctx context.Context, id string) (err error) {
	name := t.d.Name
	switch t.e.Kind {
	case kindService:
		cluster, _ := t.clusterPart()
		if err = t.deregister(ctx, cluster); err == nil || absent(err) { // its machines are gone
			err = t.deleteService(ctx)
		}
	case kindScaling:
		_, err = t.asg.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: &name, ForceDelete: aws.Bool(true)})
	case kindCapacity:
		cluster, _ := t.clusterPart()
		if err = t.detach(ctx, cluster); err == nil {
			_, err = t.ecs.DeleteCapacityProvider(ctx, &awsecs.DeleteCapacityProviderInput{CapacityProvider: &name})
		}
	case kindTemplate:
		_, err = t.ec2.DeleteLaunchTemplate(ctx, &awsec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
	case kindTask:
		err = t.deleteTask(ctx, id)
	case kindSecret:
		_, err = t.api.SSM(t.region).DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: &name})
	case kindCluster:
		if err = t.deregister(ctx, name); err == nil {
			_, err = t.ecs.DeleteCluster(ctx, &awsecs.DeleteClusterInput{Cluster: &name})
		}
	case kindLogs:
		_, err = t.logs.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &name})
	case kindPlacement:
		_, err = t.ec2.DeletePlacementGroup(ctx, &awsec2.DeletePlacementGroupInput{GroupName: &name})
	case kindGroup:
		_, err = t.ec2.DeleteSecurityGroup(ctx, &awsec2.DeleteSecurityGroupInput{GroupId: &id})
	}
	return err
}

// deleteService ends the containers of a service and removes it. One that is being
// drained already is left to that.
func (t *teardown) deleteService(ctx context.Context) error {
	name := t.d.Name
	cluster, part := t.clusterPart()
	out, err := t.ecs.DescribeServices(ctx, &awsecs.DescribeServicesInput{Cluster: &cluster, Services: []string{name}})
	if err != nil || len(out.Services) == 0 {
		return err
	}
	if aws.ToString(out.Services[0].Status) == "ACTIVE" {
		if _, err := t.ecs.DeleteService(ctx, &awsecs.DeleteServiceInput{Cluster: &cluster, Service: &name, Force: aws.Bool(true)}); err != nil {
			return err
		}
	}
	tasks, err := t.tasksOf(ctx, cluster, part)
	for _, task := range tasks {
		if !task.stopped {
			_, _ = t.ecs.StopTask(ctx, &awsecs.StopTaskInput{Cluster: &cluster, Task: aws.String(task.arn), Reason: aws.String("dlwb down")})
		}
	}
	return err
}

// closeJob proves that a job of Ray has ended: no machine of its cluster is left.
func (t *teardown) closeJob(ctx context.Context) error {
	if t.d.Job != nil && t.d.Job.There {
		return t.closeThere(ctx)
	}
	left, err := t.instancesOf(ctx, t.life.ID, notEnded...)
	switch {
	case err != nil:
		t.tell(cloud.Unknown, err.Error())
		return err
	case len(left) > 0:
		t.tell(cloud.Alive, "machines of its cluster are left")
		return nil
	case !t.e.Open():
		t.tell(cloud.Gone, t.e.Proof)
		return nil
	}
	proof := "no machine of its cluster is left"
	if t.d.Job != nil && t.d.Job.Output != "" {
		proof += "; what it has written to S3 stays in " + t.d.Job.Output
	}
	t.tell(cloud.Gone, proof)
	return t.life.Ledger.Close(t.e.Token, proof)
}

// deleteTask ends a revision of a task definition. What is deregistered can't be
// started any more, costs nothing, and goes by ECS's own time.
func (t *teardown) deleteTask(ctx context.Context, arn string) error {
	_, err := t.ecs.DeregisterTaskDefinition(ctx, &awsecs.DeregisterTaskDefinitionInput{TaskDefinition: &arn})
	if err == nil {
		_, _ = t.ecs.DeleteTaskDefinitions(ctx, &awsecs.DeleteTaskDefinitionsInput{TaskDefinitions: []string{arn}})
	}
	return err
}

// detach takes its capacity providers from a cluster.
func (t *teardown) detach(ctx context.Context, cluster string) error {
	out, err := t.ecs.DescribeClusters(ctx, &awsecs.DescribeClustersInput{Clusters: []string{cluster}})
	if err != nil || len(out.Clusters) == 0 || len(out.Clusters[0].CapacityProviders) == 0 {
		return err
	}
	_, err = t.ecs.PutClusterCapacityProviders(ctx, &awsecs.PutClusterCapacityProvidersInput{Cluster: &cluster, CapacityProviders: []string{}, DefaultCapacityProviderStrategy: []ecstypes.CapacityProviderStrategyItem{}})
	if absent(err) {
		return nil
	}
	return err
}

// deregister takes machines that are gone out of a cluster; ECS itself keeps those
// that did not say goodbye.
func (t *teardown) deregister(ctx context.Context, cluster string) error {
	pages := awsecs.NewListContainerInstancesPaginator(t.ecs, &awsecs.ListContainerInstancesInput{Cluster: &cluster})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, arn := range page.ContainerInstanceArns {
			if _, err := t.ecs.DeregisterContainerInstance(ctx, &awsecs.DeregisterContainerInstanceInput{Cluster: &cluster, ContainerInstance: &arn, Force: aws.Bool(true)}); err != nil && !absent(err) {
				return err
			}
		}
	}
	return nil
}

// notEnded are the states of a machine that is not terminated.
var notEnded = []string{"pending", "running", "shutting-down", "stopping", "stopped"}

// instancesOf are the machines of a life that are in one of some states. EC2 shows a
// machine for about an hour after it was terminated.
func (d *door) instancesOf(ctx context.Context, life string, states ...string) (all []ec2types.Instance, err error) {
	pages := awsec2.NewDescribeInstancesPaginator(d.ec2, &awsec2.DescribeInstancesInput{Filters: []ec2types.Filter{filter("tag:"+tagLife, life),
		filter("instance-state-name", states...)}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, d.explain(err)
		}
		for _, r := range page.Reservations {
			all = append(all, r.Instances...)
		}
	}
	return all, nil
}

// endMachines removes the group, so that it makes no more machines, and ends those of
// its part. Each is on the receipt with its proof.
func (t *teardown) endMachines(ctx context.Context) error {
	name, seenIDs, said := t.d.Name, []string{}, ""
	for until := time.Now().Add(downLimit); ; {
		err := t.deleteGroup(ctx)
		var left []ec2types.Instance
		if err == nil || busy(err) {
			left, err = t.instancesOfGroup(ctx)
		}
		if err != nil {
			t.addMachines(seenIDs, cloud.Unknown, err.Error())
			t.tell(cloud.Unknown, err.Error())
			return t.explain(err)
		}
		var ids []string
		for _, i := range left {
			if i.State == nil || i.State.Name != ec2types.InstanceStateNameTerminated {
				ids = append(ids, aws.ToString(i.InstanceId))
			}
			if !slices.Contains(seenIDs, aws.ToString(i.InstanceId)) {
				seenIDs = append(seenIDs, aws.ToString(i.InstanceId))
			}
		}
		if len(ids) == 0 {
			t.addMachines(seenIDs, cloud.Gone, "EC2 shows it terminated")
			return nil
		}
		if _, err := t.ec2.TerminateInstances(ctx, &awsec2.TerminateInstancesInput{InstanceIds: ids}); err != nil && !absent(err) {
			if code, _ := awsapi.CodeOf(err); code != "InvalidInstanceID.NotFound" {
				t.addMachines(seenIDs, cloud.Alive, err.Error())
				return t.explain(err)
			}
		}
		if text := fmt.Sprintf("%d machines of %s end", len(ids), name); text != said {
			said = text
			t.progress(-1, text)
		}
		if time.Now().After(until) {
			t.addMachines(ids, cloud.Alive, "EC2 does not show it terminated")
			return fmt.Errorf("machines %s have not ended within %s", strings.Join(ids, ", "), downLimit)
		}
		if err := waits.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func (t *teardown) addMachines(ids []string, state cloud.State, proof string) {
	lived := cloud.Lived(t.e.IntentAt, time.Now())
	if t.e.ClosedAt != nil {
		lived = cloud.Lived(t.e.IntentAt, *t.e.ClosedAt)
	}
	share := float64(len(ids))
	if t.d.Count > 0 {
		share = float64(t.d.Count) // there may have been more: each costs what one does
	}
	for _, id := range ids {
		t.found = append(t.found, cloud.Resource{Kind: kindInstance, ID: id, State: state, Proof: proof, Lived: lived, Cost: lived.Hours() * t.d.PerHour / share})
	}
}

// deleteGroup removes the auto scaling group, if it is there.
func (t *teardown) deleteGroup(ctx context.Context) error {
	id, err := findScaling(ctx, t.door, t.d.Name)
	if err != nil || id == "" {
		return err
	}
	err = t.delete(ctx, id)
	if absent(err) {
		return nil
	}
	return err
}

// instancesOfGroup are the machines of the part, ended ones too: EC2 keeps the name of
// the group in a tag of its own. One that does not have it yet counts to the workers,
// whose group is removed last: no group makes another in its place then, and none is
// missed.
func (t *teardown) instancesOfGroup(ctx context.Context) (all []ec2types.Instance, err error) {
	every, err := t.instancesOf(ctx, t.life.ID, append([]string{"terminated"}, notEnded...)...)
	_, part := t.clusterPart()
	for _, i := range every {
		if group := groupOf(i); group == t.d.Name || group == "" && part == worker {
			all = append(all, i)
		}
	}
	return all, err
}

// groupOf is the auto scaling group that has made a machine.
func groupOf(i ec2types.Instance) string {
	for _, tag := range i.Tags {
		if aws.ToString(tag.Key) == "aws:autoscaling:groupName" {
			return aws.ToString(tag.Value)
		}
	}
	return ""
}
