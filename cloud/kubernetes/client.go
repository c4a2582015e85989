package kubernetes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dlwb/dlwb/cloud/kubernetes/api"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/nearword"
)

// place is a namespace of a cluster, as the kubeconfig knows it.
type place struct {
	Context   string `json:"context"`
	Namespace string `json:"namespace"`
	// Cluster is the cluster that the context led to when something was made
	// there; empty: nothing was.
	Cluster string `json:"cluster,omitempty"`
}

func (p place) String() string { return "namespace " + p.Namespace + " of context " + p.Context }

// door is the way to one place.
type door struct {
	place
	server string
	config *rest.Config
	api    *api.Client
	dyn    dynamic.Interface
	warned *warnings
}

// callLimit bounds one question to the API server.
const callLimit = 8 * time.Second

// locate says which place the options mean, by the user's own kubeconfig. A
// profile names a context of it and never a file: a kubeconfig may run programs.
func locate(m options.Machines) (place, error) {
	files := clientcmd.NewDefaultClientConfigLoadingRules()
	raw, err := files.Load()
	if err != nil {
		return place{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	at := place{Context: m.Context, Namespace: m.Namespace}
	if at.Context == "" {
		at.Context = raw.CurrentContext
	}
	known, is := raw.Contexts[at.Context]
	switch {
	case is:
		if at.Namespace == "" {
			at.Namespace = known.Namespace
		}
	case m.Context != "":
		names := slices.Sorted(maps.Keys(raw.Contexts))
		text := fmt.Sprintf("there is no context %q in %s", m.Context, strings.Join(files.GetLoadingPrecedence(), ", "))
		if near := nearword.Nearest(m.Context, names); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		} else if len(names) > 0 {
			text += "; there are " + strings.Join(names, ", ")
		}
		return at, fmt.Errorf("%s", text)
	case len(raw.Contexts) > 0:
		return at, fmt.Errorf("no context is current: kubectl config use-context one of %s, or set machines.context", strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	default:
		if _, err := rest.InClusterConfig(); err != nil {
			return at, fmt.Errorf("there is no kubeconfig: %s", strings.Join(files.GetLoadingPrecedence(), ", "))
		}
		at.Context = ""
	}
	if at.Namespace == "" && at.Context == "" { // in a pod
		own, _ := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		at.Namespace = strings.TrimSpace(string(own))
	}
	if at.Namespace == "" {
		at.Namespace = "default"
	}
	return at, nil
}

// clusterOf tells clusters apart without asking one: the address of the API
// server, and the SHA-256 of the authority that vouches for it.
func clusterOf(config *rest.Config) string {
	ca := config.CAData
	if len(ca) == 0 && config.CAFile != "" {
		ca, _ = os.ReadFile(config.CAFile) // who connects says what is wrong with it
	}
	if len(ca) == 0 {
		return config.Host
	}
	sum := sha256.Sum256(bytes.TrimSpace(ca))
	return config.Host + " " + hex.EncodeToString(sum[:])
}

// sameCluster reports whether two are one: one address, or one authority, which
// stays where a cluster gets another address.
func sameCluster(a, b string) bool {
	serverA, caA, _ := strings.Cut(a, " ")
	serverB, caB, _ := strings.Cut(b, " ")
	if serverA == serverB {
		return true
	}
	atA, errA := url.Parse(serverA)
	atB, errB := url.Parse(serverB)
	return errA == nil && errB == nil && caA != "" && caA == caB && atA.Path == atB.Path // a gateway has many clusters
}

// open gives the door to a place. It asks nobody anything.
func (p *Provider) open(at place) (*door, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.doors[at]; d != nil {
		return d, nil
	}
	d, err := newDoor(at)
	if err == nil {
		p.doors[at] = d
	}
	return d, err
}

// configOf is what the kubeconfig says of a context.
func configOf(context string) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(),
		&clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
}

func newDoor(at place) (*door, error) {
	config, err := configOf(at.Context)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if is := clusterOf(config); at.Cluster != "" && !sameCluster(at.Cluster, is) {
		was, _, _ := strings.Cut(at.Cluster, " ")
		return nil, fmt.Errorf("context %s leads to another cluster now, %s; what was made is on %s: "+
			"have the context lead there again (kubectl config set-cluster, or KUBECONFIG), then try again", at.Context, config.Host, was)
	}
	d := &door{place: at, server: config.Host, config: config, warned: &warnings{}}
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = d.warned
	config.UserAgent = "dlwb"
	client, err := clientFor(config)
	if err != nil {
		return nil, &apiError{text: fmt.Sprintf("use context %s: %v", at.Context, err), next: loginHint(err), err: err}
	}
	if d.api, err = api.New(config, client); err == nil {
		d.dyn, err = dynamic.NewForConfigAndClient(config, client)
	}
	if err != nil {
		return nil, fmt.Errorf("use context %s: %w", at.Context, err)
	}
	return d, nil
}

// objects are those of one kind in the door's namespace.
func (d *door) objects(k *kind) dynamic.ResourceInterface {
	return d.dyn.Resource(k.resource).Namespace(d.Namespace)
}

// call bounds one question.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callLimit)
}

// warnings gathers what the API server warns of, each once.
type warnings struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 && text != "" && len(w.said) < 20 && !slices.Contains(w.said, text) {
		w.said = append(w.said, text)
	}
}

// take gives what was gathered, once.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.said
	w.said = nil
	return said
}
