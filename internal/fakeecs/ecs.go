//go:build unix

package fakeecs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// cluster is one of ECS.
type cluster struct {
	name, status string
	providers    []string
	tags         map[string]string
	members      map[string]*member // by their ARN
	services     map[string]*service
	tasks        []*task
}

// member is a machine that has joined.
type member struct {
	arn, instance string
	gone          time.Time // when its machine ended
}

type provider struct {
	name, group, status string
}

type definition struct {
	arn    string
	active bool
	raw    map[string]any
}

type service struct {
	name, task, provider, status string
	want, made                   int
	event                        string
	drained                      time.Time
}

func (f *Fake) ecs(q request) (any, *Error) {
	acts := map[string]func(map[string]any) (any, *Error){
		"CreateCluster": f.createCluster, "DescribeClusters": f.describeClusters, "DeleteCluster": f.deleteCluster, "PutClusterCapacityProviders": f.putProviders,
		"CreateCapacityProvider": f.createProvider, "DescribeCapacityProviders": f.describeProviders, "DeleteCapacityProvider": f.deleteProvider,
		"RegisterTaskDefinition": f.register, "ListTaskDefinitions": f.listDefinitions, "DeregisterTaskDefinition": f.deregister, "DeleteTaskDefinitions": f.deleteDefinitions,
		"CreateService": f.createService, "DescribeServices": f.describeServices, "ListServices": f.listServices, "DescribeTaskDefinition": f.describeDefinition, "DeleteService": f.deleteService, "UpdateService": f.updateService,
		"ListTasks": f.listTasks, "DescribeTasks": f.describeTasks, "StopTask": f.stopTask, "TagResource": f.tag,
		"ListContainerInstances": f.listMembers, "DescribeContainerInstances": f.describeMembers, "DeregisterContainerInstance": f.removeMember,
	}
	act := acts[q.name]
	if act == nil {
		return nil, bad("InvalidAction", "unknown: %s", q.name)
	}
	return act(q.in)
}

type m = map[string]any

func last(name string) string { return name[strings.LastIndexAny(name, "/:")+1:] }

func (f *Fake) cluster(in m) (*cluster, *Error) {
	if c := f.clusters[last(str(in, "cluster"))]; c != nil && c.status != "INACTIVE" {
		return c, nil
	}
	return nil, bad("ClusterNotFoundException", "Cluster not found.")
}

func (f *Fake) createCluster(in m) (any, *Error) {
	name := str(in, "clusterName")
	c := f.clusters[name]
	if c == nil || c.status == "INACTIVE" {
		c = &cluster{name: name, status: "ACTIVE", tags: map[string]string{}, members: map[string]*member{}, services: map[string]*service{}}
		f.clusters[name] = c
	}
	return m{"cluster": c.shown()}, nil
}

func (c *cluster) shown() m {
	active := 0
	for _, s := range c.services {
		if s.status == "ACTIVE" {
			active++
		}
	}
	tags := []m{}
	for key, value := range c.tags {
		tags = append(tags, m{"key": key, "value": value})
	}
	return m{"clusterName": c.name, "clusterArn": arn("ecs", "cluster/"+c.name), "status": c.status, "registeredContainerInstancesCount": len(c.members),
		"activeServicesCount": active, "capacityProviders": append([]string{}, c.providers...), "tags": tags}
}

func (f *Fake) describeClusters(in m) (any, *Error) {
	found, failures := []m{}, []m{}
	for _, name := range texts(in, "clusters") {
		if c := f.clusters[last(name)]; c != nil {
			found = append(found, c.shown())
		} else {
			failures = append(failures, m{"arn": arn("ecs", "cluster/"+name), "reason": "MISSING"})
		}
	}
	return m{"clusters": found, "failures": failures}, nil
}

func (f *Fake) deleteCluster(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	for _, s := range c.services {
		if s.status != "INACTIVE" {
			return nil, bad("ClusterContainsServicesException", "The Cluster cannot be deleted while Services are active.")
		}
	}
	if len(c.members) > 0 {
		return nil, bad("ClusterContainsContainerInstancesException", "The Cluster cannot be deleted while Container Instances are active or draining.")
	}
	c.status = "INACTIVE"
	return m{"cluster": c.shown()}, nil
}

func (f *Fake) putProviders(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	names := texts(in, "capacityProviders")
	for _, name := range names {
		if p := f.providers[name]; p == nil || p.status == "INACTIVE" {
			return nil, bad("InvalidParameterException", "The specified capacity provider '%s' was not found. Specify a valid name or ARN and try again.", name)
		}
	}
	for _, s := range c.services {
		if s.status != "INACTIVE" && !slices.Contains(names, s.provider) {
			return nil, bad("ResourceInUseException", "The specified capacity provider is in use and cannot be removed.")
		}
	}
	c.providers = names
	return m{"cluster": c.shown()}, nil
}

