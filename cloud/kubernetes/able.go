package kubernetes

import (
	"context"
	"fmt"

	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"

	"github.com/dlwb/dlwb/internal/job"
)

// right is what somebody may do, as an access review is asked.
type right struct{ verb, group, resource, sub string }

func (r right) String() string {
	name := r.resource
	if r.sub != "" {
		name += "/" + r.sub
	}
	if r.group != "" {
		name += "." + r.group
	}
	return r.verb + " " + name
}

// may asks the cluster whether the caller has a right in the namespace.
func (d *door) may(ctx context.Context, r right) (bool, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	yes, err := d.api.Allowed(ctx, &authorization.ResourceAttributes{Namespace: d.Namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.sub})
	if err != nil {
		return false, d.explain(err)
	}
	return yes, nil
}

// rightExec is behind all that a replica can do besides: a shell, ports, panels.
var rightExec = right{verb: "create", resource: "pods", sub: "exec"}

// enterable reports whether commands may be run in pods, as far as that can be asked.
func (d *door) enterable(ctx context.Context) bool {
	yes, err := d.may(ctx, rightExec)
	return err != nil || yes
}

// lacks are what the replicas can't do here, by the rights of the caller. Where
// that can't be asked, nothing is said to lack: the call itself will tell.
func (d *door) lacks(ctx context.Context) []job.Lack {
	all := []job.Lack{{Capability: job.Suspend, Why: "pods can't be suspended", Next: "stop the run and run it again from its checkpoint"}}
	if d.enterable(ctx) {
		return all
	}
	for _, c := range []job.Capability{job.Exec, job.Dial, job.Telemetry, job.Files} {
		all = append(all, job.Lack{Capability: c, Why: "you may not run commands in pods of " + d.place.String(),
			Next: fmt.Sprintf("ask for the right: kubectl auth can-i %s %s/%s -n %s", rightExec.verb, rightExec.resource, rightExec.sub, d.Namespace)})
	}
	return all
}

// running is the pod whose container runs now.
func (r *replica) running(ctx context.Context) (*door, *core.Pod, error) {
	d, err := r.door()
	if err != nil {
		return nil, nil, err
	}
	pod, err := r.place(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	if c := containerOf(pod, r.kind().container); c == nil || c.State.Running == nil {
		return nil, nil, fmt.Errorf("replica %d of job %s does not run", r.number, r.ref.Name)
	}
	return d, pod, nil
}
