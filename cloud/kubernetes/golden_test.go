package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/remote/engine"
)

// leaves are the values of an object by their paths.
func leaves(of any, path string, into map[string]string) map[string]string {
	switch v := of.(type) {
	case map[string]any:
		for key, one := range v {
			leaves(one, path+"/"+strings.ReplaceAll(key, "/", "|"), into)
		}
	case []any:
		for i, one := range v {
			leaves(one, fmt.Sprintf("%s/%d", path, i), into)
		}
	default:
		into[path] = fmt.Sprint(v)
	}
	return into
}

// objectFor is what is sent for a job of a run in namespace team.
func objectFor(t *testing.T, k *kind, j cloud.Job) map[string]any {
	t.Helper()
	s := submission{door: &door{}, life: cloud.Life{Name: "c", ID: "life"}, job: j, kind: k, ref: ref{place: place{Namespace: "team"}, Kind: k.name, Name: "run", Ranks: make([][]int, j.Replicas)}}
	s.place = s.ref.place
	if k == tfJob {
		s.ref.Tasks = tasksOf(j)
	}
	pod, err := podOf(k, "run", j.Spec, labelsOf(s.life, j.Run), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	o, err := objectOf(k, s.meta(), j.Spec, work{pod: pod, replicas: j.Replicas, tasks: s.ref.Tasks, procs: 2})
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any // with the numbers as JSON has them
	text, err := o.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// For the same trainings dlwb sends what Kubeflow's own client does (testdata/sdk.py), and
// besides what is listed here.
func TestWhatIsSentIsWhatKubeflowsOwnClientSends(t *testing.T) {
	text, err := os.ReadFile("testdata/sdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var sent []map[string]any
	if err := json.Unmarshal(text, &sent); err != nil {
		t.Fatal(err)
	}
	m := &options.Machines{GPUs: 2, CPUs: 4, Memory: "8Gi", Queue: "gpus"}
	for i, k := range []*kind{pytorchJob, tfJob} {
		pods, j, name := 2, engine.Job{}, "torchrun"
		if k == tfJob {
			pods, j.ParameterServers, name = 4, 1, "tensorflow"
		}
		j.Command = []string{"python", "train.py"}
		made := laid(t, name, pods, 2, j)
		made.Spec.Own, made.Spec.Image = m, "pytorch/pytorch:2.7.1"
		ours, theirs := leaves(objectFor(t, k, made), "", map[string]string{}), leaves(sent[i], "", map[string]string{})
		for path, value := range theirs {
			// Processors that are idle may be used.
			if ours[path] != value && !strings.HasSuffix(path, "/limits/cpu") {
				t.Errorf("%s: %s is %q here, and %q there", k.object, path, ours[path], value)
			}
		}
		more := []string{"/metadata/labels/", "/metadata/annotations/", "/spec/runPolicy/cleanPodPolicy", "/spec/runPolicy/ttlSecondsAfterFinished", "/restartPolicy",
			"/template/metadata/labels/", "/command/", "/env/", "/volumeMounts/", "/volumes/", "/terminationGracePeriodSeconds"}
		for path := range ours {
			if _, is := theirs[path]; !is && !slices.ContainsFunc(more, func(part string) bool { return strings.Contains(path, part) || strings.HasSuffix(path, part) }) {
				t.Errorf("%s: only here there is %s", k.object, path)
			}
		}
	}
}

// An MPIJob is as the examples of its operator have it, with ranks in the launcher too.
func TestAnMPIJobHasALauncherWithRanksAndItsWorkers(t *testing.T) {
	j := laid(t, "mpi", 3, 2, engine.Job{Command: []string{"python", "train.py"}})
	o := leaves(objectFor(t, mpiJob, j), "", map[string]string{})
	for path, want := range map[string]string{"/apiVersion": "kubeflow.org/v2beta1", "/kind": "MPIJob", "/spec/slotsPerWorker": "2", "/spec/runLauncherAsWorker": "true",
		"/spec/runPolicy/cleanPodPolicy": "Running", "/spec/runPolicy/backoffLimit": "0", "/spec/mpiReplicaSpecs/Launcher/replicas": "1", "/spec/mpiReplicaSpecs/Worker/replicas": "2",
		"/spec/mpiReplicaSpecs/Worker/restartPolicy": "Never", "/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/resources/limits/nvidia.com|gpu": "2"} {
		if o[path] != want {
			t.Errorf("%s is %q, not %q", path, o[path], want)
		}
	}
	alone := leaves(objectFor(t, mpiJob, laid(t, "mpi", 1, 2, engine.Job{Command: []string{"python", "train.py"}})), "", map[string]string{})
	if _, is := alone["/spec/mpiReplicaSpecs/Worker/replicas"]; is {
		t.Error("one pod has workers")
	}
}
