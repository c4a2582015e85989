package kubernetes

import (
	"context"
	"errors"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kueue's names.
const (
	groupKueue  = "kueue.x-k8s.io"
	labelQueue  = groupKueue + "/queue-name"
	labelJobUID = groupKueue + "/job-uid"
)

// kueue finds the version that the cluster serves of Kueue's objects; false: it
// has none.
func (d *door) kueue(ctx context.Context) (schema.GroupVersion, bool) {
	ctx, cancel := call(ctx)
	defer cancel()
	groups, err := d.api.Groups(ctx)
	if err != nil {
		return schema.GroupVersion{}, false
	}
	for _, g := range groups {
		if g.Name == groupKueue {
			return schema.GroupVersion{Group: groupKueue, Version: g.PreferredVersion.Version}, true
		}
	}
	return schema.GroupVersion{}, false
}

// workloadOf is what Kueue has of a job; nil: nothing, or it may not be seen. A
// job is queued also where no queue was asked for: a namespace can have a default.
func (d *door) workloadOf(ctx context.Context, job *unstructured.Unstructured) *unstructured.Unstructured {
	if job.GetLabels()[labelQueue] == "" {
		return nil
	}
	version, is := d.kueue(ctx)
	if !is {
		return nil
	}
	ctx, cancel := call(ctx)
	defer cancel()
	list, err := d.dyn.Resource(version.WithResource("workloads")).Namespace(d.Namespace).List(ctx, meta.ListOptions{LabelSelector: labelJobUID + "=" + string(job.GetUID())})
	if err != nil || len(list.Items) == 0 {
		return nil
	}
	return &list.Items[len(list.Items)-1]
}

// queued says where a workload stands. Conditions of the past stay with status
// False, so those that end it are asked first.
func queued(w *unstructured.Unstructured) standing {
	queue, _, _ := unstructured.NestedString(w.Object, "spec", "queueName")
	at := standing{step: stepQueue, text: "it is queued in " + queue}
	all := map[string]condition{}
	for _, c := range conditionsOf(w) {
		all[c.Type] = c
	}
	quota, reserved := all["QuotaReserved"]
	active, said, _ := unstructured.NestedBool(w.Object, "spec", "active")
	switch {
	case all["Finished"].is():
		at.never = errors.New("the queue has ended it: " + all["Finished"].Message)
	case said && !active:
		at.never = errors.New("the queue has taken it out for good: " + sentence(all["Evicted"].Reason, all["Evicted"].Message))
	case all["Admitted"].is():
		at.text = "queue " + queue + " has admitted it; its pods are being made"
	case quota.is():
		at.text = "queue " + queue + " has room for it and waits for other checks of admission"
	case reserved && hopeless(quota):
		at.never = &apiError{text: "queue " + queue + " can never admit it: " + quota.Message, next: "ask for less, or another queue (machines.local_queue)"}
	case all["Evicted"].is():
		at.text = "queue " + queue + " took it out, and it waits again: " + all["Evicted"].Message
	case reserved && quota.Message != "":
		at.text = "it waits in queue " + queue + ": " + quota.Message
	}
	return at
}

// hopeless reports whether what a queue says is that it never will.
func hopeless(c condition) bool {
	return strings.Contains(c.Message, "maximum capacity") || strings.Contains(c.Message, "unavailable in ClusterQueue") ||
		c.Reason == "Inadmissible" && strings.Contains(c.Message, "doesn't exist")
}

// evicted is why the queue took a job back; empty where it can't be seen.
func (d *door) evicted(ctx context.Context, job *unstructured.Unstructured) string {
	w := d.workloadOf(ctx, job)
	if c := conditionOf(w, "Evicted"); c.is() {
		return c.Message
	}
	return ""
}
