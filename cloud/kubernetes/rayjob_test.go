package kubernetes

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/remote/engine"
)

// rayLaid is a job of Ray with so many pods that have so many GPUs each.
func rayLaid(t *testing.T, pods, gpus int, m options.Machines) cloud.Job {
	t.Helper()
	nodes := make([]engine.Node, pods, pods+1)
	for i := range nodes {
		nodes[i].GPUs = gpus
	}
	if pods > 1 {
		nodes = append([]engine.Node{{Head: true}}, nodes...)
	}
	j := laidOn(t, "ray", nodes, engine.Job{Command: []string{"python", "train.py"}, Given: true})
	m.GPUs = gpus
	j.Spec.Count, j.Spec.Own = pods, &m
	return j
}

// A RayJob is what KubeRay's own samples are, and besides what is listed here.
func TestARayJobIsAsKubeRaysOwnSamplesAre(t *testing.T) {
	text, err := os.ReadFile("testdata/rayjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sample map[string]any
	if err := yaml.Unmarshal(text, &sample); err != nil {
		t.Fatal(err)
	}
	sample["spec"].(map[string]any)["rayClusterSpec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)["replicas"] = 2
	sample["spec"].(map[string]any)["rayClusterSpec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)["minReplicas"] = 2
	j := rayLaid(t, 2, 0, options.Machines{CPUs: 1, Memory: "5Gi"})
	j.Spec.Image, j.Spec.Lifetime = "rayproject/ray:2.52.0", 2*time.Hour
	ours, theirs := leaves(objectFor(t, rayJob, j), "", map[string]string{}), leaves(sample, "", map[string]string{})
	for path, value := range theirs {
		if ours[path] != value {
			t.Errorf("%s is %q here, and %q there", path, ours[path], value)
		}
	}
	for path, want := range map[string]string{
		"/spec/submissionMode": "K8sJobMode", "/spec/submitterConfig/backoffLimit": "0", "/spec/ttlSecondsAfterFinished": "30", "/spec/entrypoint": "sh /dlwb/given/launch.sh driver",
		"/spec/activeDeadlineSeconds": "7200", "/spec/preRunningDeadlineSeconds": "3600", "/spec/rayClusterSpec/headGroupSpec/rayStartParams/num-cpus": "0",
		"/spec/submitterPodTemplate/spec/restartPolicy": "Never", "/spec/submitterPodTemplate/spec/containers/0/image": "rayproject/ray:2.52.0",
	} {
		if ours[path] != want {
			t.Errorf("%s is %q, not %q", path, ours[path], want)
		}
	}
}

// The head has the driver, and no GPU where there are several pods: one alone is the
// head and has them.
func TestTheHeadOfSeveralPodsHasNoGPU(t *testing.T) {
	m := options.Machines{NodeSelector: map[string]string{"gpu": "a100"}, Tolerations: []string{"nvidia.com/gpu"}, PullSecrets: []string{"registry"},
		Volumes: []string{"data:/data"}, RunAs: 1000, Priority: "high", ServiceAccount: "trainer", Memory: "8Gi"}
	head, worker, driver := "/spec/rayClusterSpec/headGroupSpec", "/spec/rayClusterSpec/workerGroupSpecs/0", "/spec/submitterPodTemplate"
	several := leaves(objectFor(t, rayJob, rayLaid(t, 2, 4, m)), "", map[string]string{})
	alone := leaves(objectFor(t, rayJob, rayLaid(t, 1, 4, m)), "", map[string]string{})
	gpu := "/template/spec/containers/0/resources/limits/nvidia.com|gpu"
	for path, want := range map[string]string{
		worker + gpu: "4", worker + "/rayStartParams/num-gpus": "4", worker + "/replicas": "2", worker + "/template/spec/nodeSelector/gpu": "a100", head + gpu: "",
		head + "/template/spec/nodeSelector/gpu": "", head + "/template/spec/containers/0/resources/limits/memory": "8Gi", driver + "/spec/containers/0/command/2": "/dlwb/given/submit.py", driver + "/spec/volumes/1/name": "",
		head + "/template/metadata/annotations/ray.io|overwrite-container-cmd": "true", worker + "/template/metadata/annotations/ray.io|overwrite-container-cmd": "true",
		head + "/template/spec/containers/0/command/2": "ray", worker + "/template/spec/containers/0/command/2": "ray",
	} {
		if several[path] != want {
			t.Errorf("%s is %q, not %q", path, several[path], want)
		}
	}
	for _, pod := range []string{head + "/template", worker + "/template", driver} {
		for path, want := range map[string]string{"/spec/tolerations/0/key": "nvidia.com/gpu", "/spec/imagePullSecrets/0/name": "registry", "/spec/priorityClassName": "high",
			"/spec/serviceAccountName": "trainer", "/spec/securityContext/runAsUser": "1000", "/spec/containers/0/name": "ray"} {
			if several[pod+path] != want {
				t.Errorf("%s is %q, not %q", pod+path, several[pod+path], want)
			}
		}
		if mounted := several[pod+"/spec/containers/0/volumeMounts/2/mountPath"]; (mounted == "/data") != (pod != driver) {
			t.Errorf("%s mounts %q", pod, mounted)
		}
	}
	if alone[head+gpu] != "4" || alone[head+"/rayStartParams/num-gpus"] != "4" || alone[worker+"/replicas"] != "" || alone[head+"/template/spec/nodeSelector/gpu"] != "a100" {
		t.Errorf("one pod: %v", alone)
	}
}

// Which version an image has is told where it says so itself, and nowhere else.
func TestTheVersionOfRayIsToldWhereItIsKnown(t *testing.T) {
	for image, want := range map[string]string{"rayproject/ray:2.54.0-gpu": "2.54.0", "rayproject/ray:2.54.0": "2.54.0", "reg.io:5000/team/ray-ml:2.40.0-py312-gpu@sha256:00": "2.40.0",
		"rayproject/ray:latest": "", "team/myray:2.54.0": "", "rayproject/ray:nightly-2.54.0": "", "team/train:1.0.0": ""} {
		if got := rayVersion(image); got != want {
			t.Errorf("%s: %q, not %q", image, got, want)
		}
	}
}

// The driver runs what the engine plans, and finds Ray's address by itself: that of dlwb
// is not known here. Its lines are told from those of Ray's own client.
func TestADriverOfRayHasItsCommandAndItsVariables(t *testing.T) {
	j := rayLaid(t, 2, 4, options.Machines{})
	if j.Replicas != 3 || len(j.Ranks) != 1 {
		t.Fatalf("%d replicas with %v", j.Replicas, j.Ranks)
	}
	nodes := rayNodes(j, func(s string) string { return s })
	driver := nodes[0].Procs[0]
	if got := strings.Join(driver.Argv, " "); got != "python3 train.py" || len(nodes[0].Procs) != 1 || len(nodes[1].Procs) != 0 || !nodes[0].Several() {
		t.Errorf("%q, %+v", got, nodes)
	}
	for _, want := range []string{"RANK=0", "DLWB_WORKERS=8", "DLWB_GPUS=8"} {
		if !slices.Contains(driver.Env, want) {
			t.Errorf("%s is not in %v", want, driver.Env)
		}
	}
	if slices.ContainsFunc(driver.Env, func(pair string) bool { return strings.HasPrefix(pair, "RAY_ADDRESS=") }) {
		t.Error(driver.Env)
	}
	for line, want := range map[string]string{"[rank0] a\uf7ffb\n": "a\xffb\n", "[rank0]+ 10%\uf70d": "10%\r", "Job 'x' submitted successfully\n": "", "Next steps\n": ""} {
		if got, mine := rayLines("rank-0.log")([]byte(line)); mine != (want != "") || mine && string(got) != want {
			t.Errorf("%q: %q, %v", line, got, mine)
		}
	}
}

func rayObject(status map[string]any, more ...func(o *unstructured.Unstructured)) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ray.io/v1", "kind": "RayJob", "status": status, "spec": map[string]any{}}}
	for _, change := range more {
		change(o)
	}
	return o
}

func stoppedBy(why string) func(o *unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		text, _ := json.Marshal(stopNote{Why: why})
		o.SetAnnotations(map[string]string{noteWhy: string(text)})
	}
}

// Each end that KubeRay and Ray know has its verdict, as soon as one of them says so.
func TestTheEndOfARayJobIsToldAsRayAndKubeRayTellIt(t *testing.T) {
	r := ref{Kind: options.RayJob, Name: "run", Ranks: [][]int{{0}, nil, nil}}
	pod := func(change func(s *core.ContainerStatus)) *core.Pod {
		s := core.ContainerStatus{Name: "ray", State: core.ContainerState{Running: &core.ContainerStateRunning{}}}
		if change != nil {
			change(&s)
		}
		return &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "p"}, Status: core.PodStatus{ContainerStatuses: []core.ContainerStatus{s}}}
	}
	failed := func(more string) map[string]any {
		return map[string]any{"jobStatus": "FAILED", "jobDeploymentStatus": "Running", "message": "Job entrypoint command failed with exit code " + more}
	}
	starved := losses{Starved: map[string]bool{"run-worker-x": true}}
	evicted := losses{Taken: map[string]string{"run-worker-y": "its node was drained"}}
	for name, c := range map[string]struct {
		look   look
		driver string
		worker string
	}{
		"runs":              {look{object: rayObject(map[string]any{"jobStatus": "RUNNING", "jobDeploymentStatus": "Running"}), pod: pod(nil)}, "started", "started"},
		"not all pods":      {look{object: rayObject(map[string]any{"jobDeploymentStatus": "Initializing"})}, "", ""},
		"ended well":        {look{object: rayObject(map[string]any{"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Running"}), pod: pod(nil)}, "started rank-ended(0) ended(0)", "started ended(0)"},
		"well after a loss": {look{object: rayObject(map[string]any{"jobStatus": "SUCCEEDED"}), pod: pod(nil), lost: evicted}, "started rank-ended(0) ended(0)", "started ended(0)"},
		"exit code":         {look{object: rayObject(failed("3, last available logs")), pod: pod(nil)}, "started rank-ended(3) ended(3)", "started ended(0)"},
		"a signal":          {look{object: rayObject(failed("-11")), pod: pod(nil)}, "started rank-ended(139SEGV) ended(139)", "started ended(0)"},
		"a worker ran out of memory": {look{object: rayObject(failed("1")), pod: pod(nil), lost: starved}, "started rank-starved(1) rank-ended(1) ended(1)",
			"started ended(0)"},
		"the head ran out of memory": {look{object: rayObject(map[string]any{"jobDeploymentStatus": "Failed", "reason": "SubmissionFailed"}), pod: pod(nil), lost: starved},
			"started stopping(memory: pod run-worker-x ran out of memory (machines.mem)) rank-ended(143TERM) ended(143)", ""},
		"evicted": {look{object: rayObject(failed("1")), pod: pod(nil), lost: evicted}, "started stopping(lost: pod run-worker-y was ended: its node was drained) rank-ended(1) ended(1)", ""},
		"submission": {look{object: rayObject(map[string]any{"jobDeploymentStatus": "Failed", "reason": "SubmissionFailed", "message": "Job submission has failed."}), pod: pod(func(s *core.ContainerStatus) {
			s.State = core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 1, Message: "Traceback\nConnectionError: nobody\n"}}
		})},
			"started stopping(failed: the driver could not be handed to Ray, or was lost with its head: Job submission has failed.: ConnectionError: nobody) rank-ended(143TERM) ended(143)", ""},
		"stopped, and ended well": {look{object: rayObject(map[string]any{"jobStatus": "SUCCEEDED"}, stoppedBy("asked: by a test")), pod: pod(nil)},
			"started stopping(asked: by a test) rank-ended(0) ended(0)", ""},
		"deadline": {look{object: rayObject(map[string]any{"jobStatus": "RUNNING", "jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded", "message": "passed"}), pod: pod(nil)},
			"started stopping(limit: the job had its time (limits.lifetime): passed) rank-ended(143TERM) ended(143)", ""},
		"never whole": {look{object: rayObject(map[string]any{"jobDeploymentStatus": "Failed", "reason": "PreRunningDeadlineExceeded", "message": "passed"})},
			"stopping(failed: not all of its pods came up in time, and KubeRay gave it up: passed) rank-ended(143TERM) ended(143)", ""},
		"stopped by us": {look{object: rayObject(failed("143"), stoppedBy("asked: by a test")), pod: pod(nil)}, "started stopping(asked: by a test) rank-ended(143TERM) ended(143)",
			"started stopping(asked: by a test) ended(0)"},
		"stopped by our deadline": {look{object: rayObject(map[string]any{"jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded"}, stoppedBy("asked: by a test")), pod: pod(nil)},
			"started stopping(asked: by a test) rank-ended(143TERM) ended(143)", ""},
		"being stopped": {look{object: rayObject(map[string]any{"jobStatus": "RUNNING"}, stoppedBy("asked: by a test")), pod: pod(nil)}, "started stopping(asked: by a test)", ""},
		"ray job stop":  {look{object: rayObject(map[string]any{"jobStatus": "STOPPED"}), pod: pod(nil)}, "started stopping(cancelled: somebody stopped the job by Ray's own means) rank-ended(143TERM) ended(143)", ""},
		"deleted":       {look{gone: true, pod: pod(nil)}, "started stopping(cancelled: the job was deleted in the cluster) rank-ended(143TERM) ended(143)", ""},
		"refused": {look{object: rayObject(map[string]any{"jobDeploymentStatus": "ValidationFailed", "reason": "ValidationFailed", "message": "no"})},
			"stopping(failed: KubeRay says: ValidationFailed: no) rank-ended(143TERM) ended(143)", ""},
		"queued again": {look{object: rayObject(map[string]any{"jobDeploymentStatus": "Suspended"}, func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, true, "spec", "suspend")
		}), pod: pod(nil), gone: true, evict: "preempted"}, "started waiting(preempted)", "started waiting(preempted)"},
	} {
		if got := told(storyOf(r, 0, c.look)); got != c.driver {
			t.Errorf("%s: the driver %q, not %q", name, got, c.driver)
		}
		if got := told(storyOf(r, 1, c.look)); c.worker != "" && got != c.worker {
			t.Errorf("%s: a worker %q, not %q", name, got, c.worker)
		}
	}
}

