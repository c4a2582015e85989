// Package options describes the provider of jobs on a Kubernetes cluster.
package options

import "github.com/dlwb/dlwb/cloud/about"

// Provider is the description.
var Provider = about.Provider{
	Name:    "kubernetes",
	Also:    []string{"k8s", "eks", "gke", "aks", "kubeflow"},
	Doc:     "jobs on a Kubernetes cluster: Kubeflow's PyTorchJob, TFJob, MPIJob or TrainJob, or KubeRay's RayJob, where it has them, else its own Job",
	Keys:    []string{"machines.image", "machines.instance", "machines.instance.gpus"},
	Traits:  about.Traits{Sealed: true, Kept: true, RanksOnly: true, Deadline: true},
	Carries: []string{"tensorflow", "mpi", "horovod", "ray"}, Clusters: []string{"ray"},
	Options: table,
	New:     func() any { return new(Machines) },
	Check:   check, Effects: effects,
}
