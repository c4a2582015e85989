// Package kubernetes runs jobs on a Kubernetes cluster: as a PyTorchJob or another
// kind of Kubeflow, or a RayJob of KubeRay, where the cluster has them, else as an
// indexed Job with a headless service. It speaks to the API server alone, with the rights that the
// user's kubeconfig gives. Everything that it makes has labels that name the life
// of the cluster and the run, so that whatever is left after a crash is found.
package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/job"
)

// The names of the steps of Submit.
const (
	stepUpload = "upload"
	stepQueue  = "queue"
	stepStart  = "start"
)

// Provider runs jobs on the clusters of a kubeconfig.
type Provider struct {
	mu    sync.Mutex
	doors map[place]*door
}

var _ cloud.JobProvider = (*Provider)(nil)

// New makes the provider. From then on what client-go would print goes to the
// log: nothing but dlwb writes on the terminal.
func New() *Provider {
	quiet.Do(func() {
		klog.SetLogger(logr.Discard())
		utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, msg string, _ ...any) {
			slog.Debug("kubernetes", "said", msg, "error", err)
		}}
	})
	return &Provider{doors: map[place]*door{}}
}

var quiet sync.Once

// Kind is "kubernetes".
func (*Provider) Kind() string { return options.Provider.Name }

// Steps are those of Submit.
func (*Provider) Steps() []string { return []string{stepUpload, stepQueue, stepStart} }

// Shape is what each pod gets.
func (*Provider) Shape(spec cloud.Spec) cloud.Shape {
	m := about.Own[options.Machines](spec.Own)
	return cloud.Shape{GPUs: m.GPUs, Cores: m.CPUs}
}

// Open gives the replicas of a job.
func (p *Provider) Open(life cloud.Life, ref string) []job.Replica {
	r, err := readRef(ref)
	if err != nil {
		return nil
	}
	all := make([]job.Replica, len(r.Ranks))
	for i := range all {
		all[i] = &replica{p: p, life: life, ref: r, number: i}
	}
	return all
}

// ended reports whether an error only says that nobody waits any more.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
