package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

// checkGPUs looks whether the nodes have the GPUs at all, and let the pods come. Nodes
// are often not visible to tenants: that is not a cluster without GPUs.
func (c *check) checkGPUs(ctx context.Context) []cloud.Finding {
	if c.m.GPUs == 0 {
		return nil
	}
	ask, cancel := call(ctx)
	defer cancel()
	list, err := c.api.Nodes().List(ask, meta.ListOptions{})
	if err != nil {
		return []cloud.Finding{cloud.Unchecked("gpus", "the nodes are not visible to you: whether they have "+string(gpuOf(c.m))+" is not known", "")}
	}
	r := room{gpu: gpuOf(c.m), each: c.m.GPUs, pods: max(c.spec.Count, 1), selector: c.m.NodeSelector}
	if template, err := podOf(c.kind, "check", c.spec, map[string]string{}, nil, false); err == nil {
		r.tolerations = template.Spec.Tolerations
	}
	if pod := <-c.tried; pod != nil { // a cluster may add its own, as for GPUs on GKE
		r.tolerations = pod.Spec.Tolerations
	}
	f := r.on(list.Items)
	if !f.OK && grows(list.Items) {
		f = cloud.Warning(f.What, f.Text+"; its pools of nodes may grow", f.Next)
	}
	return []cloud.Finding{f}
}

// room is what the pods of a job need of the nodes.
type room struct {
	gpu         core.ResourceName
	each, pods  int
	selector    map[string]string
	tolerations []core.Toleration
}

// on says whether the pods fit on nodes, were all of them free.
func (r room) on(nodes []core.Node) cloud.Finding {
	most, total, fit, chosen, barred := int64(0), int64(0), 0, 0, 0
	taints, others := map[string]bool{}, map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		if !has(n.Labels, r.selector) {
			continue
		}
		chosen++
		for name, q := range n.Status.Allocatable {
			if strings.Contains(string(name), "/") && !q.IsZero() && !strings.HasPrefix(string(name), "kubernetes.io/") {
				others[string(name)] = true
			}
		}
		q := n.Status.Allocatable[r.gpu]
		v := q.Value()
		most, total = max(most, v), total+v
		switch taint := r.barred(n); {
		case n.Spec.Unschedulable || v == 0:
		case taint != nil:
			taints[taint.ToString()] = true
			barred += int(v) / r.each
		default:
			fit += int(v) / r.each
		}
	}
	f := cloud.Finding{What: "gpus"}
	switch {
	case chosen == 0:
		f.Text, f.Next = "no node has the labels of machines.node_selector", "kubectl get nodes --show-labels"
	case total == 0:
		f.Text = fmt.Sprintf("no node gives out %s", r.gpu)
		f.Next = "the device plugin (GPU operator) does not run, or the cluster calls its GPUs otherwise (machines.gpu_resource)"
		if names := slices.Sorted(maps.Keys(others)); len(names) > 0 {
			f.Next += "; the nodes give out " + strings.Join(names, ", ")
		}
	case most < int64(r.each):
		f.Text, f.Next = fmt.Sprintf("each pod asks for %d GPUs, and no node has more than %d", r.each, most), "machines.gpus"
	case fit < r.pods && fit+barred >= r.pods:
		names := slices.Sorted(maps.Keys(taints))
		f.Text = fmt.Sprintf("nodes with %s have a taint that the pods do not tolerate: %s", r.gpu, strings.Join(names, ", "))
		f.Next = "machines.tolerations: ['" + strings.Join(names, "', '") + "']"
	case fit < r.pods:
		f.Text = fmt.Sprintf("%s of %s fit on the nodes, were they all free, and the job has %d: it would wait for ever", units.Count(fit, "pod"), units.Count(r.each, "GPU"), r.pods)
		f.Next = "ask for fewer (machines.count, machines.gpus)"
	default:
		return cloud.Passed("gpus", fmt.Sprintf("the nodes have %d %s; %s of %d fit, were they all free", total, r.gpu, units.Count(fit, "pod"), r.each))
	}
	return f
}

// barred is a taint that keeps the pods from a node for good; nil: there is none. Those
// of Kubernetes' own come and go with the state of the node.
func (r room) barred(n *core.Node) *core.Taint {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect == core.TaintEffectPreferNoSchedule || strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			continue
		}
		if !slices.ContainsFunc(r.tolerations, func(o core.Toleration) bool { return tolerates(o, t) }) {
			return t
		}
	}
	return nil
}

func tolerates(o core.Toleration, t *core.Taint) bool {
	switch {
	case o.Effect != "" && o.Effect != t.Effect:
		return false
	case o.Operator == core.TolerationOpExists:
		return o.Key == "" || o.Key == t.Key
	}
	return o.Key == t.Key && o.Value == t.Value
}

// pools are labels of nodes that a provider of clusters makes by itself, and more of
// them when pods wait.
var pools = []string{"eks.amazonaws.com/nodegroup", "karpenter.sh/nodepool", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool"}

// grows reports whether a cluster may get more nodes when pods wait for them: pools of
// GPUs often stand at none.
func grows(nodes []core.Node) bool {
	return slices.ContainsFunc(nodes, func(n core.Node) bool {
		return slices.ContainsFunc(pools, func(label string) bool { return n.Labels[label] != "" })
	})
}
