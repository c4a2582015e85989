package kubernetes

import (
	_ "embed" // what the pods of a RayCluster run
	"fmt"
	"slices"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/pattern"
)

// raySh starts Ray in a pod.
//
//go:embed ray.sh
var raySh string

// rayPy hands the driver in.
//
//go:embed submit.py
var rayPy string

// rayJob is a cluster of Ray and a driver in it. KubeRay makes the cluster of a head and
// workers, hands the driver to it by a Job of its own, whose pod prints what the driver
// does, and removes the cluster in the end. Replica 0 is the driver: it runs in the head,
// and its log is that of the Job's pod. The others are the workers.
var rayJob = &kind{
	name: options.RayJob, object: "RayJob", container: "ray", args: []string{"ray"},
	resource:   schema.GroupVersionResource{Group: groupRay, Version: "v1", Resource: "rayjobs"},
	controller: "kuberay-operator", controllerApp: "app.kubernetes.io/component=kuberay-operator",
	host:     func(r ref, _ int) string { return r.Name + "-head-svc" }, // nobody looks for the others
	selector: raySelector,
	replica: func(r ref, i int) string {
		if i == 0 {
			return rayPart(r.Name, partDriver)
		}
		return rayPart(r.Name, partWorker)
	},
	fits: func(n need) bool { return n.ray },
	spec: raySpec, optional: []string{"preRunningDeadlineSeconds", "submitterConfig"}, // as in older versions of KubeRay
	// The operator looks at the deadline every few seconds, and then removes the cluster at
	// once. Suspended, it would delete the driver's log.
	stop: `{"spec":{"activeDeadlineSeconds":1,"ttlSecondsAfterFinished":0}}`,
}

// What the pods of a RayJob are.
const (
	labelPart  = "dlwb.dev/part"
	partHead   = "head"
	partWorker = "worker"
	partDriver = "driver" // the pod of KubeRay's Job
)

// KubeRay's names.
const (
	groupRay     = "ray.io"
	labelRayFrom = groupRay + "/originated-from-cr-name"
	labelRay     = groupRay + "/cluster"
	// noteOwnCommand has a pod run its own command, which finds KubeRay's in a variable:
	// else KubeRay would put its own behind ours, and run it also where ours has failed.
	noteOwnCommand = groupRay + "/overwrite-container-cmd"
)

const (
	// rayLinger is for how many seconds KubeRay leaves the cluster when the driver has
	// ended: what its workers wrote is fetched in that time.
	rayLinger = 30
	// rayUpLimit is for how many seconds a cluster may have some of its pods and wait for
	// the others: it holds the GPUs of those meanwhile.
	rayUpLimit = 3600
)

func raySelector(name string) string { return labelRun + "=" + name }

func rayPart(name, part string) string { return raySelector(name) + "," + labelPart + "=" + part }

// byRay reports whether an engine runs in a cluster of Ray.
func byRay(engine string) bool { return engine == "ray" }

// raySpec is a head, its workers and the driver. With several pods, the head is one
// more and has no GPU: it has the driver, and the memory of the cluster's tables.
func raySpec(w work) (map[string]any, error) {
	pods := rayPods(w)
	params := map[string]map[string]any{partHead: {}, partWorker: {}}
	if w.gpus > 0 {
		params[partWorker]["num-gpus"] = strconv.Itoa(w.gpus)
	}
	if w.replicas > 1 {
		params[partHead]["num-cpus"] = "0"
	} else {
		params[partHead] = params[partWorker]
	}
	templates := map[string]any{}
	for part, pod := range pods {
		template, err := plain(pod)
		if err != nil {
			return nil, err
		}
		templates[part] = template
	}
	cluster := map[string]any{"headGroupSpec": map[string]any{"rayStartParams": params[partHead], "template": templates[partHead]}}
	if n := int64(w.replicas - 1); n > 0 {
		cluster["workerGroupSpecs"] = []any{map[string]any{"groupName": "workers", "replicas": n, "minReplicas": n, "maxReplicas": n,
			"rayStartParams": params[partWorker], "template": templates[partWorker]}}
	}
	if version := rayVersion(w.pod.Spec.Containers[0].Image); version != "" {
		cluster["rayVersion"] = version
	}
	spec := map[string]any{"entrypoint": "sh " + dirGiven + "/launch.sh driver", "submissionMode": "K8sJobMode",
		"shutdownAfterJobFinishes": true, "ttlSecondsAfterFinished": int64(rayLinger),
		"submitterConfig": map[string]any{"backoffLimit": int64(0)}, "submitterPodTemplate": templates[partDriver],
		"preRunningDeadlineSeconds": int64(rayUpLimit), "rayClusterSpec": cluster}
	if w.deadline > 0 {
		spec["activeDeadlineSeconds"], spec["preRunningDeadlineSeconds"] = w.deadline, min(w.deadline, rayUpLimit)
	}
	return spec, nil
}

// rayPods are the templates of the pods, by what they are. What a container writes stays
// when it is started again, and so does why it was.
func rayPods(w work) map[string]*core.PodTemplateSpec {
	worker := w.pod.DeepCopy()
	worker.Labels[labelPart] = partWorker
	worker.Annotations[noteOwnCommand] = "true"
	worker.Spec.RestartPolicy = core.RestartPolicyOnFailure
	head := worker.DeepCopy()
	head.Labels[labelPart] = partHead
	main := &head.Spec.Containers[0]
	main.Ports = []core.ContainerPort{{Name: "gcs-server", ContainerPort: 6379}, {Name: "dashboard", ContainerPort: 8265}, {Name: "client", ContainerPort: 10001}}
	all := map[string]*core.PodTemplateSpec{partHead: head, partDriver: rayDriver(w)}
	if w.replicas > 1 {
		all[partWorker] = worker
		delete(main.Resources.Limits, w.gpu)
		delete(main.Resources.Requests, w.gpu)
		if w.gpus > 0 {
			head.Spec.NodeSelector = nil // it chooses machines for their GPUs
		}
	}
	return all
}

