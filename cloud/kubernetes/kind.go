package kubernetes

import (
	"fmt"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// kind is an object that a job can become.
type kind struct {
	name     string // as machines.kind has it
	object   string // as the API has it: "PyTorchJob"
	resource schema.GroupVersionResource
	// container is how the one that trains is called.
	container string
	// args are those of launch.sh.
	args []string
	// controller is the deployment that acts on it, where an installation by its
	// own manifests puts it; empty: the control plane does.
	controller, controllerApp string
	// indexLabel of a pod tells which one it is, first is what comes before: a
	// master is none of the workers.
	indexLabel string
	// host is where the others reach a replica.
	host func(r ref, i int) string
	// selector finds the pods of a job, replica those of one replica.
	selector func(name string) string
	replica  func(r ref, i int) string
	// fits reports whether a job that needs this can be one.
	fits func(n need) bool
	spec func(w work) (map[string]any, error)
	// optional are the fields of its spec that it can do without.
	optional []string
	// stop is the patch that ends it and leaves the object.
	stop string
	// service says that the replicas need a headless service of ours.
	service bool
	// runtime says that the pods are those of a runtime of the cluster: their user,
	// priority and grace can't be told.
	runtime bool
}

var kinds = []*kind{tfJob, mpiJob, rayJob, pytorchJob, trainJob, batchJob}

func kindNamed(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return nil
}

// need is what a job has beside its ranks.
type need struct {
	tasks []task // of a training of TensorFlow; nil: there are none
	mpi   bool   // mpirun starts the ranks
	ray   bool   // it runs in a cluster of Ray that KubeRay makes
	helps bool   // its pods start what its engine needs beside the ranks
	pods  bool   // its pods have a user or a priority that the profile gives
}

// work is what a job's object is made of.
type work struct {
	name     string
	replicas int
	deadline int64 // seconds; 0: none
	pod      core.PodTemplateSpec
	tasks    []task // one for each replica; nil: they are alike
	runtime  string
	gpus     int
	gpu      core.ResourceName
	procs    int // ranks in each pod
}

const (
	// keepEnded is how long what has ended stays for somebody who comes later,
	// in seconds: over a long weekend.
	keepEnded = 7 * 24 * 3600
	// stopNow ends a job by its deadline: it has failed then, its pods end in
	// their own time, and its object stays.
	stopDeadline = `{"activeDeadlineSeconds":1}`
)

const (
	labelKubeflow = "training.kubeflow.org/"
	labelBatch    = "batch.kubernetes.io/"
	labelJobSet   = "jobset.sigs.k8s.io/"
)

var pytorchJob = &kind{
	name: options.PyTorchJob, object: "PyTorchJob", container: "pytorch",
	resource:   schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"},
	controller: "training-operator", controllerApp: "control-plane=kubeflow-training-operator",
	indexLabel: labelKubeflow + "replica-index",
	host: func(r ref, i int) string {
		if i == 0 {
			return r.Name + "-master-0"
		}
		return fmt.Sprintf("%s-worker-%d", r.Name, i-1)
	},
	selector: func(name string) string { return labelKubeflow + "job-name=" + name },
	replica: func(r ref, i int) string {
		if i == 0 {
			return kubeflowReplica(r.Name, "master", 0)
		}
		return kubeflowReplica(r.Name, "worker", i-1)
	},
	fits: func(n need) bool { return len(n.tasks) == 0 && alike(n) }, // a worker has no name here
	spec: pytorchSpec,
	stop: `{"spec":{"runPolicy":` + stopDeadline + `}}`,
}

var batchJob = &kind{
	name: options.Job, object: "Job", container: "main",
	resource:   schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
	indexLabel: labelBatch + "job-completion-index",
	host:       func(r ref, i int) string { return fmt.Sprintf("%s-%d.%s", r.Name, i, r.Name) },
	selector:   func(name string) string { return labelBatch + "job-name=" + name },
	replica: func(r ref, i int) string {
		return fmt.Sprintf("%sjob-name=%s,%sjob-completion-index=%d", labelBatch, r.Name, labelBatch, i)
	},
	fits:    func(n need) bool { return n.helps || alike(n) },
	spec:    batchSpec,
	stop:    `{"spec":` + stopDeadline + `}`,
	service: true,
}

var trainJob = &kind{
	name: options.TrainJob, object: "TrainJob", container: "node",
	resource:   schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"},
	controller: "kubeflow-trainer-controller-manager", controllerApp: "app.kubernetes.io/name=trainer",
	indexLabel: labelBatch + "job-completion-index",
	host:       func(r ref, i int) string { return fmt.Sprintf("%s-node-0-%d.%s", r.Name, i, r.Name) },
	selector:   func(name string) string { return labelJobSet + "jobset-name=" + name },
	replica: func(r ref, i int) string {
		return fmt.Sprintf("%sjobset-name=%s,%sreplicatedjob-name=node,%sjob-completion-index=%d", labelJobSet, r.Name, labelJobSet, labelBatch, i)
	},
	fits:    func(n need) bool { return alike(n) && !n.pods },
	spec:    trainSpec,
	runtime: true,
	stop:    `{"spec":{"suspend":true}}`,
}

// plain turns a typed object into what the dynamic client takes.
func plain(v any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(v)
}

// pytorchSpec is a master and its workers.
func pytorchSpec(w work) (map[string]any, error) {
	groups := []group{{"Master", 0, 1}}
	if w.replicas > 1 {
		groups = append(groups, group{"Worker", 1, w.replicas - 1})
	}
	return kubeflowSpec(w, "pytorchReplicaSpecs", groups)
}

// batchSpec is an indexed Job: the pods have names that the service makes known.
func batchSpec(w work) (map[string]any, error) {
	pod := w.pod.DeepCopy()
	pod.Spec.Subdomain = w.name
	pod.Spec.RestartPolicy = core.RestartPolicyNever
	template, err := plain(pod)
	spec := map[string]any{
		"completionMode": "Indexed", "completions": int64(w.replicas), "parallelism": int64(w.replicas),
		"backoffLimit": int64(0), "ttlSecondsAfterFinished": int64(keepEnded), "template": template,
	}
	if w.deadline > 0 {
		spec["activeDeadlineSeconds"] = w.deadline
	}
	return spec, err
}
