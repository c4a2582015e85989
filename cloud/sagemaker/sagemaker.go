// Package sagemaker runs training jobs of Amazon SageMaker: one for each run, under
// a name that the run's id gives, so that there is never a second. In any image that
// has Python dlwb starts the ranks itself; with an estimator the image's own toolkit
// does, from the same requests that the official SDK sends. Nothing is made before
// the ledger has it, and every job has a time limit of the service.
package sagemaker

import (
	"context"
	"errors"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/job"
)

// The names of the steps of Submit and Await.
const (
	stepUpload   = "upload"
	stepQueue    = "queue"
	stepMachines = "machines"
	stepImage    = "image"
)

// Provider runs training jobs.
type Provider struct{ doors awsapi.Doors[door] }

var _ cloud.JobProvider = (*Provider)(nil)

// New makes the provider. Nothing is asked before it is used.
func New() *Provider { return &Provider{doors: awsapi.Doors[door]{Make: newDoor}} }

// Kind is "sagemaker".
func (*Provider) Kind() string { return options.Provider.Name }

// Steps are those of Submit and Await.
func (*Provider) Steps() []string {
	return []string{cloud.StepBuild, stepUpload, stepQueue, stepMachines, stepImage}
}

// Shape is what each machine has, as far as its type is known.
func (*Provider) Shape(spec cloud.Spec) cloud.Shape {
	gpus, cores := catalog.SizeOf(typeOf(spec.Instance))
	return cloud.Shape{GPUs: gpus, Cores: cores}
}

// Open gives the replicas of a job.
func (p *Provider) Open(life cloud.Life, text string) []job.Replica {
	r, err := readRef(text)
	if err != nil {
		return nil
	}
	all := make([]job.Replica, len(r.Ranks))
	for i := range all {
		all[i] = r.replica(p, life, i)
	}
	return all
}

// replica is a host of a job, with what can be done there.
func (r ref) replica(p *Provider, life cloud.Life, number int) job.Replica {
	one := &replica{p: p, life: life, ref: r, number: number}
	if r.Debug {
		return &entered{replica: one}
	}
	return one
}

// lacks are what the replicas of a job can't do.
func lacks(r ref) []job.Lack {
	all := []job.Lack{{Capability: job.Suspend, Why: "a training job can't be suspended", Next: "stop it, and run it again with machines.checkpoints"}}
	if r.Debug {
		all = append(all, job.Lack{Capability: job.Exec, Shell: true, Why: "Systems Manager gives shells and ports of a training job's containers, and runs no single command there",
			Next: "dlwb ssh opens a shell"})
	} else {
		all = append(all,
			job.Lack{Capability: job.Exec, Why: "this training job gives no way in: it was made without machines.remote_debug",
				Next: "machines.remote_debug: true opens the next run; what the script prints comes by the log"},
			job.Lack{Capability: job.Dial, Why: "no port of this training job is reached from here: it was made without machines.remote_debug",
				Next: "machines.remote_debug: true opens the next run; or write event files to the checkpoints or the output, and read them here"})
	}
	if r.Unwatched != "" {
		all = append(all, job.Lack{Capability: job.Telemetry, Why: r.Unwatched,
			Next: "allow cloudwatch:GetMetricData; or https://" + r.Region + ".console.aws.amazon.com/sagemaker/home?region=" + r.Region + "#/jobs/" + r.Name})
	}
	return all
}

// ended reports whether an error only says that nobody waits any more.
func ended(err error) bool { return errors.Is(err, context.Canceled) }
