package kubernetes

import (
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dlwb/dlwb/cloud/kubernetes/helpers"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/planning"
)

// A training by Ray without KubeRay is an indexed Job whose pods are all alike, of an image
// with Ray, and what each of them runs is given to all.
func TestRayWithoutKubeRayIsAJobWhosePodsAreAlike(t *testing.T) {
	nodes := []engine.Node{{Host: job.HostOf(0), GPUs: 2}, {Host: job.HostOf(1), GPUs: 2}, {Host: job.HostOf(2), GPUs: 2}}
	j := laidOn(t, "ray", nodes, engine.Job{Command: []string{"train.py"}, Python: "python3", PortName: job.Port, Unplaced: true})
	plan, err := engine.Make("ray", nodes, engine.Job{Command: []string{"train.py"}, Python: "python3", RunDir: "~/.dlwb/runs/run", Run: "run", PortName: job.Port})
	if err != nil {
		t.Fatal(err)
	}
	j.Files, j.Spec.Own = planning.Files(plan), &options.Machines{GPUs: 2}
	o := leaves(objectFor(t, batchJob, j), "", map[string]string{})
	for path, want := range map[string]string{"/apiVersion": "batch/v1", "/kind": "Job", "/spec/completionMode": "Indexed", "/spec/completions": "3", "/spec/parallelism": "3", "/spec/backoffLimit": "0",
		"/spec/template/spec/restartPolicy": "Never", "/spec/template/spec/subdomain": "run", "/spec/template/spec/containers/0/image": options.DefaultRayImage,
		"/spec/template/spec/containers/0/resources/limits/nvidia.com|gpu": "2", "/spec/template/spec/containers/0/command/1": "/dlwb/given/launch.sh"} {
		if o[path] != want {
			t.Errorf("%s is %q, not %q", path, o[path], want)
		}
	}
	s := submission{kind: batchJob, job: j, ref: ref{Name: "run", Kind: options.Job}}
	if s.nodes() != nil {
		t.Error("the pods run something besides")
	}
	all := helpers.Nodes(j, dirWork, s.hosts(), headPort)
	if got := strings.Join(all[2].Procs[0].Argv, " "); !strings.HasPrefix(got, "python3 /dlwb/work/files/2/raystart.py 240 start ") || !strings.Contains(got, "--address=run-0.run:29500") || !strings.Contains(got, "--node-ip-address=run-2.run") {
		t.Error(got)
	}
}

// A pod that serves the ranks of others, and ends before them, is why the job has failed.
func TestAPodOfHelpersThatEndsIsNamed(t *testing.T) {
	r := ref{Kind: options.Job, Name: "run", Ranks: [][]int{{0}, nil}}
	ended := func(code int32, reason, message string) *core.Pod {
		return &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "run-1-x"}, Status: core.PodStatus{Phase: core.PodFailed, ContainerStatuses: []core.ContainerStatus{{Name: "main",
			State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}}}}}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Job"}}
	for name, c := range map[string]struct {
		number int
		pod    *core.Pod
		want   string
	}{
		"Ray has ended in it": {1, ended(5, "Error", "helper: ray on node1 ended with code 5: the log of its launcher says why\n"),
			"started stopping(failed: ray on node1 ended with code 5: the log of its launcher says why) ended(5)"},
		"killed":            {1, ended(137, "Error", ""), "started stopping(failed: pod run-1-x, which serves the ranks of others, ended with code 137) ended(137)"},
		"out of memory":     {1, ended(137, "OOMKilled", ""), "started stopping(memory: pod run-1-x ran out of memory (machines.mem)) ended(137)"},
		"told":              {1, ended(0, "Completed", ""), "started ended(0)"},
		"ended by the job":  {1, ended(143, "Error", ""), "started ended(143)"},
		"the head's Ray":    {0, ended(143, "Error", "helper: ray on node0 ended with code 1\nranks: 0:143\n"), "started stopping(failed: ray on node0 ended with code 1) rank-ended(143TERM) ended(143)"},
		"the driver":        {0, ended(3, "Error", "ranks: 0:3\n"), "started rank-ended(3) ended(3)"},
		"the driver, told":  {0, ended(15, "Error", "told: this pod was told to end\nranks: 0:15\n"), "started stopping(its pod was told to end) rank-ended(15) ended(15)"},
		"the driver killed": {0, ended(137, "Error", ""), "started rank-ended(137KILL) ended(137)"},
	} {
		if got := told(storyOf(r, c.number, look{object: object, pod: c.pod})); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}