// rayDistinct are the templates that differ, those with GPUs first.
func rayDistinct(w work) (all []*core.PodTemplateSpec) {
	pods := rayPods(w)
	for _, part := range []string{partWorker, partHead, partDriver} {
		if pods[part] != nil {
			all = append(all, pods[part])
		}
	}
	return all
}

// rayMore are what the pods ask for that a job of so many has besides: its driver's, and
// the head's where that is a pod of its own.
func rayMore(each core.ResourceRequirements, gpu core.ResourceName, pods int) []core.ResourceRequirements {
	w := work{pod: core.PodTemplateSpec{Spec: core.PodSpec{Containers: []core.Container{{Resources: each}}}}, replicas: pods, gpu: gpu}
	w.pod.Labels, w.pod.Annotations = map[string]string{}, map[string]string{}
	made := rayPods(w)
	more := []core.ResourceRequirements{made[partDriver].Spec.Containers[0].Resources}
	if pods > 1 {
		more = append(more, made[partHead].Spec.Containers[0].Resources)
	}
	return more
}

// rayDriver is the pod by which KubeRay hands the driver in, once. Its command takes the
// place of KubeRay's own, which gives up where Ray's dashboard is a moment late, or a
// connection to it is lost.
func rayDriver(w work) *core.PodTemplateSpec {
	pod := w.pod.DeepCopy()
	pod.Labels[labelPart] = partDriver
	pod.Spec.RestartPolicy = core.RestartPolicyNever
	grace := int64(5) // its first process does not hear TERM, and has nothing to save
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name != volumeGiven })
	if w.gpus > 0 {
		pod.Spec.NodeSelector = nil
	}
	main := &pod.Spec.Containers[0]
	main.Command = []string{"python3", "-u", dirGiven + "/submit.py"}
	main.VolumeMounts = slices.DeleteFunc(main.VolumeMounts, func(m core.VolumeMount) bool { return m.Name != volumeGiven })
	main.TerminationMessagePolicy = core.TerminationMessageFallbackToLogsOnError // why it failed
	main.Env = slices.DeleteFunc(main.Env, func(v core.EnvVar) bool { return strings.HasPrefix(v.Name, "DLWB_") })
	main.Resources = core.ResourceRequirements{
		Requests: likewise(main.Resources.Requests, core.ResourceList{core.ResourceCPU: resource.MustParse("500m"), core.ResourceMemory: resource.MustParse("200Mi")}),
		Limits:   likewise(main.Resources.Limits, core.ResourceList{core.ResourceCPU: resource.MustParse("1"), core.ResourceMemory: resource.MustParse("1Gi")})}
	return pod
}

// likewise is of what KubeRay by itself has such a pod ask for that of which the other
// pods ask for some: a queue may know of GPUs alone, and admits nothing that asks for more.
func likewise(others, own core.ResourceList) core.ResourceList {
	for name := range own {
		if _, is := others[name]; !is {
			delete(own, name)
		}
	}
	return own
}

var rayImage = pattern.New(`(?:^|/)ray(?:-ml|-llm)?:([0-9]+\.[0-9]+\.[0-9]+)(?:[-.@]|$)`)

// rayVersion is the version of Ray that an image names; empty: it names none.
func rayVersion(image string) string {
	if m := rayImage.FindStringSubmatch(image); m != nil {
		return m[1]
	}
	return ""
}

// rayNodes is what the driver runs, and nothing on the others: that is Ray's doing. Its
// lines have its rank in front, since those of Ray's own client are among them.
func rayNodes(j cloud.Job, place func(string) string) []pack.Node {
	j.Procs = slices.DeleteFunc(slices.Clone(j.Procs), func(p cloud.JobProc) bool { return len(p.Ranks) == 0 })
	all := pack.Nodes(j, dirWork, place)
	all[0].Tagged = true
	return all
}

// ofCluster reports whether a RayCluster of this name was made for a RayJob of that one.
func ofCluster(job, cluster string) bool {
	rest, is := strings.CutPrefix(cluster, job+"-")
	return is && len(strings.TrimPrefix(rest, "raycluster-")) == 5
}

// rayLog is the log of Ray's own processes in a pod.
const rayLog = "agent.log"

// rayLines tells which lines of a pod are of a log.
func rayLines(log string) func([]byte) ([]byte, bool) {
	if log == rayLog {
		return func(line []byte) ([]byte, bool) { return line, true }
	}
	pick := pack.Lines(log, true)
	return func(line []byte) ([]byte, bool) {
		text, mine := pick(line)
		return pack.Original(text), mine
	}
}

// rayNotHere is what to do where a cluster has no KubeRay.
const rayNotHere = "have KubeRay installed (its operator, and the kinds that come with it), or leave machines.kind out: without it, a " + options.Job + " has Ray's head and its workers in its pods"

func noRay() error {
	return &apiError{text: fmt.Sprintf("the run was planned as a RayJob (%s), and the cluster takes none now", rayJob.resource.GroupVersion()), next: "run again: it becomes a " + options.Job}
}
