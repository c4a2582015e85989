package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// Where things lie in a pod.
const (
	volumeGiven = "dlwb-given"

	dirGiven = "/dlwb/given" // what dlwb sends: read only
	dirWork  = "/dlwb/work"  // the code, and what the launcher writes
)

const (
	// graceOfPods is what the ranks get at least between TERM and KILL by Kubernetes
	// itself, in seconds: where dlwb stops them, it does not wait for that.
	graceOfPods = 30
	// graceToHold is what a pod gets besides whose results are to come home.
	graceToHold = 30
	// graceSpare is what is left of that for the end of the container itself.
	graceSpare = 8
)

// leaseSlack is how long after its deadline a controller may still end a job
// itself.
const leaseSlack = 5 * time.Second

// podOf is the template of a replica.
func podOf(k *kind, name string, spec cloud.Spec, labels map[string]string, env []string, hold bool) (core.PodTemplateSpec, error) {
	m := ownOf(spec)
	main := core.Container{Name: k.container, Image: k.image(spec), Command: append([]string{"sh", dirGiven + "/launch.sh"}, k.args...),
		Env:          envOf(k, name, m, spec.Lifetime, env),
		VolumeMounts: []core.VolumeMount{{Name: volumeGiven, MountPath: dirGiven, ReadOnly: true}, {Name: "dlwb-work", MountPath: dirWork}}}
	var err error
	if main.Resources, err = resourcesOf(m); err != nil {
		return core.PodTemplateSpec{}, err
	}
	grace := int64(graceOfPods)
	if !k.runtime { // else it is Kubernetes' own, the same half minute
		grace = max(grace, int64(math.Ceil(spec.Grace.Seconds())))
	}
	if hold {
		if !k.runtime {
			grace += graceToHold
		}
		main.Env = append(main.Env, core.EnvVar{Name: "DLWB_HOLD", Value: strconv.Itoa(int(m.HoldFor().Seconds()))},
			core.EnvVar{Name: "DLWB_GRACE", Value: strconv.FormatInt(grace-graceSpare, 10)})
	}
	pod := core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: maps.Clone(labels), Annotations: map[string]string{sidecarNote: "false"}},
		Spec: core.PodSpec{TerminationGracePeriodSeconds: &grace, RestartPolicy: core.RestartPolicyNever,
			NodeSelector: m.NodeSelector, ServiceAccountName: m.ServiceAccount, PriorityClassName: m.Priority,
			Volumes: []core.Volume{
				{Name: volumeGiven, VolumeSource: core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{LocalObjectReference: core.LocalObjectReference{Name: name}}}},
				{Name: "dlwb-work", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
			}}}
	pod.Labels[sidecarNote] = "false"
	if m.RunAs > 0 {
		restrict(&pod.Spec, &main, int64(m.RunAs))
	}
	for _, secret := range m.PullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, core.LocalObjectReference{Name: secret})
	}
	for _, text := range m.Tolerations {
		t, err := options.ParseToleration(text)
		if err != nil {
			return pod, err
		}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, tolerationOf(t))
	}
	err = mount(&pod.Spec, &main, m.Volumes)
	pod.Spec.Containers = []core.Container{main}
	return pod, err
}

// podOf is the template with a limit of processors where the namespace wants one: without
// it, it would set a low one of its own, or take no pod.
func (d *door) podOf(ctx context.Context, k *kind, name string, spec cloud.Spec, labels map[string]string, env []string, hold bool) (core.PodTemplateSpec, error) {
	pod, err := podOf(k, name, spec, labels, env, hold)
	if err == nil && d.limitsCPUs(ctx) {
		limitCPUs(&pod.Spec.Containers[0].Resources)
	}
	return pod, err
}

func limitCPUs(r *core.ResourceRequirements) {
	if q, is := r.Requests[core.ResourceCPU]; is {
		r.Limits[core.ResourceCPU] = q
	}
}

// limitsCPUs reports whether the namespace wants containers to have a limit of
// processors, as far as that is visible.
func (d *door) limitsCPUs(ctx context.Context) bool {
	ctx, cancel := call(ctx)
	defer cancel()
	if quotas, err := d.api.ResourceQuotas(d.Namespace).List(ctx, meta.ListOptions{}); err == nil {
		for _, q := range quotas.Items {
			if _, is := q.Spec.Hard[core.ResourceLimitsCPU]; is {
				return true
			}
		}
	}
	ranges, err := d.api.LimitRanges(d.Namespace).List(ctx, meta.ListOptions{})
	if err != nil {
		return false
	}
	return slices.ContainsFunc(ranges.Items, func(r core.LimitRange) bool {
		return slices.ContainsFunc(r.Spec.Limits, func(l core.LimitRangeItem) bool {
			_, byDefault := l.Default[core.ResourceCPU]
			_, most := l.Max[core.ResourceCPU]
			return byDefault || most
		})
	})
}

// restrict has a pod be as the policy "restricted" of Pod Security wants it.
func restrict(pod *core.PodSpec, main *core.Container, user int64) {
	pod.SecurityContext = &core.PodSecurityContext{RunAsUser: &user, RunAsNonRoot: new(true), FSGroup: &user,
		SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault}}
	main.SecurityContext = &core.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}}}
}

