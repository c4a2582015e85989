package kubernetes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// task is the place of a replica in a training of TensorFlow, as TF_CONFIG has it.
type task struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

const (
	taskWorker = "worker"
	taskServer = "ps"
)

// tfJob has a group of replicas for each type of task. That the processes know each
// other is the engine's doing, whose TF_CONFIG has the names that the operator gives
// the replicas, and ports of its own.
var tfJob = &kind{
	name: options.TFJob, object: "TFJob", container: "tensorflow",
	resource:   schema.GroupVersionResource{Group: pytorchJob.resource.Group, Version: pytorchJob.resource.Version, Resource: "tfjobs"},
	controller: pytorchJob.controller, controllerApp: pytorchJob.controllerApp,
	indexLabel: pytorchJob.indexLabel,
	host: func(r ref, i int) string {
		t := taskOf(r.Tasks, i)
		return fmt.Sprintf("%s-%s-%d", r.Name, t.Type, t.Index)
	},
	selector: pytorchJob.selector,
	replica: func(r ref, i int) string {
		t := taskOf(r.Tasks, i)
		return kubeflowReplica(r.Name, t.Type, t.Index)
	},
	fits: func(n need) bool { return len(n.tasks) > 0 },
	spec: tfSpec,
	stop: pytorchJob.stop,
}

// alike reports whether all replicas of a job work and end alike, so that no operator
// has to know which is which.
func alike(n need) bool {
	return !n.mpi && !n.ray && !n.helps && !slices.ContainsFunc(n.tasks, func(t task) bool { return t.Type == taskServer })
}

// taskOf is the task of a replica; what has none is a worker.
func taskOf(tasks []task, i int) task {
	if i < len(tasks) {
		return tasks[i]
	}
	return task{taskWorker, i}
}

// tasksOf are the tasks of the replicas of a job, by what its engine has made of
// TF_CONFIG; nil where not each replica is one task.
func tasksOf(j cloud.Job) []task {
	tasks := make([]task, j.Replicas)
	for i := range tasks {
		var config struct {
			Task task `json:"task"`
		}
		for _, p := range j.Procs {
			if p.Replica != i {
				continue
			}
			if len(p.Ranks) != 1 || config.Task.Type != "" || json.Unmarshal([]byte(tfConfig(p.Env)), &config) != nil {
				return nil
			}
		}
		if config.Task.Type == "" {
			return nil
		}
		tasks[i] = config.Task
	}
	return tasks
}

func tfConfig(env []string) string {
	for _, pair := range env {
		if text, is := strings.CutPrefix(pair, "TF_CONFIG="); is {
			return text
		}
	}
	return ""
}

// tfTypes are the types of tasks as a TFJob has them.
var tfTypes = map[string]string{"chief": "Chief", taskWorker: "Worker", taskServer: "PS", "evaluator": "Evaluator"}

// tfSpec groups the replicas by their tasks. Those of one type follow each other.
func tfSpec(w work) (map[string]any, error) {
	var groups []group
	for i := range w.replicas {
		kind := tfTypes[taskOf(w.tasks, i).Type]
		if n := len(groups); n > 0 && groups[n-1].kind == kind {
			groups[n-1].count++
			continue
		}
		if kind == "" || slices.ContainsFunc(groups, func(g group) bool { return g.kind == kind }) {
			return nil, fmt.Errorf("replica %d has the task %q, which a TFJob can't have there", i, taskOf(w.tasks, i).Type)
		}
		groups = append(groups, group{kind, i, 1})
	}
	return kubeflowSpec(w, "tfReplicaSpecs", groups)
}

// needOf is what a job of a profile needs, whose replicas have such tasks.
func needOf(spec cloud.Spec, tasks []task) need {
	m := ownOf(spec)
	return need{tasks: tasks, mpi: byMPI(spec.Engine), ray: byRay(spec.Engine), helps: byRay(spec.Engine), pods: m.RunAs > 0 || m.Priority != ""}
}

// asked is what a job of a profile may need, before an engine has made its ranks.
func asked(spec cloud.Spec) need {
	n := needOf(spec, nil)
	if spec.Engine != "tensorflow" || spec.Count < 2 {
		return n
	}
	n.tasks = make([]task, spec.Count)
	for i := range n.tasks {
		n.tasks[i] = task{taskWorker, i}
	}
	return n
}
