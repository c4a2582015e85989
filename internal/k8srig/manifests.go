package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is the API server as a client of the rig sees it.
type cluster struct {
	client *kubernetes.Clientset
	dyn    dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func openCluster(kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	return &cluster{client, dyn, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))}, err
}

func (c *cluster) awaitNode(name string) error {
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		n, err := c.client.CoreV1().Nodes().Get(context.Background(), name, meta.GetOptions{})
		if err != nil {
			continue
		}
		for _, cond := range n.Status.Conditions {
			if cond.Type == core.NodeReady && cond.Status == core.ConditionTrue {
				return nil
			}
		}
	}
	return fmt.Errorf("node %s does not get ready", name)
}

// objectsOf reads the objects of files.
func objectsOf(pattern string) (all []*unstructured.Unstructured, err error) {
	files, err := filepath.Glob(pattern)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no %s", pattern)
	}
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		if readErr != nil {
			return all, readErr
		}
		some, parseErr := parse(text)
		if parseErr != nil {
			return all, fmt.Errorf("%s: %w", file, parseErr)
		}
		all = append(all, some...)
	}
	return all, err
}

func parse(text []byte) (all []*unstructured.Unstructured, err error) {
	docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			return all, err
		}
		if o.Object != nil && o.GetKind() != "" && o.GetKind() != "Kustomization" {
			all = append(all, o)
		}
	}
}

// apply puts objects into the cluster; a kind that it was just told of, it knows
// a moment later.
func (c *cluster) apply(objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		var err error
		for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
			if err = c.applyOne(o); err == nil {
				break
			}
			c.mapper.Reset()
		}
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	for _, o := range objects {
		if err := c.awaitServed(o); err != nil {
			return err
		}
	}
	return nil
}

// awaitServed waits until a kind that was just told of is served: an operator
// that starts before gives up.
func (c *cluster) awaitServed(o *unstructured.Unstructured) error {
	if o.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		c.mapper.Reset()
		if _, err := c.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s is not served", o.GetName())
}

func (c *cluster) applyOne(o *unstructured.Unstructured) error {
	gvk := o.GroupVersionKind()
	m, err := c.mapper.RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}, gvk.Version)
	if err != nil {
		return err
	}
	var to dynamic.ResourceInterface = c.dyn.Resource(m.Resource)
	if m.Scope.Name() == "namespace" {
		to = c.dyn.Resource(m.Resource).Namespace(o.GetNamespace())
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = to.Patch(context.Background(), o.GetName(), types.ApplyPatchType, text, meta.PatchOptions{FieldManager: "rig", Force: new(true)})
	return err
}

// webhooksAt has webhooks called at a port of this machine. keep says which.
func webhooksAt(objects []*unstructured.Unstructured, name string, port int, ca string, keep func(path string) bool) error {
	for _, o := range objects {
		o.SetName(name + "-" + o.GetName())
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return err
		}
		var kept []any
		for _, h := range hooks {
			hook := h.(map[string]any)
			path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
			if !keep(path) {
				continue
			}
			hook["clientConfig"] = map[string]any{"url": "https://" + local(port) + path, "caBundle": ca}
			if strings.Contains(path, "pod") {
				hook["failurePolicy"] = "Ignore"
			}
			kept = append(kept, hook)
		}
		if err := unstructured.SetNestedSlice(o.Object, kept, "webhooks"); err != nil {
			return err
		}
	}
	return nil
}
