package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/nearword"
)

// checkQuota compares what all pods ask for with what the namespace may still
// have: a quota refuses pod after pod, and the job says nothing of it.
func (c *check) checkQuota(ctx context.Context) (all []cloud.Finding) {
	ask, cancel := call(ctx)
	defer cancel()
	list, err := c.api.ResourceQuotas(c.Namespace).List(ask, meta.ListOptions{})
	if err != nil {
		return []cloud.Finding{cloud.Unchecked("quota", "the quota of "+c.Namespace+" is not visible to you", "")}
	}
	want, err := resourcesOf(c.m)
	if err != nil {
		return []cloud.Finding{cloud.FromError("quota", err, "")}
	}
	if c.limitsCPUs(ctx) {
		limitCPUs(&want)
	}
	pods := slices.Repeat([]core.ResourceRequirements{want}, c.spec.Count)
	if c.kind == rayJob {
		pods = append(pods, rayMore(want, gpuOf(c.m), c.spec.Count)...)
	}
	for _, q := range list.Items {
		all = append(all, overQuota(q, pods)...)
	}
	if len(all) == 0 && len(list.Items) > 0 {
		all = append(all, cloud.Passed("quota", "the quota of "+c.Namespace+" has room"))
	}
	return all
}

// overQuota tells of what a quota has too little.
func overQuota(q core.ResourceQuota, each []core.ResourceRequirements) (all []cloud.Finding) {
	pods := len(each)
	asked := map[core.ResourceName]resource.Quantity{core.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI)}
	add := func(name core.ResourceName, v resource.Quantity) {
		sum := asked[name]
		sum.Add(v)
		asked[name] = sum
	}
	for _, want := range each {
		for name, v := range want.Requests {
			add("requests."+name, v)
			add(name, v)
		}
		for name, v := range want.Limits {
			add("limits."+name, v)
		}
	}
	for name, hard := range q.Status.Hard {
		need, is := asked[name]
		if !is {
			continue
		}
		used := q.Status.Used[name]
		free := hard.DeepCopy()
		free.Sub(used)
		if need.Cmp(hard) > 0 {
			all = append(all, cloud.Finding{What: "quota", Text: fmt.Sprintf("%d pods need %s of %s, and quota %s allows %s in all: never", pods, need.String(), name, q.Name, hard.String()), Next: "ask for less, or the administrator for more"})
		} else if need.Cmp(free) > 0 {
			all = append(all, cloud.Finding{What: "quota", Text: fmt.Sprintf("%d pods need %s of %s, and quota %s has %s left of %s", pods, need.String(), name, q.Name, free.String(), hard.String()), Next: "ask for less, or wait until what is there has ended"})
		}
	}
	return all
}

// checkQueue looks whether the queue is there and open: a name that is wrong is
// taken by the cluster, and the job waits for ever.
func (c *check) checkQueue(ctx context.Context) []cloud.Finding {
	if c.m.Queue == "" {
		return nil
	}
	version, is := c.kueue(ctx)
	if !is {
		return []cloud.Finding{{What: "queue", Text: "machines.local_queue names " + c.m.Queue + ", and the cluster has no Kueue", Next: "leave machines.local_queue out"}}
	}
	ask, cancel := call(ctx)
	defer cancel()
	queues := c.dyn.Resource(version.WithResource("localqueues")).Namespace(c.Namespace)
	q, err := queues.Get(ask, c.m.Queue, meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		f := cloud.Finding{What: "queue", Text: fmt.Sprintf("there is no queue %s in namespace %s", c.m.Queue, c.Namespace)}
		if list, err := queues.List(ask, meta.ListOptions{}); err == nil {
			var names []string
			for _, o := range list.Items {
				names = append(names, o.GetName())
			}
			f.Next = "there are " + strings.Join(names, ", ")
			if near := nearword.Nearest(c.m.Queue, names); near != "" {
				f.Next = "did you mean " + near + "? " + f.Next
			} else if len(names) == 0 {
				f.Next = "the namespace has no queue: leave machines.local_queue out, or have one made"
			}
		}
		return []cloud.Finding{f}
	}
	if err != nil {
		return []cloud.Finding{cloud.Unchecked("queue", "queue "+c.m.Queue+" is not visible to you", "")}
	}
	return []cloud.Finding{queueOf(q)}
}

// queueOf says what a queue tells of itself.
func queueOf(q *unstructured.Unstructured) cloud.Finding {
	for _, cond := range conditionsOf(q) {
		if cond.Type == "Active" && !cond.is() {
			return cloud.Finding{What: "queue", Text: "queue " + q.GetName() + " takes nothing: " + cond.Message, Next: "ask its administrator, or another queue"}
		}
	}
	waiting, _, _ := unstructured.NestedInt64(q.Object, "status", "pendingWorkloads")
	running, _, _ := unstructured.NestedInt64(q.Object, "status", "reservingWorkloads")
	return cloud.Passed("queue", fmt.Sprintf("%s: %d run, %d wait", q.GetName(), running, waiting))
}

