package ecs

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
)

// of is what the machines and containers of a cluster are made of. All its runs have
// it in common: a cluster that is there is changed in the number of its workers alone.
func (m *maker) of() map[string]string {
	return map[string]string{"instance": m.spec.Instance, "image": m.spec.Image, "disk": fmt.Sprint(m.spec.Disk), "spot": fmt.Sprint(m.spec.Spot), "head_instance": m.own.Head,
		"instance_profile": m.own.Profile, "task_role": m.own.TaskRole, "task_execution_role": m.own.ExecutionRole, "subnet": m.own.Subnet, "reach": m.own.Reach,
		"shared_memory": fmt.Sprint(m.own.Shm)}
}

// fits says why a profile can't have the cluster that is there; nil: it can.
func (m *maker) fits(made *detail) error {
	next := "dlwb down " + m.life.Name + ", then run it again"
	now := m.of()
	for _, key := range slices.Sorted(maps.Keys(made.Of)) {
		if was := made.Of[key]; was != now[key] {
			return &plainError{fmt.Sprintf("the cluster of %s was made with machines.%s %q, and the profile has %q now", m.life.Name, key, was, now[key]), next}
		}
	}
	if m.spec.Budget > 0 && m.count(worker) > max(made.Count, 1) {
		return &plainError{fmt.Sprintf("limits.budget was shared out over %d workers, and %d would spend it before the machines end", made.Count, m.count(worker)), next}
	}
	return nil
}

// scale has the service of the workers want as many containers as there are to be
// workers now, before their machines come or go: ECS ends containers by itself where
// there are to be fewer, and has those that are to come wait for machines.
func (m *maker) scale(ctx context.Context) error {
	name, cluster := partName(m.life, worker), clusterName(m.life)
	s, err := m.serviceNamed(ctx, name)
	if err != nil || s == nil || s.DesiredCount == m.count(worker) {
		return m.explain(err)
	}
	m.progress(-1, fmt.Sprintf("the cluster has %d workers and is to have %d", s.DesiredCount, m.count(worker)))
	_, err = m.ecs.UpdateService(ctx, &awsecs.UpdateServiceInput{Cluster: &cluster, Service: &name, DesiredCount: aws.Int32(m.count(worker))})
	return m.explain(err)
}
