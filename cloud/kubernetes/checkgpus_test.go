package kubernetes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// nodeWith is a node that gives out so much of a resource, with taints as kubectl
// writes them.
func nodeWith(gpu string, count int64, taints ...string) core.Node {
	n := core.Node{ObjectMeta: meta.ObjectMeta{Name: gpu, Labels: map[string]string{}},
		Status: core.NodeStatus{Allocatable: core.ResourceList{core.ResourceName(gpu): *resource.NewQuantity(count, resource.DecimalSI), "cpu": resource.MustParse("8")}}}
	for _, text := range taints {
		rest, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(rest, "=")
		n.Spec.Taints = append(n.Spec.Taints, core.Taint{Key: key, Value: value, Effect: core.TaintEffect(effect)})
	}
	return n
}

// Where GPUs have taints, other names, or are parts of GPUs, a sentence says what the
// profile has to have.
func TestWhatNodesGiveOutIsComparedWithWhatPodsAskFor(t *testing.T) {
	nvidia := nodeWith("nvidia.com/gpu", 4, "nvidia.com/gpu=present:NoSchedule")
	for _, c := range []struct {
		name  string
		nodes []core.Node
		m     options.Machines
		want  string
	}{
		{"a taint", []core.Node{nvidia}, options.Machines{GPUs: 4}, "✗ nodes with nvidia.com/gpu have a taint that the pods do not tolerate: nvidia.com/gpu=present:NoSchedule; machines.tolerations: ['nvidia.com/gpu=present:NoSchedule']"},
		{"a taint that is tolerated", []core.Node{nvidia}, options.Machines{GPUs: 4, Tolerations: []string{"nvidia.com/gpu"}}, "✓ the nodes have 4 nvidia.com/gpu; 1 pod of 4 fit"},
		{"a taint with another value", []core.Node{nvidia}, options.Machines{GPUs: 4, Tolerations: []string{"nvidia.com/gpu=no"}}, "✗ nodes with nvidia.com/gpu have a taint"},
		{"a taint of a node that is not ready", []core.Node{nodeWith("nvidia.com/gpu", 4, "node.kubernetes.io/not-ready:NoSchedule")}, options.Machines{GPUs: 4}, "✓ the nodes have 4"},
		{"GPUs of AMD", []core.Node{nodeWith("amd.com/gpu", 8)}, options.Machines{GPUs: 8, GPUResource: "amd.com/gpu"}, "✓ the nodes have 8 amd.com/gpu"},
		{"no GPU of that name", []core.Node{nodeWith("amd.com/gpu", 8), nodeWith("nvidia.com/mig-1g.5gb", 7)}, options.Machines{GPUs: 1}, "✗ no node gives out nvidia.com/gpu; the device plugin (GPU operator) does not run, or the cluster calls its GPUs otherwise (machines.gpu_resource); the nodes give out amd.com/gpu, nvidia.com/mig-1g.5gb"},
		{"parts of a GPU", []core.Node{nodeWith("nvidia.com/mig-1g.5gb", 7)}, options.Machines{GPUs: 2, GPUResource: "nvidia.com/mig-1g.5gb"}, "✓ the nodes have 7 nvidia.com/mig-1g.5gb; 3 pods of 2 fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			template, err := podOf(batchJob, "x", cloud.Spec{Own: &c.m}, map[string]string{}, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			if q := template.Spec.Containers[0].Resources.Limits[gpuOf(c.m)]; q.Value() != int64(c.m.GPUs) {
				t.Errorf("the pod asks for %s", q.String())
			}
			f := room{gpu: gpuOf(c.m), each: c.m.GPUs, pods: 1, tolerations: template.Spec.Tolerations}.on(c.nodes)
			if got := fmt.Sprintf("%s %s; %s", f.Mark(), f.Text, f.Next); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s\nnot\n%s", got, c.want)
			}
		})
	}
}

// A pool of nodes that stands at none is no cluster without GPUs.
func TestPoolsOfNodesThatGrowAreNotInTheWay(t *testing.T) {
	n := nodeWith("cpu", 8)
	if grows([]core.Node{n}) {
		t.Error("a cluster of one's own grows")
	}
	n.Labels["eks.amazonaws.com/nodegroup"] = "cpus"
	if !grows([]core.Node{nodeWith("cpu", 8), n}) {
		t.Error("a pool of EKS does not grow")
	}
}

// Pods of the restricted kind have no more than the policy lets them.
func TestAUserOfItsOwnMakesAPodRestricted(t *testing.T) {
	pod, err := podOf(batchJob, "x", cloud.Spec{Own: &options.Machines{RunAs: 1000}}, map[string]string{}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	p, c := pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext
	if *p.RunAsUser != 1000 || !*p.RunAsNonRoot || *p.FSGroup != 1000 || p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault || *c.AllowPrivilegeEscalation || c.Capabilities.Drop[0] != "ALL" {
		t.Errorf("%+v %+v", p, c)
	}
	if pod, err = podOf(batchJob, "x", cloud.Spec{Own: &options.Machines{}}, map[string]string{}, nil, false); err != nil || pod.Spec.SecurityContext != nil {
		t.Errorf("%+v, %v", pod.Spec.SecurityContext, err)
	}
	for _, m := range []options.Machines{{RunAs: 1000}, {Priority: "high"}} {
		if n := needOf(cloud.Spec{Own: &m}, nil); trainJob.fits(n) || !pytorchJob.fits(n) {
			t.Errorf("%+v: a runtime says neither user nor priority", m)
		}
	}
}

// Kubernetes kills no ranks that still have a part of the grace of their profile.
func TestTheGraceOfAProfileIsThatOfItsPods(t *testing.T) {
	for asked, want := range map[time.Duration]int64{10 * time.Second: graceOfPods, 90*time.Second + 1: 91} {
		pod, err := podOf(batchJob, "x", cloud.Spec{Own: &options.Machines{}, Grace: asked}, map[string]string{}, nil, false)
		if err != nil || *pod.Spec.TerminationGracePeriodSeconds != want {
			t.Errorf("of %s: %d, %v", asked, *pod.Spec.TerminationGracePeriodSeconds, err)
		}
	}
}

// The grace of pods that a runtime makes is Kubernetes' own: what waits for dlwb ends
// before it does.
func TestAPodWaitsNoLongerThanItsGrace(t *testing.T) {
	for _, k := range kinds {
		pod, err := podOf(k, "x", cloud.Spec{Own: &options.Machines{}}, map[string]string{}, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		want := "52"
		if k == trainJob {
			want = "22"
		}
		for _, v := range pod.Spec.Containers[0].Env {
			if v.Name == "DLWB_GRACE" && v.Value != want {
				t.Errorf("%s: %s, not %s", k.name, v.Value, want)
			}
		}
	}
}
