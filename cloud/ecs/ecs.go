// Package ecs runs jobs on Ray clusters that it makes on Amazon ECS, in the shape of
// AWS's blueprint for distributed training: an ECS cluster with two auto scaling
// groups, one machine for Ray's head and the others for its workers, a service of
// each. The run is a job of Ray. Nothing is made before the ledger has it, and the
// groups have a scheduled action that ends their machines without dlwb.
//
// A cluster that is there, with a Ray in its services, is used as it is: the run is a job
// of that Ray, and nothing else is made.
package ecs

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/cloud/ecs/options"
	"github.com/dlwb/dlwb/internal/job"
)

// The names of the steps of Submit and Await.
const (
	stepCluster  = "cluster"
	stepMachines = "machines"
	stepHead     = "head"
	stepWorkers  = "workers"
	stepRay      = "ray"
	stepUpload   = "upload"
	stepQueue    = "queue"
)

// Provider makes Ray clusters and runs jobs on them.
type Provider struct {
	doors awsapi.Doors[door]

	mu   sync.Mutex
	rays map[string]*gate  // by the cluster's name
	logs map[string]*spool // by the id of the job
}

var _ cloud.JobProvider = (*Provider)(nil)

// New makes the provider. Nothing is asked before it is used.
func New() *Provider {
	return &Provider{doors: awsapi.Doors[door]{Make: newDoor}, rays: map[string]*gate{}, logs: map[string]*spool{}}
}

// Kind is "ecs".
func (*Provider) Kind() string { return options.Provider.Name }

// Steps are those of Submit and Await.
func (*Provider) Steps() []string {
	return []string{cloud.StepBuild, stepCluster, stepMachines, stepHead, stepWorkers, stepRay, stepUpload, stepQueue}
}

// Shape is what each machine has, as far as its type is known.
func (*Provider) Shape(spec cloud.Spec) cloud.Shape {
	gpus, cores := catalog.SizeOf(spec.Instance)
	return cloud.Shape{GPUs: gpus, Cores: cores}
}

// own are the options of a profile with their defaults.
func own(spec cloud.Spec) options.Machines {
	m := about.Own[options.Machines](spec.Own)
	m.Head, m.Profile, m.Reach = cmp.Or(m.Head, options.DefaultHead), cmp.Or(m.Profile, options.DefaultProfile), cmp.Or(m.Reach, options.SSM)
	m.Shm = cmp.Or(m.Shm, 10)
	return m
}

// Open gives the replicas of a job.
func (p *Provider) Open(life cloud.Life, text string) []job.Replica {
	r, err := readRef(text)
	if err != nil {
		return nil
	}
	all := make([]job.Replica, len(r.Ranks))
	for i := range all {
		all[i] = &replica{p: p, life: life, ref: r, number: i}
	}
	return all
}

// lacks are what the replicas of a job can't do.
func lacks(r ref) []job.Lack {
	// A reason and its remedy fit into one line of a screen of 120 columns.
	inside := "no agent runs in containers of ECS"
	all := []job.Lack{
		{Capability: job.Exec, Why: inside, Next: "aws ssm start-session --region " + r.Region + " --target INSTANCE"},
		{Capability: job.Dial, Why: "no port of a container is reached from here", Next: "docs/ecs.md has the line that forwards one"},
		{Capability: job.Telemetry, Why: inside, Next: "Ray's dashboard shows each node and GPU: docs/ecs.md has the line"},
		{Capability: job.Suspend, Why: "a job of Ray can't be suspended", Next: "stop it, and run it again from its checkpoint in S3"},
	}
	if r.Output == "" {
		all = append(all, job.Lack{Capability: job.Files, Why: "what the run writes stays in the containers and goes with them", Next: "results.s3, and have the script write to DLWB_OUTPUT"})
	}
	return all
}

// ended reports whether an error only says that nobody waits any more.
func ended(err error) bool { return errors.Is(err, context.Canceled) }
