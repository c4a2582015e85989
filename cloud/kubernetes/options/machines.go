package options

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/internal/nearword"
)

// Machines are the options that only pods have.
type Machines struct {
	Context   string // of the user's own kubeconfig; empty: the current one
	Namespace string // empty: the context's
	Kind      string // which object the job becomes: see Kinds; empty: Auto
	Runtime   string // of a TrainJob
	// GPUs is how many each pod asks for, of GPUResource.
	GPUs        int
	GPUResource string
	CPUs        int    // 0: none are asked for
	Memory      string // as Kubernetes writes quantities
	// NodeSelector are labels that a node must have.
	NodeSelector map[string]string
	// Tolerations and Volumes are in the short forms that ParseToleration and
	// ParseVolume read.
	Tolerations, Volumes []string
	ServiceAccount       string
	PullSecrets          []string
	Queue                string // Kueue's LocalQueue
	Priority             string // a PriorityClass of the pods
	RunAs                int    // the user of the pods; 0: the image's
	// Workdir is a directory of the image, or of a volume, that has the code;
	// empty: the code directory goes along.
	Workdir string
	// Hold is for how long a pod whose ranks have ended stays for what it wrote; empty:
	// DefaultHold.
	Hold string
}

// DefaultHold is how long a pod waits for dlwb in the end where the profile says
// nothing.
const DefaultHold = 10 * time.Minute

// HoldFor is how long a pod waits in the end.
func (m Machines) HoldFor() time.Duration {
	if d, err := time.ParseDuration(m.Hold); err == nil {
		return max(d, 0)
	}
	return DefaultHold
}

// The kinds of objects that a job can become.
const (
	Auto       = "auto"
	PyTorchJob = "pytorchjob"
	TFJob      = "tfjob"
	MPIJob     = "mpijob"
	TrainJob   = "trainjob"
	RayJob     = "rayjob"
	Job        = "job"
)

// Kinds are the words of machines.kind.
var Kinds = []string{Auto, PyTorchJob, TFJob, MPIJob, TrainJob, RayJob, Job}

// DefaultGPU is the resource that the device plugin of NVIDIA gives out.
const DefaultGPU = "nvidia.com/gpu"

// DefaultImage is what stands for the alias pytorch: the image of Kubeflow's own
// runtime for PyTorch.
const DefaultImage = "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"

// DefaultRayImage stands for the alias where Ray runs: Ray's own image, which has no
// PyTorch.
const DefaultRayImage = "rayproject/ray:2.54.0-gpu"

// DefaultRuntime is the runtime for PyTorch that comes with Kubeflow.
const DefaultRuntime = "torch-distributed"

var table = []about.Option{
	{Key: "machines.context", Asked: true, Also: []string{"kube_context"},
		Doc: "The context of your kubeconfig (`KUBECONFIG`, `~/.kube/config`); without it, the current one.", Example: "lab",
		Place: about.In(func(m *Machines) *string { return &m.Context })},
	{Key: "machines.namespace", Asked: true, Also: []string{"ns"},
		Doc: "The namespace; without it, the context's.", Example: "team-a",
		Place: about.In(func(m *Machines) *string { return &m.Namespace })},
	{Key: "machines.kind", Also: []string{"job_kind"},
		Doc:     "What the job becomes: `pytorchjob`, `tfjob`, `mpijob`, `rayjob`, `trainjob`, `job` (an indexed Job); without it, or with `auto`, the first of these that fits the engine, that the cluster has and that is alive.",
		Example: PyTorchJob, Place: about.In(func(m *Machines) *string { return &m.Kind })},
	{Key: "machines.gpus", Asked: true, Kind: about.Count, Min: 0, Max: 64, Default: "0",
		Doc: "How many GPUs each node, or pod, gets; 0: none.", Example: "4",
		Place: about.In(func(m *Machines) *int { return &m.GPUs })},
	{Key: "machines.gpu_resource",
		Doc: "What the cluster calls a GPU; without it, `" + DefaultGPU + "`.", Example: "amd.com/gpu",
		Place: about.In(func(m *Machines) *string { return &m.GPUResource })},
	{Key: "machines.cpus", Kind: about.Count, Min: 0, Max: 4096, Default: "0", Also: []string{"cpu"},
		Doc: "How many CPUs each node, or pod, gets; 0: what the cluster gives by itself.", Example: "8",
		Place: about.In(func(m *Machines) *int { return &m.CPUs })},
	{Key: "machines.mem", Also: []string{"memory"},
		Doc: "The memory of each node, or pod, as sbatch or Kubernetes has it; without it, what the cluster gives by itself.", Example: "64G",
		Place: about.In(func(m *Machines) *string { return &m.Memory })},
	{Key: "machines.node_selector", Kind: about.Pairs, Also: []string{"labels"},
		Doc: "Labels that a node must have.", Example: `{nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}`,
		Place: about.In(func(m *Machines) *map[string]string { return &m.NodeSelector })},
	{Key: "machines.tolerations", Kind: about.Words, Also: []string{"taints"},
		Doc: "Taints that the pods tolerate, each as `key`, `key:Effect` or `key=value:Effect`.", Example: "[nvidia.com/gpu, 'dedicated=ml:NoSchedule']",
		Place: about.In(func(m *Machines) *[]string { return &m.Tolerations })},
	{Key: "machines.volumes", Kind: about.Words, Also: []string{"mounts", "pvc"},
		Doc:     "What is mounted, each as `CLAIM:/path`, `configmap/NAME:/path`, `secret/NAME:/path`, `nfs/SERVER/EXPORT:/path` or `host/DIR:/path`; `:ro` behind it is read only.",
		Example: "['datasets:/data:ro', 'runs:/runs']",
		Place:   about.In(func(m *Machines) *[]string { return &m.Volumes })},
	{Key: "machines.service_account", Asked: true, Also: []string{"serviceaccount"},
		Doc: "The service account of the pods.", Example: "trainer",
		Place: about.In(func(m *Machines) *string { return &m.ServiceAccount })},
	{Key: "machines.pull_secrets", Kind: about.Words, Also: []string{"pull_secret", "image_pull_secrets"},
		Doc: "The secrets by which the image is pulled.", Example: "[registry]",
		Place: about.In(func(m *Machines) *[]string { return &m.PullSecrets })},
	{Key: "machines.local_queue", Asked: true, Also: []string{"kueue"},
		Doc: "The queue (Kueue's LocalQueue) in which the job waits.", Example: "gpus",
		Place: about.In(func(m *Machines) *string { return &m.Queue })},
	{Key: "machines.priority", Also: []string{"priority_class"},
		Doc: "The PriorityClass of the pods.", Example: "high",
		Place: about.In(func(m *Machines) *string { return &m.Priority })},
	{Key: "machines.run_as", Kind: about.Count, Min: 0, Max: 1<<31 - 1, Default: "0", Also: []string{"run_as_user", "uid"},
		Doc: "The id of the user that the pods run as, without any privileges, as Pod Security `restricted` wants it; 0: the image's own user.", Example: "1000",
		Place: about.In(func(m *Machines) *int { return &m.RunAs })},
	{Key: "machines.runtime",
		Doc: "The ClusterTrainingRuntime of a TrainJob; without it, `" + DefaultRuntime + "`.", Example: "torch-distributed",
		Place: about.In(func(m *Machines) *string { return &m.Runtime })},
	{Key: "machines.workdir", Also: []string{"working_dir"},
		Doc: "A directory of the image, or of a volume, that has the code already: nothing is uploaded.", Example: "/workspace",
		Place: about.In(func(m *Machines) *string { return &m.Workdir })},
	{Key: "machines.hold", Also: []string{"hold_for"},
		Doc:     "How long a pod whose ranks have ended stays, with its GPUs, until dlwb has brought home what they wrote; without it, `10m`; `0s`: not at all, and nothing comes home.",
		Example: "30m", Place: about.In(func(m *Machines) *string { return &m.Hold })},
}

