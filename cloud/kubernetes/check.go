package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// checkLimit bounds all of a check.
const checkLimit = 9 * time.Second

// Check asks the cluster for all that would keep the job from running, most of it
// at once.
func (p *Provider) Check(ctx context.Context, spec cloud.Spec) cloud.Preflight {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	m := ownOf(spec)
	at, err := locate(m)
	if err != nil {
		return only(cloud.FromError("context", err, "kubectl config get-contexts lists them"))
	}
	d, err := p.open(at)
	if err != nil {
		return only(cloud.FromError("context", err, "look at the kubeconfig"))
	}
	if _, err := d.may(ctx, right{verb: "create", group: batchJob.resource.Group, resource: "jobs"}); err != nil {
		return only(cloud.FromError("cluster", err, ""))
	}
	out := only(cloud.Passed("cluster", fmt.Sprintf("%s answers; %s", d.server, at)))
	for range spec.Count {
		out.GPUs = append(out.GPUs, m.GPUs)
	}
	if f := d.checkNamespace(ctx); !f.OK {
		out.Findings = append(out.Findings, f)
		return out
	}
	c := &check{door: d, spec: spec, m: m, tried: make(chan *core.Pod, 1)}
	out.Findings = append(out.Findings, c.all(ctx)...)
	out.Beside = c.kind == batchJob && byRay(spec.Engine)
	return out
}

func only(f cloud.Finding) cloud.Preflight { return cloud.Preflight{Findings: []cloud.Finding{f}} }

// check is one check of a place.
type check struct {
	*door
	spec cloud.Spec
	m    options.Machines
	kind *kind
	// tried gets the pod of the dry run, as the cluster would have it, if there is one,
	// and is closed then.
	tried chan *core.Pod
}

// all runs the checks that do not need each other side by side. Each has its
// place in the answer.
func (c *check) all(ctx context.Context) (all []cloud.Finding) {
	var err error
	if c.kind, err = c.choose(ctx, c.m.Kind, asked(c.spec)); err != nil {
		return []cloud.Finding{cloud.FromError("kind", err, "machines.kind: "+options.Job)}
	}
	parts := []func(context.Context) []cloud.Finding{c.checkKind, c.checkRights, c.checkGPUs, c.checkQuota, c.checkQueue, c.checkSecrets, c.checkVolumes, c.checkDry}
	found := make([][]cloud.Finding, len(parts))
	var every sync.WaitGroup
	for i, part := range parts {
		every.Go(func() { found[i] = part(ctx) })
	}
	every.Wait()
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}

// checkNamespace looks whether the namespace is there. Who may not look may still
// work in it.
func (d *door) checkNamespace(ctx context.Context) cloud.Finding {
	ctx, cancel := call(ctx)
	defer cancel()
	_, err := d.api.Namespaces().Get(ctx, d.Namespace, meta.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return cloud.Passed("namespace", d.Namespace)
	}
	next := "kubectl create namespace " + d.Namespace + ", or another one in machines.namespace"
	if list, err := d.api.Namespaces().List(ctx, meta.ListOptions{Limit: 20}); err == nil {
		var names []string
		for _, n := range list.Items {
			names = append(names, n.Name)
		}
		next += "; there are " + strings.Join(names, ", ")
	}
	return cloud.Finding{What: "namespace", Text: fmt.Sprintf("there is no namespace %s in the cluster of context %s", d.Namespace, d.Context), Next: next}
}

// checkKind says what the job becomes and whether somebody acts on it.
func (c *check) checkKind(ctx context.Context) []cloud.Finding {
	alive, text, err := c.operator(ctx, c.kind)
	switch {
	case errors.Is(err, errNotSeen):
		return []cloud.Finding{cloud.Unchecked("operator", fmt.Sprintf("the job becomes a %s; whether %s runs is not visible to you", c.kind.object, c.kind.controller),
			c.kind.unseen())}
	case !alive:
		return []cloud.Finding{{What: "operator", Text: fmt.Sprintf("nobody acts on a %s: %s", c.kind.object, text),
			Next: "its administrator looks at the pods of that deployment; " + c.kind.instead()}}
	}
	if c.kind == batchJob && byRay(c.spec.Engine) {
		text += "; Ray's head and its workers run in its pods, without KubeRay"
	}
	return []cloud.Finding{cloud.Passed("operator", fmt.Sprintf("the job becomes a %s: %s", c.kind.object, text))}
}

