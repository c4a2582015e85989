package kubernetes

import (
	"fmt"
	"strconv"

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
	// controller is the deployment that acts on it, where an installation by its
	// own manifests puts it; empty: the control plane does.
	controller, controllerApp string
	// indexLabel of a pod tells which one it is, first is what comes before: a
	// master is none of the workers.
	indexLabel string
	// head is where the others reach replica 0.
	head func(name string) string
	// selector finds the pods of a job, replica those of one replica.
	selector func(name string) string
	replica  func(name string, i int) string
	spec     func(w work) (map[string]any, error)
	// stop is the patch that ends it and leaves the object.
	stop string
	// service says that the replicas need a headless service of ours.
	service bool
}

var kinds = []*kind{pytorchJob, trainJob, batchJob}

func kindNamed(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return nil
}

// work is what a job's object is made of.
type work struct {
	name     string
	replicas int
	deadline int64 // seconds; 0: none
	pod      core.PodTemplateSpec
	runtime  string
	gpus     int
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
	labelPyTorch = "training.kubeflow.org/"
	labelBatch   = "batch.kubernetes.io/"
	labelJobSet  = "jobset.sigs.k8s.io/"
)

var pytorchJob = &kind{
	name: options.PyTorchJob, object: "PyTorchJob", container: "pytorch",
	resource:   schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"},
	controller: "training-operator", controllerApp: "control-plane=kubeflow-training-operator",
	indexLabel: labelPyTorch + "replica-index",
	head:       func(name string) string { return name + "-master-0" },
	selector:   func(name string) string { return labelPyTorch + "job-name=" + name },
	replica: func(name string, i int) string {
		sel := labelPyTorch + "job-name=" + name + "," + labelPyTorch + "replica-type="
		if i == 0 {
			return sel + "master," + labelPyTorch + "replica-index=0"
		}
		return sel + "worker," + labelPyTorch + "replica-index=" + strconv.Itoa(i-1)
	},
	spec: pytorchSpec,
	stop: `{"spec":{"runPolicy":` + stopDeadline + `}}`,
}

var batchJob = &kind{
	name: options.Job, object: "Job", container: "main",
	resource:   schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
	indexLabel: labelBatch + "job-completion-index",
	head:       func(name string) string { return name + "-0." + name },
	selector:   func(name string) string { return labelBatch + "job-name=" + name },
	replica: func(name string, i int) string {
		return fmt.Sprintf("%sjob-name=%s,%sjob-completion-index=%d", labelBatch, name, labelBatch, i)
	},
	spec:    batchSpec,
	stop:    `{"spec":` + stopDeadline + `}`,
	service: true,
}

var trainJob = &kind{
	name: options.TrainJob, object: "TrainJob", container: "node",
	resource:   schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"},
	controller: "kubeflow-trainer-controller-manager", controllerApp: "app.kubernetes.io/name=trainer",
	indexLabel: labelBatch + "job-completion-index",
	head:       func(name string) string { return name + "-node-0-0." + name },
	selector:   func(name string) string { return labelJobSet + "jobset-name=" + name },
	replica: func(name string, i int) string {
		return fmt.Sprintf("%sjobset-name=%s,%sreplicatedjob-name=node,%sjob-completion-index=%d", labelJobSet, name, labelJobSet, labelBatch, i)
	},
	spec: trainSpec,
	stop: `{"spec":{"suspend":true}}`,
}

// plain turns a typed object into what the dynamic client takes.
func plain(v any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(v)
}

// pytorchSpec leaves backoffLimit out: with it the operator deletes all pods at
// the first failure, with their logs. cleanPodPolicy Running ends the pods that
// would hold GPUs after another has failed, and keeps the others.
func pytorchSpec(w work) (map[string]any, error) {
	replica := func(n, first int) (map[string]any, error) {
		pod := w.pod.DeepCopy()
		setEnv(pod, "DLWB_FIRST", strconv.Itoa(first))
		pod.Spec.RestartPolicy = "" // the replica's own is the one that counts
		template, err := plain(pod)
		return map[string]any{"replicas": int64(n), "restartPolicy": "Never", "template": template}, err
	}
	master, err := replica(1, 0)
	if err != nil {
		return nil, err
	}
	replicas := map[string]any{"Master": master}
	if w.replicas > 1 {
		if replicas["Worker"], err = replica(w.replicas-1, 1); err != nil {
			return nil, err
		}
	}
	policy := map[string]any{"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": int64(keepEnded)}
	if w.deadline > 0 {
		policy["activeDeadlineSeconds"] = w.deadline
	}
	return map[string]any{"runPolicy": policy, "pytorchReplicaSpecs": replicas}, nil
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
