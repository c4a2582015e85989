package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// clientFor is the client of all questions to a cluster.
func clientFor(config *rest.Config) (*http.Client, error) {
	if config.ExecProvider == nil {
		return rest.HTTPClientFor(config)
	}
	// The terminal belongs to the screen.
	config.ExecProvider.StdinUnavailable = true
	config.ExecProvider.StdinUnavailableMessage = "dlwb does not hand its terminal to it; run kubectl get pods once, which does"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return passage{next} })
	client, err := rest.HTTPClientFor(config)
	if err == nil {
		client.Transport = patient{client.Transport, config.ExecProvider.Command}
	}
	return client, err
}

// patient ends a question when its time is over, also where the login program of a
// kubeconfig is asked first: client-go waits for that as long as it takes.
type patient struct {
	next    http.RoundTripper
	program string
}

// passed is the key of an atomic.Bool: the login is done.
type passed struct{}

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	type answer struct {
		*http.Response
		error
	}
	done, came := new(atomic.Bool), make(chan answer, 1)
	asked := r.WithContext(context.WithValue(r.Context(), passed{}, done))
	go func() {
		resp, err := p.next.RoundTrip(asked) //nolint:bodyclose // whoever takes the answer does
		came <- answer{resp, err}
	}()
	select {
	case a := <-came:
		return a.Response, a.error
	case <-r.Context().Done():
	}
	if done.Load() { // what is behind it ends by itself
		a := <-came
		return a.Response, a.error
	}
	go func() {
		if a := <-came; a.Response != nil {
			_ = a.Body.Close()
		}
	}()
	return nil, fmt.Errorf("getting credentials: exec: %s does not end: %w", p.program, r.Context().Err())
}

// passage notes that a question has come by the login.
type passage struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p passage) RoundTrip(r *http.Request) (*http.Response, error) {
	if done, is := r.Context().Value(passed{}).(*atomic.Bool); is {
		done.Store(true)
	}
	return p.next.RoundTrip(r)
}

// loginHint says what to do where a kubeconfig can't be used.
func loginHint(err error) string {
	switch said := err.Error(); {
	case strings.Contains(said, "auth Provider") || strings.Contains(said, "Auth Provider"): // taken out of Kubernetes with 1.26
		return "the way to log in that it names is of an old kubectl: fetch the kubeconfig anew (gcloud container clusters get-credentials, az aks get-credentials), with gke-gcloud-auth-plugin or kubelogin installed"
	case strings.Contains(said, "apiVersion"):
		return "its login program is asked by an old version of the protocol: fetch the kubeconfig anew (aws eks update-kubeconfig)"
	}
	return "kubectl config view --minify shows what it says; fetch the kubeconfig anew"
}
