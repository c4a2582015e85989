package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (r *rig) ca() string { return base64.StdEncoding.EncodeToString(r.certs.ca) }

// applyFiles applies the files of a module.
func (r *rig) applyFiles(module string, patterns ...string) error {
	for _, pattern := range patterns {
		objects, err := objectsOf(filepath.Join(r.modules[module], pattern))
		if err != nil {
			return err
		}
		if err := r.cluster.apply(objects...); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) applyHooks(module, file, name string, port int, keep func(path string) bool) error {
	objects, err := objectsOf(filepath.Join(r.modules[module], file))
	if err == nil {
		err = webhooksAt(objects, name, port, r.ca(), keep)
	}
	if err != nil {
		return err
	}
	return r.cluster.apply(objects...)
}

func all(string) bool { return true }

func (r *rig) namespace(name string) error {
	_, err := r.cluster.client.CoreV1().Namespaces().Create(context.Background(), &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

const readyLimit = 90 * time.Second

// kubeflow runs the training operator, with its webhooks.
func (r *rig) kubeflow() error {
	const module = "github.com/kubeflow/training-operator"
	if err := errors.Join(r.namespace("kubeflow"), r.certs.write(r.file("tmp/k8s-webhook-server/serving-certs"))); err != nil {
		return err
	}
	_, err := r.cluster.client.CoreV1().Secrets("kubeflow").Create(context.Background(), &core.Secret{ObjectMeta: meta.ObjectMeta{Name: "training-operator-webhook-cert"},
		Data: map[string][]byte{"ca.crt": r.certs.ca, "ca.key": r.certs.caKey, "tls.crt": r.certs.tls, "tls.key": r.certs.tlsKey}}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	// MPIJobs of v1 have the name of those of v2beta1, which mpi has.
	if err := r.applyFiles(module, "manifests/base/crds/kubeflow.org_pytorchjobs.yaml", "manifests/base/crds/kubeflow.org_tfjobs.yaml", "manifests/base/crds/kubeflow.org_jaxjobs.yaml"); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: validator.training-operator.kubeflow.org}\nwebhooks:\n")
	for _, kind := range []string{"pytorchjob", "tfjob", "jaxjob"} {
		fmt.Fprintf(&b, "- {name: validator.%s.training-operator.kubeflow.org, admissionReviewVersions: [v1], failurePolicy: Fail, sideEffects: None, clientConfig: {url: \"https://%s/validate-kubeflow-org-v1-%s\", caBundle: %s}, rules: [{apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%ss]}]}\n",
			kind, local(r.port["kubeflow"]), kind, r.ca(), kind)
	}
	hooks, err := parse([]byte(b.String()))
	if err != nil {
		return err
	}
	if err := r.cluster.apply(hooks...); err != nil {
		return err
	}
	if err := r.run("training-operator", "training-operator.v1", []string{"KUBECONFIG=" + r.kubeconfig(), "TMPDIR=" + r.file("tmp")},
		"--metrics-bind-address="+local(r.port["kubeflow-metrics"]), "--health-probe-bind-address="+local(r.port["kubeflow-health"]),
		fmt.Sprint("--webhook-server-port=", r.port["kubeflow"]), "--enable-scheme=pytorchjob", "--enable-scheme=tfjob", "--enable-scheme=jaxjob", "--controller-threads=4"); err != nil {
		return err
	}
	return await("http://"+local(r.port["kubeflow-health"])+"/readyz", readyLimit)
}

// mpi runs the operator of MPIJobs of v2beta1.
func (r *rig) mpi() error {
	if err := errors.Join(r.namespace("mpi-operator"), r.applyFiles("github.com/kubeflow/mpi-operator", "manifests/base/kubeflow.org_mpijobs.yaml")); err != nil {
		return err
	}
	return errors.Join(r.run("mpi-operator", "mpi-operator", nil, "-kubeConfig="+r.kubeconfig(), "-lock-namespace=mpi-operator", "-kube-api-qps=100", "-kube-api-burst=200"),
		await("http://"+local(8080)+"/healthz", readyLimit)) // a port fixed in its source
}

// trainer runs JobSet and Kubeflow's Trainer, with their webhooks.
func (r *rig) trainer() error {
	const trainer, jobset = "github.com/kubeflow/trainer/v2", "sigs.k8s.io/jobset"
	if err := errors.Join(r.certs.write(r.file("hooks")),
		r.applyFiles(jobset, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"), r.applyFiles(trainer, "manifests/base/crds/trainer*.yaml"),
		r.applyHooks(jobset, "config/components/webhook/manifests.yaml", "jobset", r.port["jobset"], all),
		r.applyHooks(trainer, "manifests/base/webhook/manifests.yaml", "trainer", r.port["trainer"], all)); err != nil {
		return err
	}
	if err := errors.Join(r.config("jobset.yaml", `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
metrics: {bindAddress: "%s"}
health: {healthProbeBindAddress: "%s"}
webhook: {port: %d, certDir: %s}
internalCertManagement: {enable: false}
`, local(r.port["jobset-metrics"]), local(r.port["jobset-health"]), r.port["jobset"], r.file("hooks")),
		r.config("trainer.yaml", `apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
metrics: {bindAddress: "%s", secureServing: false}
health: {healthProbeBindAddress: "%s"}
webhook: {port: %d, host: "127.0.0.1"}
certManagement: {enable: false}
`, local(r.port["trainer-metrics"]), local(r.port["trainer-health"]), r.port["trainer"])); err != nil {
		return err
	}
	env := []string{"KUBECONFIG=" + r.kubeconfig(), "TMPDIR=" + r.file("tmp")}
	if err := errors.Join(r.certs.write(r.file("tmp/k8s-webhook-server/serving-certs")),
		r.run("jobset", "jobset", env, "--config="+r.file("jobset.yaml")), r.run("trainer", "trainer-controller-manager", env, "--config="+r.file("trainer.yaml"))); err != nil {
		return err
	}
	return errors.Join(await("http://"+local(r.port["jobset-health"])+"/readyz", readyLimit), await("http://"+local(r.port["trainer-health"])+"/readyz", readyLimit),
		r.applyFiles(trainer, "manifests/base/runtimes/torch_distributed.yaml"))
}

// kuberay runs the operator of RayClusters and RayJobs, without its webhooks, which know
// RayClusters alone. It reaches the heads by way of the API server.
func (r *rig) kuberay() error {
	if err := errors.Join(r.namespace("ray-system"), r.applyFiles("github.com/ray-project/kuberay/ray-operator", "config/crd/bases/*.yaml")); err != nil {
		return err
	}
	return errors.Join(r.run("kuberay", "ray-operator", []string{"KUBECONFIG=" + r.kubeconfig()}, "--use-kubernetes-proxy", "--enable-leader-election=false", "--metrics-addr=0",
		"--health-probe-bind-address="+local(r.port["kuberay-health"])), await("http://"+local(r.port["kuberay-health"])+"/readyz", readyLimit))
}

// kueue runs Kueue, with the webhooks of the kinds that there are.
func (r *rig) kueue() error {
	const module = "sigs.k8s.io/kueue"
	ray := slices.Contains(r.with, "kuberay")
	left := func(path string) bool {
		for _, other := range []string{"v1-pod", "apps-v1", "appwrapper", "leaderworkerset", "ray"} {
			if strings.Contains(path, other) && (other != "ray" || !ray || strings.Contains(path, "rayservice")) {
				return false
			}
		}
		return true
	}
	if err := errors.Join(r.namespace("kueue-system"), r.certs.write(r.file("hooks")), r.certs.write("/etc/kueue/metrics/certs"), // a path fixed in its source
		r.applyFiles(module, "config/components/crd/bases/*.yaml"),
		r.config("kueue.yaml", `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
leaderElection: {leaderElect: false}
metrics: {bindAddress: "%s"}
health: {healthProbeBindAddress: "%s"}
webhook: {port: %d, host: "127.0.0.1", certDir: %s}
internalCertManagement: {enable: false}
featureGates: {VisibilityOnDemand: false}
integrations: {frameworks: [batch/job, kubeflow.org/pytorchjob, kubeflow.org/mpijob, jobset.x-k8s.io/jobset, trainer.kubeflow.org/trainjob%s]}
`, local(r.port["kueue-metrics"]), local(r.port["kueue-health"]), r.port["kueue"], r.file("hooks"), map[bool]string{true: ", ray.io/rayjob, ray.io/raycluster"}[ray])); err != nil {
		return err
	}
	if err := r.run("kueue", "kueue", []string{"KUBECONFIG=" + r.kubeconfig()}, "--config="+r.file("kueue.yaml")); err != nil {
		return err
	}
	if err := await("http://"+local(r.port["kueue-health"])+"/readyz", readyLimit); err != nil {
		return err
	}
	return r.applyHooks(module, "config/components/webhook/manifests.yaml", "kueue", r.port["kueue"], left)
}

func (r *rig) config(name, format string, args ...any) error {
	return os.WriteFile(r.file(name), fmt.Appendf(nil, format, args...), 0o600)
}
