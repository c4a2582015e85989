package kubernetes

import (
	"context"
	"encoding/json"
	"slices"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podsOf lists the pods of a selector, the newest last.
func (d *door) podsOf(ctx context.Context, selector string) ([]core.Pod, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	list, err := d.api.Pods(d.Namespace).List(ctx, meta.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, d.explain(err)
	}
	slices.SortStableFunc(list.Items, func(a, b core.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list.Items, nil
}

// objectOf gets the object of a job; nil: there is none any more.
func (d *door) objectOf(ctx context.Context, r ref) (*unstructured.Unstructured, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	o, err := d.objects(kindNamed(r.Kind)).Get(ctx, r.Name, meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		if apierrors.IsUnexpectedServerError(err) { // the kind is not there, or no API server is
			_, err = d.podsOf(ctx, kindNamed(r.Kind).selector(r.Name))
			return nil, err
		}
		return nil, nil
	}
	if err != nil {
		return nil, d.explain(err)
	}
	return o, nil
}

// condition is one of an object's status.
type condition struct{ Type, Status, Reason, Message string }

func (c condition) is() bool { return c.Status == "True" }

// conditionsOf reads the conditions of an object, in their order.
func conditionsOf(o *unstructured.Unstructured) (all []condition) {
	if o == nil {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range list {
		if m, is := entry.(map[string]any); is {
			text := func(key string) string { s, _ := m[key].(string); return s }
			all = append(all, condition{text("type"), text("status"), text("reason"), text("message")})
		}
	}
	return all
}

// conditionOf is the condition of a type that holds; the zero one where none does.
func conditionOf(o *unstructured.Unstructured, types ...string) condition {
	for _, c := range conditionsOf(o) {
		if c.is() && slices.Contains(types, c.Type) {
			return c
		}
	}
	return condition{}
}

// finished tells how a job's object says that it ended; false while it does not.
func finished(o *unstructured.Unstructured) (condition, bool) {
	if o != nil && o.GetKind() == rayJob.object {
		return finishedRay(o)
	}
	c := conditionOf(o, "Complete", "Succeeded", "Failed")
	return c, c.is()
}

// suspended reports whether a job waits by its own spec: in a queue, or stopped.
func suspended(o *unstructured.Unstructured) bool {
	if o == nil {
		return false
	}
	for _, path := range [][]string{{"spec", "suspend"}, {"spec", "runPolicy", "suspend"}} {
		if is, _, _ := unstructured.NestedBool(o.Object, path...); is {
			return true
		}
	}
	return false
}

// stopNote is what dlwb notes at a job that it stops: why, and which replicas had
// come to their own end by then.
type stopNote struct {
	Why   string `json:"why"`
	Ended []int  `json:"ended,omitempty"`
}

func stopOf(o *unstructured.Unstructured) (n stopNote, is bool) {
	if o == nil {
		return n, false
	}
	text := o.GetAnnotations()[noteWhy]
	return n, text != "" && json.Unmarshal([]byte(text), &n) == nil
}

// containerOf is the status of the container that trains; nil: none is known yet.
func containerOf(pod *core.Pod, name string) *core.ContainerStatus {
	if pod == nil {
		return nil
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// begun reports whether the container has started.
func begun(pod *core.Pod, container string) bool {
	c := containerOf(pod, container)
	return c != nil && (c.State.Running != nil || ending(c) != nil) || pod != nil && pod.Status.Phase == core.PodFailed
}

// ending is how a container ended, for good or the first time: what starts it
// again in place starts no second attempt.
func ending(c *core.ContainerStatus) *core.ContainerStateTerminated {
	switch {
	case c == nil:
		return nil
	case c.State.Terminated != nil:
		return c.State.Terminated
	}
	return c.LastTerminationState.Terminated
}