// checkRights asks for each right that a run needs. What a run can do without is
// a warning.
func (c *check) checkRights(ctx context.Context) []cloud.Finding {
	own := func(verb string) right {
		return right{verb: verb, group: c.kind.resource.Group, resource: c.kind.resource.Resource}
	}
	needed := []right{own("create"), own("get"), own("patch"), own("delete"), own("list"),
		{verb: "list", resource: "pods"}, {verb: "get", resource: "pods", sub: "log"}}
	made := []string{"configmaps"}
	if c.spec.HasEnv {
		made = append(made, "secrets")
	}
	if c.kind.service {
		made = append(made, "services")
	}
	for _, kind := range made { // to see whose it is that is there, and to remove it
		for _, verb := range []string{"create", "get", "list", "delete"} {
			needed = append(needed, right{verb: verb, resource: kind})
		}
	}
	useful := []right{rightExec, {verb: "list", resource: "events"}, {verb: "watch", resource: "pods"}}
	mays := make([]bool, len(needed)+len(useful))
	var failed error
	var mu sync.Mutex
	var every sync.WaitGroup
	for i, r := range append(needed[:len(needed):len(needed)], useful...) {
		every.Go(func() {
			yes, err := c.may(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			if mays[i] = yes; err != nil {
				failed = err
			}
		})
	}
	every.Wait()
	if failed != nil {
		return []cloud.Finding{cloud.Unchecked("rights", failed.Error(), "")}
	}
	var missing, less []string
	for i, r := range append(needed[:len(needed):len(needed)], useful...) {
		switch {
		case mays[i]:
		case i < len(needed):
			missing = append(missing, r.String())
		default:
			less = append(less, r.String())
		}
	}
	next := "the cluster's administrator grants it by a Role in " + c.Namespace
	if len(missing) > 0 {
		return []cloud.Finding{{What: "rights", Text: "you may not " + strings.Join(missing, ", "), Next: next}}
	}
	all := []cloud.Finding{cloud.Passed("rights", "you may do all that a run needs")}
	if len(less) > 0 {
		all = append(all, cloud.Warning("rights", "you may not "+strings.Join(less, ", ")+": panels, shell, tunnels or reasons will lack, or news come late", next))
	}
	return all
}

// unseen is what tells of an operator that is not visible.
func (k *kind) unseen() string {
	if k == rayJob {
		return "if it does not, the job says nothing, and dlwb that after a moment"
	}
	return "the dry run below asks its webhook"
}

// checkSecrets looks whether the pull secrets are there.
func (c *check) checkSecrets(ctx context.Context) (all []cloud.Finding) {
	for _, name := range c.m.PullSecrets {
		ask, cancel := call(ctx)
		s, err := c.api.Secrets(c.Namespace).Get(ask, name, meta.GetOptions{})
		cancel()
		switch {
		case apierrors.IsNotFound(err):
			all = append(all, cloud.Finding{What: "pull secret", Text: fmt.Sprintf("there is no secret %s in namespace %s", name, c.Namespace),
				Next: "kubectl -n " + c.Namespace + " create secret docker-registry " + name})
		case err != nil:
			all = append(all, cloud.Unchecked("pull secret", "secret "+name+" is not visible to you", ""))
		case s.Type != core.SecretTypeDockerConfigJson && s.Type != core.SecretTypeDockercfg:
			all = append(all, cloud.Finding{What: "pull secret", Text: fmt.Sprintf("secret %s is of type %s: it logs in to no registry", name, s.Type),
				Next: "kubectl -n " + c.Namespace + " create secret docker-registry"})
		}
	}
	return all
}

// checkVolumes looks whether the claims are there, and can be where the pods are.
func (c *check) checkVolumes(ctx context.Context) (all []cloud.Finding) {
	for _, text := range c.m.Volumes {
		v, err := options.ParseVolume(text)
		if err != nil || v.Source != options.Claim {
			continue
		}
		ask, cancel := call(ctx)
		claim, err := c.api.PersistentVolumeClaims(c.Namespace).Get(ask, v.Name, meta.GetOptions{})
		cancel()
		switch {
		case apierrors.IsNotFound(err):
			all = append(all, cloud.Finding{What: "volume", Text: fmt.Sprintf("there is no claim %s in namespace %s", v.Name, c.Namespace), Next: "kubectl -n " + c.Namespace + " get pvc lists them"})
		case err != nil:
			all = append(all, cloud.Unchecked("volume", "claim "+v.Name+" is not visible to you", ""))
		case c.spec.Count > 1 && onlyOneNode(claim):
			all = append(all, cloud.Warning("volume", fmt.Sprintf("claim %s can be mounted by one node only (ReadWriteOnce): %d pods that stand on several wait for ever", v.Name, c.spec.Count),
				"a claim with ReadWriteMany, or machines.node_selector that names one node"))
		}
	}
	return all
}

func onlyOneNode(claim *core.PersistentVolumeClaim) bool {
	for _, mode := range claim.Spec.AccessModes {
		if mode == core.ReadWriteMany || mode == core.ReadOnlyMany {
			return false
		}
	}
	return true
}