// What keeps a RayJob from beginning is told, and what never can be ends the wait.
func TestWhyARayJobDoesNotBeginIsTold(t *testing.T) {
	pod := func(name, part string, change func(p *core.Pod)) core.Pod {
		p := core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{labelPart: part}}, Status: core.PodStatus{Phase: core.PodRunning,
			ContainerStatuses: []core.ContainerStatus{{Name: "ray", State: core.ContainerState{Running: &core.ContainerStateRunning{}}}}}}
		if change != nil {
			change(&p)
		}
		return p
	}
	waits := func(reason, message string) func(p *core.Pod) {
		return func(p *core.Pod) {
			p.Status.ContainerStatuses[0].State = core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: reason, Message: message}}
		}
	}
	pending := func(p *core.Pod) {
		p.Status = core.PodStatus{Phase: core.PodPending, Conditions: []core.PodCondition{{Type: core.PodScheduled, Status: core.ConditionFalse, Message: "1 Insufficient nvidia.com/gpu"}}}
	}
	crashed := func(message string) func(p *core.Pod) {
		return func(p *core.Pod) {
			p.Status.ContainerStatuses[0] = core.ContainerStatus{Name: "ray", RestartCount: 1, State: core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 125, Message: message}}}
		}
	}
	starting := map[string]any{"jobDeploymentStatus": "Initializing", "rayClusterName": "run-abcde"}
	for name, c := range map[string]struct {
		scene scene
		says  string
		never bool
		begun bool
	}{
		"one of two cannot be scheduled": {scene: scene{object: rayObject(starting), pods: []core.Pod{pod("run-head", partHead, nil), pod("run-w", partWorker, pending)}},
			says: "1 of 2 pods run and hold what they have; no node takes run-w: 1 Insufficient nvidia.com/gpu"},
		"an image": {scene: scene{object: rayObject(starting), pods: []core.Pod{pod("run-head", partHead, waits("ImagePullBackOff", "not found"))}}, says: "can't be pulled"},
		"no ray": {scene: scene{object: rayObject(starting), pods: []core.Pod{pod("run-head", partHead, crashed("launcher: there is no ray in the image\n"))}},
			says: "there is no ray in the image", never: true},
		"a crash":     {scene: scene{object: rayObject(starting), pods: []core.Pod{pod("run-head", partHead, crashed("ImportError"))}}, says: "its container ended with code 125, and is started again: ImportError"},
		"quota":       {scene: scene{object: rayObject(starting), events: []core.Event{{Reason: "FailedToCreateHeadPod", Message: "exceeded quota"}}}, says: "its pods are refused: exceeded quota"},
		"nobody acts": {scene: scene{object: rayObject(nil), waited: time.Minute}, says: "nobody acts on the RayJob: does its operator (kuberay-operator) run?"},
		"given up":    {scene: scene{object: rayObject(map[string]any{"jobDeploymentStatus": "Failed", "reason": "PreRunningDeadlineExceeded"})}, says: "not all of its pods came up in time", never: true},
		"all run":     {scene: scene{object: rayObject(starting), pods: []core.Pod{pod("run-head", partHead, nil), pod("run-w", partWorker, nil)}}, says: "all pods run, and Ray comes up in them"},
		"handed in": {scene: scene{object: rayObject(starting), pods: []core.Pod{pod("run-head", partHead, nil), pod("run-w", partWorker, nil), pod("run-x", partDriver, waits("ContainerCreating", ""))}},
			says: "the driver is being handed in"},
		"begun": {scene: scene{object: rayObject(starting), pods: []core.Pod{pod("run-x", partDriver, nil)}}, begun: true},
	} {
		c.scene.ref = ref{Kind: options.RayJob, Name: "run", Ranks: [][]int{{0}, nil}}
		at := c.scene.stand()
		said := at.text
		if at.never != nil {
			said = at.never.Error()
		}
		if !strings.Contains(said, c.says) || (at.never != nil) != c.never || at.begun != c.begun {
			t.Errorf("%s: %q, never %v, begun %v", name, said, at.never, at.begun)
		}
		if never := new(cloud.NeverBegan); name == "given up" && !errors.As(at.never, &never) {
			t.Errorf("%s: %v", name, at.never)
		}
	}
}