func (f *Fake) createProvider(in m) (any, *Error) {
	name := str(in, "name")
	if p := f.providers[name]; p != nil && p.status != "INACTIVE" {
		return nil, bad("InvalidParameterException", "The specified capacity provider name already exists.")
	}
	auto, _ := in["autoScalingGroupProvider"].(m)
	group := last(str(auto, "autoScalingGroupArn"))
	if f.groups[group] == nil {
		return nil, bad("ClientException", "The specified Auto Scaling group was not found.")
	}
	f.providers[name] = &provider{name, group, "ACTIVE"}
	return m{"capacityProvider": f.providers[name].shown()}, nil
}

func (p *provider) shown() m {
	return m{"name": p.name, "capacityProviderArn": arn("ecs", "capacity-provider/"+p.name), "status": p.status}
}

func (f *Fake) describeProviders(in m) (any, *Error) {
	found := []m{}
	for _, name := range texts(in, "capacityProviders") {
		if p := f.providers[name]; p != nil {
			found = append(found, p.shown())
		}
	}
	return m{"capacityProviders": found}, nil
}

func (f *Fake) deleteProvider(in m) (any, *Error) {
	name := str(in, "capacityProvider")
	for _, c := range f.clusters {
		if c.status == "ACTIVE" && slices.Contains(c.providers, name) {
			return nil, bad("ResourceInUseException", "The specified capacity provider is in use and cannot be deleted.")
		}
	}
	p := f.providers[name]
	if p == nil {
		return nil, bad("InvalidParameterException", "The specified capacity provider was not found.")
	}
	p.status = "INACTIVE"
	return m{"capacityProvider": p.shown()}, nil
}

func (f *Fake) register(in m) (any, *Error) {
	family := str(in, "family")
	d := &definition{arn: arn("ecs", fmt.Sprintf("task-definition/%s:%d", family, len(f.tasks[family])+1)), active: true, raw: in}
	f.tasks[family] = append(f.tasks[family], d)
	return m{"taskDefinition": m{"taskDefinitionArn": d.arn, "family": family, "status": "ACTIVE"}}, nil
}

// families are listed by a prefix, as ECS does where there is one of exactly that name
// too.
func (f *Fake) listDefinitions(in m) (any, *Error) {
	found := []string{}
	for family, list := range f.tasks {
		for _, d := range list {
			if d.active && family == str(in, "familyPrefix") {
				found = append(found, d.arn)
			}
		}
	}
	slices.Sort(found)
	return m{"taskDefinitionArns": found}, nil
}

func (f *Fake) definition(name string) *definition {
	for _, list := range f.tasks {
		for _, d := range list {
			if d.arn == name {
				return d
			}
		}
	}
	return nil
}

func (f *Fake) deregister(in m) (any, *Error) {
	d := f.definition(str(in, "taskDefinition"))
	if d == nil {
		return nil, bad("ClientException", "Unable to describe task definition.")
	}
	d.active = false
	return m{"taskDefinition": m{"taskDefinitionArn": d.arn, "status": "INACTIVE"}}, nil
}

func (f *Fake) deleteDefinitions(m) (any, *Error) { return m{"taskDefinitions": []m{}}, nil }

func (f *Fake) createService(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	name := str(in, "serviceName")
	if s := c.services[name]; s != nil && s.status != "INACTIVE" {
		return nil, bad("InvalidParameterException", "Creation of service was not idempotent.")
	}
	if d := f.definition(str(in, "taskDefinition")); d == nil || !d.active {
		return nil, bad("ClientException", "TaskDefinition not found.")
	}
	strategy := objects(in, "capacityProviderStrategy")
	if len(strategy) == 0 || !slices.Contains(c.providers, str(strategy[0], "capacityProvider")) {
		return nil, bad("InvalidParameterException", "The specified capacity provider was not found in the cluster.")
	}
	c.services[name] = &service{name: name, task: str(in, "taskDefinition"), provider: str(strategy[0], "capacityProvider"), status: "ACTIVE", want: number(in, "desiredCount")}
	return m{"service": c.services[name].shown(c)}, nil
}