// image is the image of the pods. The alias is the one that all providers have.
func (k *kind) image(spec cloud.Spec) string {
	switch {
	case spec.Image != "" && spec.Image != "pytorch":
		return spec.Image
	case k == rayJob, byRay(spec.Engine):
		return options.DefaultRayImage
	}
	return options.DefaultImage
}

// sidecarNote keeps a service mesh from standing between the ranks: it refuses
// their connections, and outlives the training.
const sidecarNote = "sidecar.istio.io/inject"

// envOf is the environment of the container. The values of Job.Env stand in the
// secret alone.
func envOf(k *kind, name string, m options.Machines, lifetime time.Duration, env []string) []core.EnvVar {
	all := []core.EnvVar{{Name: "DLWB_INDEX", Value: "0"}, {Name: "DLWB_FIRST", Value: "0"}}
	if k.indexLabel != "" {
		all[0] = core.EnvVar{Name: "DLWB_INDEX", ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: "metadata.labels['" + k.indexLabel + "']"}}}
	}
	if m.Workdir != "" {
		all = append(all, core.EnvVar{Name: "DLWB_WORKDIR", Value: m.Workdir})
	}
	if lifetime > 0 {
		all = append(all, core.EnvVar{Name: "DLWB_DEADLINE", Value: strconv.Itoa(int((lifetime + leaseSlack).Seconds()))})
	}
	for _, pair := range env {
		key, _, _ := strings.Cut(pair, "=")
		all = append(all, core.EnvVar{Name: key, ValueFrom: &core.EnvVarSource{SecretKeyRef: &core.SecretKeySelector{
			LocalObjectReference: core.LocalObjectReference{Name: name}, Key: key}}})
	}
	return all
}

// setEnv gives a variable of the template another value.
func setEnv(pod *core.PodTemplateSpec, name, value string) {
	env := pod.Spec.Containers[0].Env
	if i := slices.IndexFunc(env, func(v core.EnvVar) bool { return v.Name == name }); i >= 0 {
		env[i].Value = value
	}
}

// resourcesOf is what each pod asks for. Processors have no limit: what is idle
// may be used. Memory has, so that a node does not run out of it.
func resourcesOf(m options.Machines) (core.ResourceRequirements, error) {
	r := core.ResourceRequirements{Requests: core.ResourceList{}, Limits: core.ResourceList{}}
	if m.CPUs > 0 {
		r.Requests[core.ResourceCPU] = *resource.NewQuantity(int64(m.CPUs), resource.DecimalSI)
	}
	if m.Memory != "" {
		q, err := resource.ParseQuantity(m.Memory)
		if err != nil {
			return r, fmt.Errorf("machines.mem: %w", err)
		}
		r.Requests[core.ResourceMemory], r.Limits[core.ResourceMemory] = q, q
	}
	if m.GPUs > 0 {
		q := *resource.NewQuantity(int64(m.GPUs), resource.DecimalSI)
		r.Requests[gpuOf(m)], r.Limits[gpuOf(m)] = q, q
	}
	return r, nil
}

func gpuOf(m options.Machines) core.ResourceName {
	if m.GPUResource == "" {
		return options.DefaultGPU
	}
	return core.ResourceName(m.GPUResource)
}

func tolerationOf(t options.Toleration) core.Toleration {
	made := core.Toleration{Key: t.Key, Operator: core.TolerationOpExists, Effect: core.TaintEffect(t.Effect)}
	if t.Equal {
		made.Operator, made.Value = core.TolerationOpEqual, t.Value
	}
	return made
}

// mount adds the volumes of the profile, and shared memory where nothing is
// mounted there: without it there are 64 MB, and NCCL and workers that load data
// die by SIGBUS.
func mount(pod *core.PodSpec, main *core.Container, texts []string) error {
	shm := true
	for i, text := range texts {
		v, err := options.ParseVolume(text)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("volume-%d", i)
		pod.Volumes = append(pod.Volumes, core.Volume{Name: name, VolumeSource: sourceOf(v)})
		main.VolumeMounts = append(main.VolumeMounts, core.VolumeMount{Name: name, MountPath: v.Path, ReadOnly: v.ReadOnly})
		shm = shm && v.Path != "/dev/shm"
	}
	if shm {
		pod.Volumes = append(pod.Volumes, core.Volume{Name: "dlwb-shm", VolumeSource: core.VolumeSource{
			EmptyDir: &core.EmptyDirVolumeSource{Medium: core.StorageMediumMemory}}})
		main.VolumeMounts = append(main.VolumeMounts, core.VolumeMount{Name: "dlwb-shm", MountPath: "/dev/shm"})
	}
	return nil
}

func sourceOf(v options.Volume) core.VolumeSource {
	switch v.Source {
	case options.ConfigMap:
		return core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{LocalObjectReference: core.LocalObjectReference{Name: v.Name}}}
	case options.Secret:
		return core.VolumeSource{Secret: &core.SecretVolumeSource{SecretName: v.Name}}
	case options.NFS:
		return core.VolumeSource{NFS: &core.NFSVolumeSource{Server: v.Server, Path: v.Name, ReadOnly: v.ReadOnly}}
	case options.Host:
		return core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: v.Name}}
	}
	return core.VolumeSource{PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: v.Name, ReadOnly: v.ReadOnly}}
}