// Workers have no number of their own: they are counted in the order in which they were
// made, and one that takes the place of another comes last.
func TestTheWorkersOfARayJobAreCounted(t *testing.T) {
	at := time.Now()
	pod := func(name string, after time.Duration, phase core.PodPhase) core.Pod {
		return core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, CreationTimestamp: meta.NewTime(at.Add(after))}, Status: core.PodStatus{Phase: phase}}
	}
	pods := []core.Pod{pod("d", 5, core.PodRunning), pod("b", 0, core.PodRunning), pod("a", 0, core.PodFailed), pod("c", 0, core.PodRunning)}
	var got []string
	for i := range 5 {
		if p := rayWorker(pods, i+1); p != nil {
			got = append(got, p.Name)
		}
	}
	if strings.Join(got, " ") != "b c d a" {
		t.Error(got)
	}
}

// What a cluster of Ray asks for beside its workers counts for a quota as well.
func TestAQuotaCountsAllPodsOfARayJob(t *testing.T) {
	each, err := resourcesOf(options.Machines{GPUs: 4, CPUs: 8, Memory: "16Gi"})
	if err != nil {
		t.Fatal(err)
	}
	more := rayMore(each, "nvidia.com/gpu", 2)
	pods := append([]core.ResourceRequirements{each, each}, more...)
	sum := func(name core.ResourceName) (n int64) {
		for _, p := range pods {
			q := p.Requests[name]
			n += q.MilliValue()
		}
		return n / 1000
	}
	if len(pods) != 4 || sum("nvidia.com/gpu") != 8 || sum(core.ResourceCPU) != 24 {
		t.Errorf("%d pods ask for %d GPUs and %d CPUs", len(pods), sum("nvidia.com/gpu"), sum(core.ResourceCPU))
	}
	if q := more[0].Limits[core.ResourceMemory]; q.String() != "1Gi" {
		t.Errorf("the driver's pod asks for %v", more[0])
	}
	if bare := rayMore(core.ResourceRequirements{Requests: core.ResourceList{"nvidia.com/gpu": each.Requests["nvidia.com/gpu"]}}, "nvidia.com/gpu", 2); len(bare[0].Requests)+len(bare[0].Limits)+len(bare[1].Requests) > 0 {
		t.Errorf("besides GPUs %v is asked for: a queue of GPUs would never admit it", bare)
	}
	if q := each.Limits["nvidia.com/gpu"]; q.Value() != 4 {
		t.Error("the workers have lost their GPUs")
	}
}

func TestOnlyClustersOfTheJobAreItsOwn(t *testing.T) {
	for cluster, want := range map[string]bool{"run-abcde": true, "run-raycluster-abcde": true, "run": false, "run-2-abcde": false, "other-abcde": false, "": false} {
		if got := ofCluster("run", cluster); got != want {
			t.Errorf("%q: %v", cluster, got)
		}
	}
}