// checkDry has the cluster judge the very objects, and keeps nothing: the job, by
// its schema and its operator's webhook, and one pod, by quota, limits, policies,
// classes and service account, which a job's own judgement does not cover.
func (c *check) checkDry(ctx context.Context) []cloud.Finding {
	defer close(c.tried)
	name := nameOf(c.spec.Name + "-check")
	labels := map[string]string{labelOwner: owner}
	about := meta.ObjectMeta{Name: name, Namespace: c.Namespace, Labels: labels}
	template, err := c.podOf(ctx, c.kind, name, c.spec, labels, nil, c.m.HoldFor() > 0)
	if err != nil {
		return []cloud.Finding{cloud.FromError("dry run", err, "")}
	}
	w := work{pod: template, replicas: max(c.spec.Count, 1), tasks: asked(c.spec).tasks, procs: c.m.GPUs, gpus: c.m.GPUs, gpu: gpuOf(c.m)}
	if c.kind == rayJob && w.replicas > 1 {
		w.replicas++ // the head
	}
	object, err := objectOf(c.kind, about, c.spec, w)
	if err != nil {
		return []cloud.Finding{cloud.FromError("dry run", err, "")}
	}
	templates := []*core.PodTemplateSpec{&template}
	if c.kind == rayJob {
		templates = rayDistinct(w)
	}
	ask, cancel := call(ctx)
	defer cancel()
	all := []string{meta.DryRunAll}
	if err := c.create(ask, c.kind, object, meta.CreateOptions{DryRun: all, FieldValidation: "Strict"}); err != nil && !apierrors.IsAlreadyExists(err) {
		return []cloud.Finding{c.refused(err)}
	}
	var back *core.Pod // of the first template
	for i, template := range templates {
		pod := &core.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name, pod.Namespace = name, c.Namespace
		pod.Spec.RestartPolicy = core.RestartPolicyNever
		made, err := c.api.Pods(c.Namespace).Create(ask, pod, meta.CreateOptions{DryRun: all, FieldValidation: "Strict"})
		switch {
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), `cannot create resource "pods"`):
			return []cloud.Finding{cloud.Passed("dry run", "the cluster takes the "+c.kind.object), cloud.Unchecked("dry run", "you may not make pods by hand: quota and policies of pods can't be tried", "")}
		case err != nil && !apierrors.IsAlreadyExists(err):
			which := "its pods"
			if part := template.Labels[labelPart]; part != "" {
				which = "the pod of its " + part
			}
			return []cloud.Finding{cloud.FromError("dry run", fmt.Errorf("the cluster refuses %s: %w", which, c.explain(err)), "")}
		}
		if i == 0 {
			back = made
		}
	}
	c.tried <- back
	found := []cloud.Finding{cloud.Passed("dry run", "the cluster takes the "+c.kind.object+" and its pods, of the image "+c.kind.image(c.spec))}
	if c.kind.image(c.spec) == options.DefaultRayImage && c.spec.Image != options.DefaultRayImage {
		found = append(found, cloud.Warning("image", "the profile names no image with Ray: it is Ray's own, "+options.DefaultRayImage+", which has no PyTorch", "machines.image"))
	}
	found = append(found, given(c.m, back)...)
	if side := sidecars(back); len(side) > 0 {
		found = append(found, cloud.Finding{What: "sidecar", Text: "the cluster puts " + strings.Join(side, ", ") + " into each pod, although the pods decline it: it stands between the ranks, and may outlive them",
			Next: "a namespace without injection, or the mesh's own annotation against it"})
	}
	for _, text := range c.warned.take() {
		found = append(found, cloud.Warning("dry run", "the cluster warns: "+text, ""))
	}
	return found
}

// given tells of limits that the namespace gives a pod by itself, since the profile
// names none.
func given(m options.Machines, pod *core.Pod) (all []cloud.Finding) {
	if pod == nil || len(pod.Spec.Containers) == 0 {
		return nil
	}
	limits := pod.Spec.Containers[0].Resources.Limits
	if q, is := limits[core.ResourceMemory]; is && m.Memory == "" {
		all = append(all, cloud.Warning("limits", "the namespace limits the memory of each pod to "+q.String()+", since the profile asks for none: a pod that needs more is killed", "machines.mem"))
	}
	if q, is := limits[core.ResourceCPU]; is && m.CPUs == 0 {
		all = append(all, cloud.Warning("limits", "the namespace limits each pod to "+q.String()+" CPUs, since the profile asks for none", "machines.cpus"))
	}
	return all
}

// refused says why the cluster does not take the job's object. Where it takes long
// over that, a webhook that it asks does.
func (c *check) refused(err error) cloud.Finding {
	if (errors.Is(err, context.DeadlineExceeded) || isTimeout(err)) && c.kind.controller != "" {
		return cloud.Finding{What: "dry run", Text: fmt.Sprintf("the cluster does not judge a %s within %s: a webhook hangs that it asks, most likely that of %s", c.kind.object, callLimit, c.kind.controller),
			Next: "its administrator looks at the pods of that operator; " + c.kind.instead()}
	}
	return cloud.FromError("dry run", fmt.Errorf("the cluster refuses the %s: %w", c.kind.object, c.explain(err)), "")
}

// sidecars are the containers that were put into a pod.
func sidecars(pod *core.Pod) (names []string) {
	if pod == nil {
		return nil
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers[min(1, len(pod.Spec.Containers)):]) {
		if strings.Contains(c.Name, "proxy") || strings.Contains(c.Name, "istio") || strings.Contains(c.Name, "linkerd") || strings.Contains(c.Name, "envoy") {
			names = append(names, c.Name)
		}
	}
	return names
}
