//go:build linux

// Package kuberig runs a real Kubernetes for tests: the control plane, Kubeflow's
// operators, KubeRay, Kueue and a kubelet whose pods are processes of this machine
// (internal/k8srig). It needs root and iproute2, and what internal/tools/k8srig.sh
// builds.
package kuberig

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// dirVar names the directory of the built programs; without it, they are in the
// user's cache.
const dirVar = "DLWB_K8SRIG"

func built() string {
	if dir := os.Getenv(dirVar); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "dlwb", "k8srig")
}

// Cluster is one that runs.
type Cluster struct {
	// Kubeconfig has the contexts rig (the administrator), tenant (namespace team;
	// no rights of his own) and nobody (credentials that are not valid).
	Kubeconfig string
	dir        string
	cmd        *exec.Cmd
	in         io.Closer
	log        bytes.Buffer
	dyn        dynamic.Interface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
	rest       rest.Interface
}

// Missing says why there is to be no cluster here; empty: there can be one. make test
// is light, and the same whatever a cache holds, so the rig has to be asked for.
func Missing() string {
	if os.Getenv("DLWB_RIGS") == "" {
		return "NOT RUN: it takes many minutes of a real Kubernetes: make test-kubernetes builds and runs it"
	}
	if os.Getuid() != 0 {
		return "the Kubernetes of the tests needs root"
	}
	if _, err := os.Stat(filepath.Join(built(), "state")); err != nil {
		return "the Kubernetes of the tests is not built: make test-kubernetes does"
	}
	return ""
}

// Start starts a cluster with operators ("kubeflow,mpi,trainer,kuberay,kueue"; empty: none). It
// ends with the process at the latest, however that ends.
func Start(with string) (*Cluster, error) {
	modules, err := os.ReadFile(filepath.Join(built(), "modules"))
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	if c.dir, err = os.MkdirTemp("", "kube"); err != nil {
		return nil, err
	}
	c.cmd = exec.Command(filepath.Join(built(), "rig"), "up", "-dir", filepath.Join(c.dir, "run"), "-bin", filepath.Join(built(), "bin"),
		"-modules", strings.TrimSpace(string(modules)), "-with", with)
	c.cmd.Stderr = &c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in = in
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = c.Stop()
		return nil, fmt.Errorf("the Kubernetes of the tests does not come up: %s", c.log.String())
	}
	c.Kubeconfig = strings.TrimSpace(strings.TrimPrefix(line, "ready "))
	return c, c.open()
}

func (c *Cluster) open() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	c.rest = disco.RESTClient()
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	c.dyn, err = dynamic.NewForConfig(config)
	return err
}

// Post sends an object to a path of the API.
func (c *Cluster) Post(ctx context.Context, path, body string) error {
	return c.rest.Post().AbsPath(path).Body([]byte(body)).SetHeader("Content-Type", "application/json").Do(ctx).Error()
}

// Stop ends the cluster.
func (c *Cluster) Stop() error {
	_ = c.in.Close()
	over := make(chan error, 1)
	go func() { over <- c.cmd.Wait() }()
	select {
	case <-over:
	case <-time.After(40 * time.Second):
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-over
	}
	return os.RemoveAll(c.dir)
}

// Signal sends a signal to a part of the cluster: "kube-apiserver".
func (c *Cluster) Signal(t testing.TB, part string, s syscall.Signal) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "run", part+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err == nil {
		err = syscall.Kill(pid, s)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Pods is the directory where the pods of the cluster lie, by their UIDs.
func (c *Cluster) Pods() string { return filepath.Join(c.dir, "run", "pods") }

// Resource is what there is of a kind: "pods", "pytorchjobs.v1.kubeflow.org".
func (c *Cluster) Resource(name, namespace string) dynamic.ResourceInterface {
	gvr, _ := schema.ParseResourceArg(name)
	if gvr == nil {
		gvr = &schema.GroupVersionResource{Version: "v1", Resource: name}
	}
	if namespace == "" {
		return c.dyn.Resource(*gvr)
	}
	return c.dyn.Resource(*gvr).Namespace(namespace)
}

// Apply puts objects into the cluster, and takes them out again when the test
// ends.
func (c *Cluster) Apply(t testing.TB, text string) {
	t.Helper()
	docs := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := docs.Read()
		if err == io.EOF {
			return
		}
		o := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(doc, &o.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		to, err := c.of(o)
		if err == nil {
			var body []byte
			if body, err = o.MarshalJSON(); err == nil {
				_, err = to.Patch(context.Background(), o.GetName(), types.ApplyPatchType, body, meta.PatchOptions{FieldManager: "test", Force: new(true)})
			}
		}
		if err != nil {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		t.Cleanup(func() { _ = to.Delete(context.Background(), o.GetName(), meta.DeleteOptions{}) })
	}
}

func (c *Cluster) of(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	m, err := c.mapper.RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}, gvk.Version)
	if err != nil {
		c.mapper.Reset()
		if m, err = c.mapper.RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}, gvk.Version); err != nil {
			return nil, err
		}
	}
	if m.Scope.Name() == "namespace" {
		namespace := o.GetNamespace()
		if namespace == "" {
			namespace = "default"
		}
		return c.dyn.Resource(m.Resource).Namespace(namespace), nil
	}
	return c.dyn.Resource(m.Resource), nil
}
