package kubernetes

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dlwb/dlwb/internal/pattern"
)

// apiError is an error of the API with what to do about it.
type apiError struct {
	text, next string
	err        error
}

func (e *apiError) Error() string { return e.text }

// Unwrap gives the error of the API.
func (e *apiError) Unwrap() error { return e.err }

// Advice says what to do.
func (e *apiError) Advice() string { return e.next }

// explain says in words what a call came to. What is no error of the API stays.
func (d *door) explain(err error) error {
	if err == nil || ended(err) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	text, next := explained(err, d.place, d.server)
	if text == "" {
		return err
	}
	return &apiError{text, next, err}
}

// limitRange matches what a LimitRange says when it refuses.
var limitRange = pattern.New(`(maximum|minimum) .* usage per (Container|Pod)|limit to request ratio per`)

// explained is a sentence for what is known, and what to do about it.
func explained(err error, at place, server string) (text, next string) {
	said := err.Error()
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case strings.Contains(said, "failed calling webhook"):
		return "a webhook of the cluster does not answer: " + said, "the operator whose it is does not run: " + webhookOf(said)
	case apierrors.IsUnauthorized(err):
		return "the cluster does not know who asks: the credentials of context " + at.Context + " are not valid, or no longer",
			"log in again (aws eks update-kubeconfig, gcloud container clusters get-credentials, az aks get-credentials, your own way); kubectl --context " + at.Context + " get pods shows whether it works"
	case apierrors.IsForbidden(err) && strings.Contains(said, "exceeded quota"):
		return "the quota of " + at.String() + " has no room: " + said, "kubectl -n " + at.Namespace + " describe quota; ask for less, or end what is there"
	case apierrors.IsForbidden(err) && strings.Contains(said, "failed quota"):
		return "the quota of " + at.String() + " takes no pod that does not say what it needs: " + said, "machines.cpus and machines.mem"
	case apierrors.IsForbidden(err) && limitRange.MatchString(said):
		return "the limits of " + at.String() + " allow no such pods: " + said, "kubectl -n " + at.Namespace + " describe limits; machines.mem, machines.cpus, machines.gpus"
	case apierrors.IsForbidden(err) && strings.Contains(said, "violates PodSecurity"):
		return "the namespace does not admit such pods: " + said, "machines.run_as with the id of a user of the image, such as 1000, where root is what it forbids; no host volumes; or another namespace"
	case apierrors.IsForbidden(err):
		return "that is not allowed: " + said, "the administrator of the cluster grants it: kubectl auth can-i --list -n " + at.Namespace + " shows what is"
	case apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err):
		return server + " answers as no API server of Kubernetes does, or as one without this kind of objects: " + said, "is the cluster still there? kubectl config view --minify shows the server"
	case strings.Contains(said, "getting credentials: exec"):
		return "the program by which context " + at.Context + " logs in has failed: " + said, "kubectl --context " + at.Context + " get pods runs it at the terminal"
	case errors.As(err, &dns):
		return "the name of the cluster's API server is not known here: " + server, "is the VPN up? kubectl config view --minify shows the server"
	case errors.As(err, &unknown):
		return "the API server " + server + " shows a certificate that the kubeconfig does not vouch for", "fetch the kubeconfig anew"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fmt.Sprintf("the API server %s does not answer within %s", server, callLimit), "is the VPN up, is a proxy needed (HTTPS_PROXY)?"
	case strings.Contains(said, "proxyconnect"), strings.Contains(said, "socks connect"):
		return "the proxy by which context " + at.Context + " reaches " + server + " does not let it through: " + said, "kubectl config view --minify shows proxy-url; without it, HTTPS_PROXY counts"
	case errors.As(err, &name):
		return "the API server " + server + " shows a certificate of another name: " + said, "the kubeconfig's tls-server-name, or its server, has to be the name in the certificate"
	case errors.As(err, &invalid):
		return "the certificate of the API server " + server + " does not hold: " + said, "is the clock of this machine right? else fetch the kubeconfig anew"
	case strings.Contains(said, "tls: "):
		return "the API server " + server + " does not take the connection: " + said, "is the client's certificate of context " + at.Context + " still valid? fetch the kubeconfig anew"
	case strings.Contains(said, "connection refused"), strings.Contains(said, "no route to host"), strings.Contains(said, "network is unreachable"):
		return "the API server " + server + " can't be reached: " + said, "is the VPN up, does the cluster run?"
	}
	return "", ""
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// webhookOf is the name of the webhook in an error of the API.
func webhookOf(said string) string {
	_, rest, _ := strings.Cut(said, "failed calling webhook \"")
	name, _, _ := strings.Cut(rest, "\"")
	return name
}

// permanent reports whether asking again can't help.
func permanent(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) && !strings.Contains(err.Error(), "waiting to start") && !strings.Contains(err.Error(), "ContainerCreating") && !strings.Contains(err.Error(), "PodInitializing")
}