// check tells what is wrong with the options.
func check(own any) (faults []about.Fault) {
	m := about.Own[Machines](own)
	add := func(key string, err error, next string) {
		if err != nil {
			faults = append(faults, about.Fault{Key: key, Why: err.Error(), Next: next})
		}
	}
	if m.Kind != "" && !slices.Contains(Kinds, m.Kind) {
		next := "one of " + strings.Join(Kinds, ", ")
		if near := nearword.Nearest(m.Kind, Kinds); near != "" {
			next = "did you mean " + near + "? " + next
		}
		add("machines.kind", fmt.Errorf("there is no kind %q", m.Kind), next)
	}
	for _, text := range m.Tolerations {
		_, err := ParseToleration(text)
		add("machines.tolerations", err, "such as nvidia.com/gpu, or dedicated=ml:NoSchedule")
	}
	mounted := map[string]string{}
	for _, text := range m.Volumes {
		v, err := ParseVolume(text)
		add("machines.volumes", err, "such as datasets:/data:ro")
		if other := mounted[v.Path]; err == nil && other != "" {
			add("machines.volumes", fmt.Errorf("%s and %s are both mounted at %s", other, text, v.Path), "give one of them another path")
		}
		mounted[v.Path] = text
	}
	add("machines.mem", quantity(m.Memory), "such as 64Gi")
	if m.Hold != "" {
		if d, err := time.ParseDuration(m.Hold); err != nil || d < 0 || d > 24*time.Hour {
			add("machines.hold", fmt.Errorf("%q is no time between 0s and 24h", m.Hold), "such as 30m")
		}
	}
	if m.Workdir != "" && !strings.HasPrefix(m.Workdir, "/") {
		add("machines.workdir", fmt.Errorf("%q is no absolute path", m.Workdir), "such as /workspace")
	}
	return faults
}

func effects(own any) (all []about.Effect) {
	m := about.Own[Machines](own)
	add := func(kind string, unusual bool, format string, args ...any) {
		all = append(all, about.Effect{Kind: kind, Unusual: unusual, Text: fmt.Sprintf(format, args...)})
	}
	where := "the current context of your kubeconfig"
	if m.Context != "" {
		where = "context " + m.Context + " of your kubeconfig"
	}
	if m.Namespace != "" {
		where += ", namespace " + m.Namespace
	}
	add(about.Connects, false, "the Kubernetes cluster of %s", where)
	if m.ServiceAccount != "" {
		add(about.Runs, true, "in pods that have the rights of service account %s", m.ServiceAccount)
	}
	if m.Priority != "" {
		add(about.Runs, true, "in pods of priority class %s, for which others may be ended", m.Priority)
	}
	for _, text := range m.Volumes {
		if v, err := ParseVolume(text); err == nil {
			add(about.Opens, v.Source != Claim, "%s to the pods, at %s", v, v.Path)
		}
	}
	return all
}
