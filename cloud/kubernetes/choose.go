package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apps "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// choose finds the kind that a job becomes: the one that is asked for, or else
// the first that fits its needs, that the cluster has, whose operator is not seen to
// be dead, and that the caller may make. Where none is all of that, what is wrong is said
// of the first that the cluster has.
func (d *door) choose(ctx context.Context, asked string, n need) (*kind, error) {
	if asked != "" && asked != options.Auto {
		k := kindNamed(asked)
		if !k.fits(n) {
			return nil, unfit(k, n)
		}
		has, err := d.has(ctx, k)
		if err == nil && !has {
			err = &apiError{text: fmt.Sprintf("the cluster has no %s: there is no %s.%s", k.object, k.resource.Resource, k.resource.Group),
				next: k.missing()}
		}
		return k, err
	}
	var first *kind
	for _, k := range kinds {
		if !k.fits(n) {
			continue
		}
		has, err := d.has(ctx, k)
		if err != nil {
			return nil, err
		}
		if !has {
			continue
		}
		if first == nil {
			first = k
		}
		if alive, _, err := d.operator(ctx, k); err == nil && !alive {
			continue
		}
		if yes, err := d.may(ctx, right{verb: "create", group: k.resource.Group, resource: k.resource.Resource}); err == nil && !yes && k != batchJob {
			continue
		}
		return k, nil
	}
	switch {
	case first != nil:
		return first, nil
	case n.ray:
		return nil, noRay()
	}
	if n.mpi {
		return nil, &apiError{text: "a training by mpirun is an MPIJob (" + mpiJob.resource.GroupVersion().String() + "), and the cluster takes none", next: "have Kubeflow's mpi-operator installed, or another run.engine: torchrun needs none"}
	}
	if !alike(n) {
		return nil, &apiError{text: "a job with parameter servers is a TFJob, and the cluster takes none", next: "have Kubeflow's training operator installed, or leave run.parameter_servers out"}
	}
	return nil, errors.New("the cluster takes no jobs")
}

// unfit says why a job can't be of a kind.
func unfit(k *kind, n need) error {
	switch {
	case n.ray || n.helps:
		return &apiError{text: "Ray's head and its workers can't be the pods of a " + k.object, next: "machines.kind: " + options.RayJob + " or " + options.Job + ", or leave it out"}
	case k == rayJob:
		return &apiError{text: "what a RayJob runs is a driver of Ray", next: "run.engine: ray, or leave machines.kind out"}
	case n.mpi:
		return &apiError{text: "mpirun can't start the replicas of a " + k.object, next: "machines.kind: " + options.MPIJob + ", or leave it out"}
	case k == mpiJob:
		return &apiError{text: "the ranks of an MPIJob are started by mpirun", next: "run.engine: mpi or horovod, or leave machines.kind out"}
	case k.runtime && n.pods:
		return &apiError{text: "the pods of a " + k.object + " are those of its runtime, which says their user and their priority", next: "leave machines.run_as and machines.priority out, or machines.kind"}
	case k == tfJob && len(n.tasks) == 0:
		return &apiError{text: "a " + k.object + " has tasks of TensorFlow, one for each of several pods, and this job has none", next: "run.engine: tensorflow and machines.count, or leave machines.kind out"}
	}
	return &apiError{text: "the tasks of a TensorFlow training can't be the replicas of a " + k.object, next: "machines.kind: " + options.TFJob}
}

// missing is what to do where a cluster does not have a kind.
func (k *kind) missing() string {
	switch k {
	case rayJob:
		return rayNotHere
	case mpiJob:
		return "have Kubeflow's mpi-operator installed, or another run.engine: torchrun needs none"
	}
	return "have Kubeflow installed, or leave machines.kind out: " + options.Job + " needs no operator"
}

// instead is what does without the operator of a kind.
func (k *kind) instead() string {
	if k == mpiJob {
		return "another run.engine needs none: torchrun"
	}
	return "machines.kind: " + options.Job + " needs none"
}

// has asks whether the API server serves a kind.
func (d *door) has(ctx context.Context, k *kind) (bool, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	all, err := d.api.Resources(ctx, k.resource.GroupVersion())
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, d.explain(err)
	}
	return slices.ContainsFunc(all, func(r meta.APIResource) bool { return r.Name == k.resource.Resource }), nil
}

// errNotSeen says that nobody tells whether an operator runs.
var errNotSeen = errors.New("its deployment is not visible to you")

// operator looks for the deployment that acts on a kind, in all namespaces.
func (d *door) operator(ctx context.Context, k *kind) (alive bool, text string, err error) {
	if k.controller == "" {
		return true, "the control plane itself acts on a " + k.object, nil
	}
	ctx, cancel := call(ctx)
	defer cancel()
	list, err := d.api.Deployments("").List(ctx, meta.ListOptions{LabelSelector: k.controllerApp})
	if err != nil || len(list.Items) == 0 {
		return false, "", errNotSeen
	}
	dead := ""
	for _, dep := range list.Items {
		if dep.Status.ReadyReplicas > 0 {
			return true, fmt.Sprintf("%s in namespace %s is ready", dep.Name, dep.Namespace), nil
		}
		dead = fmt.Sprintf("%s in namespace %s has no pod that is ready%s", dep.Name, dep.Namespace, whyNot(dep))
	}
	return false, dead, nil
}

func whyNot(dep apps.Deployment) string {
	for _, c := range dep.Status.Conditions {
		if c.Status == "False" || c.Type == apps.DeploymentReplicaFailure {
			return ": " + c.Message
		}
	}
	return ""
}
