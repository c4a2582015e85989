package kubernetes

import (
	"cmp"

	core "k8s.io/api/core/v1"

	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// trainSpec is a TrainJob of Kubeflow's Trainer: what the runtime leaves open is
// the trainer's, and the rest of the pod goes into the overrides.
func trainSpec(w work) (map[string]any, error) {
	main := w.pod.Spec.Containers[0]
	inside := core.PodSpec{ServiceAccountName: w.pod.Spec.ServiceAccountName, NodeSelector: w.pod.Spec.NodeSelector,
		Tolerations: w.pod.Spec.Tolerations, Volumes: w.pod.Spec.Volumes, ImagePullSecrets: w.pod.Spec.ImagePullSecrets}
	overrides, err := plain(&inside)
	if err != nil {
		return nil, err
	}
	container, err := plain(&core.Container{Name: "node", VolumeMounts: main.VolumeMounts})
	if err != nil {
		return nil, err
	}
	delete(container, "resources")
	overrides["containers"] = []any{container}
	whole, err := plain(&core.Container{Env: main.Env, Resources: main.Resources})
	if err != nil {
		return nil, err
	}
	trainer := map[string]any{"numNodes": int64(w.replicas), "image": main.Image, "command": []any{"sh", dirGiven + "/launch.sh"},
		"numProcPerNode": int64(max(w.gpus, 1)), "env": whole["env"], "resourcesPerNode": whole["resources"]}
	labels := map[string]any{}
	for key, value := range w.pod.Labels {
		labels[key] = value
	}
	return map[string]any{
		"runtimeRef": map[string]any{"name": cmp.Or(w.runtime, options.DefaultRuntime)},
		"trainer":    trainer,
		"podTemplateOverrides": []any{map[string]any{"targetJobs": []any{map[string]any{"name": "node"}},
			"metadata": map[string]any{"labels": labels}, "spec": overrides}},
	}, nil
}
