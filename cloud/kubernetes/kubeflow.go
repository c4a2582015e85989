package kubernetes

import (
	"fmt"
	"strconv"
)

// What the kinds of Kubeflow's training operator have in common.

// group are the replicas of one type: so many, of which the first is this one of the
// job.
type group struct {
	kind         string
	first, count int
}

// kubeflowReplica selects the pod of one replica.
func kubeflowReplica(job, kind string, index int) string {
	return fmt.Sprintf("%sjob-name=%s,%sreplica-type=%s,%sreplica-index=%d", labelKubeflow, job, labelKubeflow, kind, labelKubeflow, index)
}

// kubeflowSpec leaves backoffLimit out: with it the operator deletes all pods at
// the first failure, with their logs. cleanPodPolicy Running ends the pods that
// would hold GPUs after another has failed, and keeps the others.
func kubeflowSpec(w work, field string, groups []group) (map[string]any, error) {
	replicas := map[string]any{}
	for _, g := range groups {
		pod := w.pod.DeepCopy()
		setEnv(pod, "DLWB_FIRST", strconv.Itoa(g.first))
		pod.Spec.RestartPolicy = "" // the replica's own is the one that counts
		template, err := plain(pod)
		if err != nil {
			return nil, err
		}
		replicas[g.kind] = map[string]any{"replicas": int64(g.count), "restartPolicy": "Never", "template": template}
	}
	policy := map[string]any{"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": int64(keepEnded)}
	if w.deadline > 0 {
		policy["activeDeadlineSeconds"] = w.deadline
	}
	return map[string]any{"runPolicy": policy, field: replicas}, nil
}