func (s *service) shown(c *cluster) m {
	events := []m{}
	if s.event != "" {
		events = append(events, m{"id": "e", "message": s.event})
	}
	return m{"serviceName": s.name, "serviceArn": arn("ecs", "service/"+c.name+"/"+s.name), "status": s.status, "desiredCount": s.want, "events": events, "taskDefinition": s.task}
}

func (f *Fake) listServices(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	found := []string{}
	for _, s := range c.services {
		if s.status == "ACTIVE" {
			found = append(found, arn("ecs", "service/"+c.name+"/"+s.name))
		}
	}
	slices.Sort(found)
	return m{"serviceArns": found}, nil
}

func (f *Fake) describeDefinition(in m) (any, *Error) {
	d := f.definition(str(in, "taskDefinition"))
	if d == nil {
		return nil, bad("ClientException", "Unable to describe task definition.")
	}
	return m{"taskDefinition": d.raw}, nil
}

func (f *Fake) describeServices(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	found, failures := []m{}, []m{}
	for _, name := range texts(in, "services") {
		if s := c.services[last(name)]; s != nil {
			found = append(found, s.shown(c))
		} else {
			failures = append(failures, m{"arn": name, "reason": "MISSING"})
		}
	}
	return m{"services": found, "failures": failures}, nil
}

func (f *Fake) updateService(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	s := c.services[last(str(in, "service"))]
	if s == nil || s.status != "ACTIVE" {
		return nil, bad("ServiceNotActiveException", "Service was not ACTIVE.")
	}
	s.want = number(in, "desiredCount")
	return m{"service": s.shown(c)}, nil
}

func (f *Fake) deleteService(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	s := c.services[last(str(in, "service"))]
	if s == nil || s.status == "INACTIVE" {
		return nil, bad("ServiceNotFoundException", "Service not found.")
	}
	if force, _ := in["force"].(bool); !force && s.want > 0 {
		return nil, bad("InvalidParameterException", "The service cannot be stopped while it is scaled above 0.")
	}
	s.status, s.want, s.drained = "DRAINING", 0, time.Now()
	return m{"service": s.shown(c)}, nil
}

func (f *Fake) listTasks(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	if name := last(str(in, "serviceName")); c.services[name] == nil {
		return nil, bad("ServiceNotFoundException", "Service not found.")
	}
	found := []string{}
	for _, t := range c.tasks {
		if t.service == last(str(in, "serviceName")) && t.desired == str(in, "desiredStatus") {
			found = append(found, t.arn)
		}
	}
	return m{"taskArns": found}, nil
}

func (f *Fake) describeTasks(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	found := []m{}
	for _, t := range c.tasks {
		if slices.Contains(texts(in, "tasks"), t.arn) {
			found = append(found, t.shown())
		}
	}
	return m{"tasks": found, "failures": []m{}}, nil
}

func (f *Fake) stopTask(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	for _, t := range c.tasks {
		if t.arn == str(in, "task") {
			t.why = str(in, "reason")
			t.stop("UserInitiated", cmp.Or(str(in, "reason"), "Task stopped by user"))
			return m{"task": t.shown()}, nil
		}
	}
	return nil, bad("InvalidParameterException", "The referenced task was not found.")
}

func (f *Fake) tag(in m) (any, *Error) {
	c := f.clusters[last(str(in, "resourceArn"))]
	if c == nil {
		return nil, bad("InvalidParameterException", "The specified resource was not found.")
	}
	for _, t := range objects(in, "tags") {
		c.tags[str(t, "key")] = str(t, "value")
	}
	return m{}, nil
}

func (f *Fake) listMembers(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	found := []string{}
	for name := range c.members {
		found = append(found, name)
	}
	return m{"containerInstanceArns": found}, nil
}

func (f *Fake) describeMembers(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	found := []m{}
	for _, name := range texts(in, "containerInstances") {
		if x := c.members[name]; x != nil {
			found = append(found, m{"containerInstanceArn": x.arn, "ec2InstanceId": x.instance, "status": "ACTIVE"})
		}
	}
	return m{"containerInstances": found, "failures": []m{}}, nil
}

func (f *Fake) removeMember(in m) (any, *Error) {
	c, e := f.cluster(in)
	if e != nil {
		return nil, e
	}
	x := c.members[str(in, "containerInstance")]
	if x == nil {
		return nil, bad("InvalidParameterException", "The referenced container instance was not found.")
	}
	delete(c.members, x.arn)
	for _, t := range c.tasks {
		if t.member == x {
			t.stop("UserInitiated", "Container instance deregistered forcibly")
		}
	}
	return m{"containerInstance": m{"containerInstanceArn": x.arn, "status": "INACTIVE"}}, nil
}
